"""What of a queue is within its share, in a lump, or borrowed: who may be evicted by whom (docs/evictions.md)."""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.engine.victims.eviction_rule import EvictionRule
from navarch.engine.victims.owed import BORROWED, LUMP
from navarch.explanation.result import HeldPart
from navarch.ingest.groups import shown_key

EVICTING = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim"})
_WORDS = {BORROWED: "borrowed", LUMP: "in a lump"}
WITHIN = "within its share"


def asks_rule(session: Session) -> bool:
    """Whether actions of the policy evict by the rule."""
    return session.semantics.evictions_settle and bool(EVICTING & set(session.policy.actions))


def held_parts(session: Session, name: str) -> list[HeldPart]:
    """The running pods of a queue by how safe they are, the safest first."""
    queue = session.queues.get(name)
    if queue is None or not asks_rule(session):
        return []
    found: dict[str, HeldPart] = {}
    for unit in sorted(EvictionRule(session).running(), key=lambda unit: -unit.depth):
        if unit.queue == queue.number:
            word = _WORDS.get(unit.depth, WITHIN)
            part = found.setdefault(word, HeldPart(word, 0, []))
            part.pods += unit.pods
            if (job := shown_key(unit.rank[3])) not in part.jobs:
                part.jobs.append(job)
    return list(found.values())


def refused_by_rule(session: Session, job: Job, pending: Sequence[int], victim: Job, tasks: Sequence[int]) -> str:
    """Why the rule does not let the job take the place of another; empty: it does."""
    count = max(session.job_missing(job), 1) if job.is_starving else 1
    standing = EvictionRule(session).of(job, pending[:count])
    if standing.may_evict(tasks):
        return ""
    if victim.queue is not job.queue:
        return standing.refusal().message if standing.depth == BORROWED else f"queue {victim.queue.name} is owed its place"
    return "it comes first in its queue, by what the queue is owed or by rank"
