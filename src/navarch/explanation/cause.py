"""The sentence that an explanation opens with: how a job stands, or what refuses it."""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.reasons import Reason, dominant, not_admitted
from navarch.engine.record import CycleRecord, JobDecision
from navarch.explanation.result import Cause
from navarch.views.jobs import NO_PODS

NOT_REACHED = Reason("NotReached", "the cycle ended before the job was tried")
_FEW = 5


def empty(reasons: Sequence[Reason]) -> Cause:
    """`reasons`: why its group is not admitted."""
    reason = dominant(reasons)
    return Cause("NoPods", NO_PODS) if reason is None else Cause("NoPods", not_admitted(reason), dict(sorted(reason.figures.items())))


def starts(nodes: Sequence[str], *, grows: bool) -> Cause:
    """`grows`: the job runs, and more of its pods start."""
    where = ", ".join(nodes[:_FEW]) or "its nodes"
    return Cause("Starts", f"{'more of its pods start' if grows else 'it starts'} in the next cycle, on {where}", only=True)


def runs(nodes: Sequence[str]) -> Cause:
    more = f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else ""
    return Cause("Running", f"its pods run on {', '.join(nodes[:_FEW])}{more}")


def finished(succeeded: int, failed: int) -> Cause:
    """
    >>> finished(3, 0).message, finished(0, 1).message, finished(2, 1).message
    ('3 pods have succeeded', '1 pod has failed', '2 pods have succeeded, 1 has failed')
    """
    parts: list[str] = []
    for count, word in ((succeeded, "succeeded"), (failed, "failed")):
        if count:
            noun = "" if parts else " pod" if count == 1 else " pods"
            parts.append(f"{count}{noun} {'has' if count == 1 else 'have'} {word}")
    return Cause("Failed" if failed and not succeeded else "Finished", ", ".join(parts))


def refused(record: CycleRecord, decision: JobDecision | None, key: str, written: str = "") -> Cause:
    """What keeps pods of the job waiting. `written`: what the scheduler last wrote of it, told where the record has no reason."""
    reason = dominant(decision.reasons) if decision is not None else None
    if reason is None:
        promised = next((each.node for each in record.nominations if each.job == key), "")
        if promised:
            reason = Reason("Promised", f"node {promised} is promised to it: it starts when pods that are leaving are gone")
        else:
            reason = Reason("Waits", written) if written else NOT_REACHED
    return Cause(reason.code, reason.message, dict(sorted(reason.figures.items())))
