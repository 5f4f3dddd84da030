"""The answers of `navarch explain` that need no trials: the cause, the nodes and the order."""

from __future__ import annotations

from typing import Final

from navarch.engine.reasons import Reason, dominant
from navarch.engine.record import CycleRecord, JobDecision
from navarch.engine.session import Session
from navarch.explanation.nodes import nodes_answer
from navarch.explanation.order import order_of
from navarch.explanation.result import Cause, EvictionAnswer, Explanation
from navarch.explanation.search import NOT_REACHED
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
_FEW: Final = 5


def quick_explanation(
    session: Session, record: CycleRecord, key: str, nodes: list[str], why: str, state: str, pending: int
) -> Explanation:
    """`record`: of a cycle over about the same cluster. `nodes`: those that its pods have. `why`: what the scheduler last wrote.
    `state`: of its row."""
    decision = next((each for each in record.jobs if each.job == key), None)
    starts = sorted({bind.node for bind in record.binds if bind.job == key})
    found = Explanation(shown_key(key), "pending", _cause(record, decision, key, starts, why))
    found.nodes = nodes_answer(session, key, decision)
    found.order = order_of(session, record, key)
    found.evictions = [
        EvictionAnswer(each.pod, each.node, each.action, shown_key(each.for_), each.reason, each.message)
        for each in record.evictions
        if each.job == key
    ]
    if state in ("running", "terminating"):
        found.state = "running"
        if not pending:
            more = f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else ""
            found.cause = Cause("Running", f"its pods run on {', '.join(nodes[:_FEW])}{more}")
    elif state in ("succeeded", "failed"):
        found.state, found.cause = "gone", Cause("Finished", "its pods have finished")
    if found.state == "pending":
        found.complete, found.not_established = False, list(NOT_TRIED)
    return found


def _cause(record: CycleRecord, decision: JobDecision | None, key: str, starts: list[str], why: str) -> Cause:
    if starts:
        return Cause("Starts", f"it starts in the next cycle, on {', '.join(starts[:_FEW])}")
    reason = dominant(decision.reasons) if decision is not None else None
    if reason is None:
        promised = next((each.node for each in record.nominations if each.job == key), "")
        if promised:
            reason = Reason("Promised", f"node {promised} is promised to it: it starts when pods that are leaving are gone")
        else:
            reason = Reason("Waits", why) if why else NOT_REACHED
    return Cause(reason.code, reason.message, dict(sorted(reason.figures.items())))
