"""Lost tasks: a job that a search evicted still wants the tasks that it lost first, for the rest of the cycle.

KAI keeps the list of tasks that a job places next until one of its tasks changes. A search that evicts tasks and finds no other place
for them leaves such a list behind: it begins with the evicted tasks, which cannot be placed. So the job finds nothing in later
searches of the cycle, although others of its tasks wait (`lost_tasks_come_first`).
"""

from __future__ import annotations

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.status import TaskStatus


class LostTasks:
    """Made with `Session.shared`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._proposed: list[tuple[Job, int]] = []
        self._kept: dict[int, tuple[int, int]] = {}
        """Job row -> its version, and the first task of its list."""

    def propose(self, first: list[tuple[Job, int]]) -> None:
        """The jobs for which the last scenario that holds found no place, and the first task of each."""
        self._proposed = first

    def settle(self) -> None:
        """The scenario is carried out."""
        for job, task in self._proposed:
            self._kept[job.row] = job.version, task
        self._proposed = []

    def hold_up(self, job: Job) -> bool:
        """Whether the job would place a task next that was evicted."""
        version, task = self._kept.get(job.row, (-1, -1))
        return version == job.version and self.session.status[task] != TaskStatus.PENDING
