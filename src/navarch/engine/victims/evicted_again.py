"""A net under the rules of others: a job that is evicted again and again is protected for a growing time.

The condition `Evicted` of a group counts evictions in a row, in its reason: `Evicted1`, `Evicted2` ... An eviction is one in a row if
a pod had run less than ten minutes, or less than twice the time for which it was protected. From the second in a row on, no action
evicts the job until its newest pod has run for 1, 2, 4 ... minutes, an hour at most. The count is in the group's status, where a
restart of the scheduler finds it.

In strict mode the eviction rule makes sure that evictions end. The net is for `compat`, for plugins of one's own, and for other
controllers that evict.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.job import Job
from navarch.engine.reasons import Event, Reason
from navarch.engine.record import CycleRecord
from navarch.model.spec import Condition, JobSpec
from navarch.model.status import IS_ACTIVE, TaskStatus
from navarch.model.timestamps import rfc3339

if TYPE_CHECKING:
    from navarch.engine.session import Session

CONDITION = "Evicted"
RUN_TIME = 600.0
FIRST, LONGEST = 60.0, 3600.0
"""Seconds."""


def times(spec: JobSpec) -> int:
    """How often it was evicted in a row."""
    found = next((each.reason for each in spec.conditions if each.type == CONDITION), "")
    count = found.removeprefix(CONDITION)
    return int(count) if count.isdecimal() else 0


def evicted_in_a_row(record: CycleRecord, now: float) -> set[str]:
    """Keys of jobs that this cycle evicted once more in a row."""
    if not record.evictions:
        return set()
    news = {
        decision.job
        for decision in record.jobs
        for each in decision.conditions
        if each.type == CONDITION and each.last_transition == now and each.reason != f"{CONDITION}1"
    }
    return news & {eviction.job for eviction in record.evictions}


def protection(count: int) -> float:
    """Seconds for which a job is protected after so many evictions in a row.

    >>> [protection(count) for count in (1, 2, 3, 4, 9)]
    [0.0, 60.0, 120.0, 240.0, 3600.0]
    """
    return min(FIRST * 2 ** (count - 2), LONGEST) if count > 1 else 0.0


class EvictedAgain:
    """Made with `Session.shared`. `until`: row of a job that is protected now -> until when."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.until: dict[int, float] = {}
        if session.policy.repeated_evictions == "allow":
            return
        jobs = session.snapshot.jobs
        for row in np.flatnonzero(jobs.counts @ IS_ACTIVE.astype(np.int64)).tolist():
            spec = jobs.specs[row]
            if spec is not None and spec.conditions and (seconds := protection(times(spec))):
                end = self._newest(row) + seconds
                if end > session.now:
                    self.until[row] = end

    def _newest(self, row: int) -> float:
        """When its newest pod started; now for one that has not."""
        session, found = self.session, -math.inf
        for task in session.snapshot.jobs.tasks[row]:
            if IS_ACTIVE[session.status[task]]:
                started = session.task(task).started
                found = max(found, session.now if started is None else started)
        return found

    def reason_for(self, job: Job, *, other_queues: bool) -> Reason | None:
        session, found = self.session, list[tuple[float, str, int]]()
        for row, end in self.until.items():
            other = session.job(row)
            if other is not None and other is not job and (other.queue is not job.queue) == other_queues:
                found.append((end, other.key, times(other.spec)))
        if not found:
            return None
        end, key, count = min(found)
        text = f"{key} was evicted {count} times in a row, so it is protected until {rfc3339(end)}"
        return Reason("VictimsProtected", text, figures={"until": end, "times": count}, undone_by=(Event.TIME_PASSED,))


def refuse_for_protected(job: Job, *, other_queues: bool) -> None:
    """Tell a job that found no victims, if jobs that it might have evicted are protected."""
    reason = job.session.shared(EvictedAgain).reason_for(job, other_queues=other_queues)
    if reason is not None:
        job.refuse(reason)


def note_evictions(session: Session) -> None:
    """Count the evictions of this cycle in the conditions of the jobs that lost pods."""
    if session.policy.repeated_evictions == "allow":
        return
    lost: dict[str, tuple[float, str]] = {}
    """Job -> since when its newest victim had run, and for whom it went."""
    touched = session.touched_jobs
    started = {session.task(task).uid: session.task(task).started for job in touched for task in job.tasks_in(TaskStatus.RELEASING)}
    for eviction in session.record.evictions:
        since = started.get(eviction.uid)
        if since is not None:
            lost[eviction.job] = max(lost.get(eviction.job, (-math.inf, "")), (since, eviction.for_))
    for job in touched:
        if job.key in lost:
            since, gainer = lost[job.key]
            before = times(job.spec)
            in_a_row = session.now - since < max(RUN_TIME, 2 * protection(before))
            count = before + 1 if in_a_row else 1
            message = f"evicted {count} times in a row, last for {gainer}" if count > 1 else f"evicted for {gainer}"
            job.conditions[CONDITION] = Condition(CONDITION, "True", f"{CONDITION}{count}", message, session.uid, session.now)
            job.status_changed = True
