"""Jobs for which nothing could be evicted: another that looks the same would fail the same way, so it is not tried.

A full cluster with a long backlog is the usual state of a batch cluster. An attempt that fails leaves nothing behind, so until
something is decided every job with the same wants in the same queue would walk the same nodes to the same end.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from navarch.engine.job import Job
from navarch.engine.reasons import Reason
from navarch.engine.session import Session


class FailedAttempts:
    def __init__(self, session: Session) -> None:
        self.session = session
        self._exact = session.semantics.unevict_restores_scoring_view
        """Without it a failed attempt does leave something behind, and the next one may end otherwise."""
        self._failed: dict[Hashable, list[Reason]] = {}

    def foretell(self, job: Job, tasks: Sequence[int]) -> bool:
        """Whether an attempt for these tasks is known to fail; the job then waits for the same reasons."""
        reasons = self._failed.get(self._wants(job, tasks)) if self._failed else None
        for reason in reasons or ():
            job.refuse(reason)
        return reasons is not None

    def note(self, job: Job, tasks: Sequence[int], known: int) -> None:
        """An attempt failed. `known`: how many reasons the job had before it."""
        if self._exact:
            self._failed[self._wants(job, tasks)] = job.reasons[known:]

    def forget(self) -> None:
        """Something was decided: what failed before may succeed now."""
        self._failed.clear()

    def _wants(self, job: Job, tasks: Sequence[int]) -> Hashable:
        """All that rules on victims read of a job and its tasks."""
        session, spec = self.session, job.spec
        each = []
        for row in tasks:
            task = session.task(row)
            each.append((session.class_of(row).number, task.role, task.priority, task.preemption_policy, task.nominated_node))
        about = (spec.queue, job.priority, spec.preemptable, spec.min_member, spec.roles, spec.topology)
        said = (tuple(sorted(spec.labels.items())), tuple(sorted(spec.annotations.items())))
        alone = job.key if spec.sub_groups else ""  # who is in which part takes as long to compare as to try
        return about, alone, said, tuple(job.counts), job.allocated.tobytes(), tuple(each)
