"""Lost tasks: a job that a search evicted still wants the tasks that it lost first, for the rest of the cycle.

KAI keeps the list of tasks that a job places next until one of its tasks changes. A search that evicts tasks and finds no other place
for them leaves such a list behind: it begins with the evicted tasks, which cannot be placed. So the job finds nothing in later
searches of the cycle, although others of its tasks wait, and only the waiting tasks of the list weigh in the order of queues
(`lost_tasks_come_first`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.status import TaskStatus


class LostTasks:
    """Made with `Session.shared`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._proposed: list[tuple[Job, list[int]]] = []
        self._kept: dict[int, tuple[int, list[int]]] = {}
        """Job row -> its version, and its list."""

    def propose(self, lists: list[tuple[Job, list[int]]]) -> None:
        """The jobs for which the last scenario that holds found no place, and the list of each."""
        self._proposed = lists

    def settle(self) -> None:
        """The scenario is carried out."""
        for job, tasks in self._proposed:
            self._kept[job.row] = job.version, tasks
        self._proposed = []

    def hold_up(self, job: Job) -> bool:
        """Whether the job would place a task next that was evicted."""
        tasks = self._list_of(job)
        return tasks is not None and self.session.status[tasks[0]] != TaskStatus.PENDING

    def waiting(self, job: Job) -> Sequence[int] | None:
        """The tasks of its list that wait; None: it has no such list."""
        tasks = self._list_of(job)
        return None if tasks is None else [task for task in tasks if self.session.status[task] == TaskStatus.PENDING]

    def lists_any(self, jobs: Iterable[Job]) -> bool:
        """Whether one of these jobs has a list. A trial that evicts the job ends the list."""
        return bool(self._kept) and any(self._list_of(job) is not None for job in jobs)

    def _list_of(self, job: Job) -> list[int] | None:
        version, tasks = self._kept.get(job.row, (-1, []))
        return tasks if tasks and version == job.version else None
