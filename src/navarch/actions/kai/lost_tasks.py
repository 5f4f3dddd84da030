"""Lost tasks: a job that a search evicted still wants the tasks that it lost first, for the rest of the cycle.

KAI keeps the list of tasks that a job places next until one of its tasks changes. A search that evicts tasks and finds no other place
for them leaves such a list behind: it begins with the evicted tasks, which cannot be placed. So the job finds nothing in later
searches of the cycle, although others of its tasks wait (`lost_tasks_come_first`).

The sum of what a list asks for is kept too. It is made when the search looks for places, while the evicted tasks still count. If the
search found places for some tasks of the list and took them back, the sum is made again later, of the tasks that wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.status import TaskStatus


@dataclass(frozen=True, slots=True)
class LostList:
    job: Job
    tasks: list[int]
    weighs_whole: bool
    """All tasks weigh in the order of queues, and not only those that wait."""


class LostTasks:
    """Made with `Session.shared`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._proposed: list[LostList] = []
        self._kept: dict[int, tuple[int, LostList]] = {}
        """Job row -> its version, and its list."""

    def propose(self, lists: list[LostList]) -> None:
        """The lists of the jobs for which the last scenario that holds found no place."""
        self._proposed = lists

    def settle(self) -> None:
        """The scenario is carried out."""
        for each in self._proposed:
            self._kept[each.job.row] = each.job.version, each
        self._proposed = []

    def hold_up(self, job: Job) -> bool:
        """Whether the job would place a task next that was evicted."""
        kept = self._list_of(job)
        return kept is not None and self.session.status[kept.tasks[0]] != TaskStatus.PENDING

    def weighing(self, job: Job) -> Sequence[int] | None:
        """The tasks of its list that weigh in the order of queues; None: it has no such list."""
        kept = self._list_of(job)
        if kept is None or kept.weighs_whole:
            return None if kept is None else kept.tasks
        return [task for task in kept.tasks if self.session.status[task] == TaskStatus.PENDING]

    def lists_any(self, jobs: Iterable[Job]) -> bool:
        """Whether one of these jobs has a list. A trial that evicts the job ends the list."""
        return bool(self._kept) and any(self._list_of(job) is not None for job in jobs)

    def _list_of(self, job: Job) -> LostList | None:
        version, kept = self._kept.get(job.row, (-1, None))
        return kept if kept is not None and kept.tasks and version == job.version else None
