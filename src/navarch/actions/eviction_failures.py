"""Failed eviction attempts: a job with the same signature as one that failed is not tried again until something is decided.

A full cluster with a long backlog is the usual state of a batch cluster. A failed attempt leaves nothing behind, so every job with
the same signature would repeat the same search with the same result.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from navarch.engine.job import Job
from navarch.engine.reasons import Reason
from navarch.engine.session import Session


class FailedAttempts:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._failed: dict[Hashable, list[Reason]] = {}

    def known_to_fail(self, job: Job, tasks: Sequence[int]) -> bool:
        """Whether an attempt for these tasks is known to fail; the job then gets the same reasons."""
        reasons = self._failed.get(self._signature(job, tasks)) if self._failed else None
        for reason in reasons or ():
            job.refuse(reason)
        return reasons is not None

    def add(self, job: Job, tasks: Sequence[int], known: int) -> None:
        """An attempt failed. `known`: how many reasons the job had before it."""
        self._failed[self._signature(job, tasks)] = job.reasons[known:]

    def clear(self) -> None:
        """Called after a decision: attempts that failed before may succeed now."""
        self._failed.clear()

    def _signature(self, job: Job, tasks: Sequence[int]) -> Hashable:
        """Everything that rules on victims read of a job and its tasks."""
        session, spec = self.session, job.spec
        each = []
        for row in tasks:
            task = session.task(row)
            each.append((session.class_of(row).number, task.role, task.priority, task.preemption_policy, task.nominated_node))
        about = (spec.queue, job.priority, spec.preemptable, spec.min_member, spec.roles, spec.topology)
        said = (tuple(sorted(spec.labels.items())), tuple(sorted(spec.annotations.items())))
        alone = job.key if spec.sub_groups else ""  # comparing the members of parts takes as long as an attempt
        return about, alone, said, tuple(job.counts), job.allocated.tobytes(), tuple(each)
