"""The prospects of waiting jobs: the place of each in its queue, and which of them can never start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from navarch.engine.job_sentence import why_it_waits
from navarch.engine.never_starts import never_starts
from navarch.engine.points.waiting_order import waiting_order
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.timestamps import rfc3339


@dataclass(frozen=True)
class Prospect:
    """`place` of `of` jobs that wait in the queue. `never`: why the job does not start even on the empty cluster, if that is sure.
    `why`: what keeps it waiting now, in a sentence about the job (`job_sentence`); empty: only the last cycle's reasons say it."""

    place: int
    of: int
    never: str = ""
    why: str = ""


@dataclass(frozen=True)
class StartTime:
    """When a job starts: by each of these times with the chance that its name says. Seconds since the epoch."""

    p05: float
    p50: float
    p90: float
    p95: float
    basis: str

    def to_dict(self) -> dict[str, str]:
        times = {"p05": self.p05, "p50": self.p50, "p90": self.p90, "p95": self.p95}
        return {**{name: rfc3339(time) for name, time in times.items()}, "basis": self.basis}


def prospects(cluster: Cluster, policy: Policy, registry: Registry, now: float) -> dict[str, Prospect]:
    """By the key of the job, for jobs that wait and do not have their minimum yet."""
    session = Session(cluster.snapshot_with_held(policy.semantics.node_order), policy, registry, now)
    registry.make_actions(session)
    found = prospects_in(session)
    session.dissolve()
    return found


def prospects_in(session: Session) -> dict[str, Prospect]:
    """The same in a session that no action has changed."""
    waiting = [job for job in session.jobs_with_pending() if job.ready_count < max(1, job.min_member)]
    counts = Counter(job.queue.name for job in waiting)
    places: Counter[str] = Counter()
    found = {}
    for job in waiting_order(session, waiting):
        places[job.queue.name] += 1
        never = never_starts(session, job)
        why = never or why_it_waits(session, job)
        place = places[job.queue.name]
        found[job.key] = Prospect(place, counts[job.queue.name], never.message if never else "", why.message if why else "")
    return found
