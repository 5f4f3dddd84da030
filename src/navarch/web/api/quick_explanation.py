"""The answers of `navarch explain` that need no trials: the cause, the nodes and the order."""

from __future__ import annotations

from typing import Final

from navarch.engine.job_sentence import why_it_waits
from navarch.engine.reasons import dominant, takes_no_part
from navarch.engine.record import CycleRecord
from navarch.engine.session import Session
from navarch.explanation import cause
from navarch.explanation.nodes import nodes_answer
from navarch.explanation.order import order_of
from navarch.explanation.result import EvictionAnswer, Explanation
from navarch.ingest.groups import shown_key

NOT_TRIED: Final = (
    "whether the dominant cause is the only one",
    "whether it starts alone",
    "whether it starts on the empty cluster",
    "nodes by clause",
    "blocking jobs",
    "what the user can change",
    "what an administrator can change",
)


def quick_explanation(
    session: Session, record: CycleRecord, key: str, nodes: list[str], why: str, state: str, pods: dict[str, int]
) -> Explanation:
    """`record`: of a cycle over about the same cluster. `nodes`: those that its pods have. `why`: what the scheduler last wrote.
    `state`: of its row. `pods`: how many it has, by status."""
    decision = next((each for each in record.jobs if each.job == key), None)
    bound = sorted({bind.node for bind in record.binds if bind.job == key})
    runs, waits = state in ("running", "terminating"), pods.get("Pending", 0) > 0
    told = cause.starts(bound, grows=runs) if bound else cause.refused(record, decision, key, why)
    found = Explanation(shown_key(key), "pending", told, pods)
    found.nodes = nodes_answer(session, key, decision)
    found.order = order_of(session, record, key)
    found.evictions = [
        EvictionAnswer(each.pod, each.node, each.action, shown_key(each.for_), each.reason, each.message)
        for each in record.evictions
        if each.job == key
    ]
    if runs:
        found.state = "running"
        if not waits:
            found.cause = cause.runs(nodes)
    elif state in ("succeeded", "failed"):
        found.state, found.cause = "gone", cause.finished(pods.get("Succeeded", 0), pods.get("Failed", 0))
    elif state == "empty":
        found.cause = cause.empty(decision.reasons if decision is not None else ())
    job = next((each for each in session.jobs_with_pending() if each.key == key), None)
    reason = None if job is None or runs or bound else why_it_waits(session, job)
    if reason is not None and not takes_no_part(dominant(() if decision is None else decision.reasons)):
        found.sentence = reason.message
    if waits:
        found.complete, found.not_established = False, list(NOT_TRIED)
    return found
