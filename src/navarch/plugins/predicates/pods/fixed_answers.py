"""Filters on other pods whose answer can be fixed for one attempt at a class of tasks.

Volcano counts the pods once before it searches for victims, so the search does not see its own evictions. With
`pods_counted_once_an_attempt` these filters are fixed before each attempt.
"""

from __future__ import annotations

from abc import abstractmethod

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, TaskClass
from navarch.model.resources import BoolArray


class FixableFilter(NodeFilter):
    _fixed: tuple[int, BoolArray] | None = None

    def freeze(self, task: TaskClass) -> None:
        """Answer for this attempt at the class as things stand now, whatever is evicted in its course."""
        self._fixed = None
        if self.applies(task):
            self._fixed = task.number, self.mask_at(task, slice(None))

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        if self._fixed is not None and self._fixed[0] == task.number:
            fixed: BoolArray = self._fixed[1][at.rows]
            return fixed
        return self.mask_now(task, at)

    def mask_now(self, task: TaskClass, at: Figures) -> BoolArray:
        return self.mask_at(task, at.rows)

    @abstractmethod
    def mask_at(self, task: TaskClass, rows: Rows | slice) -> BoolArray:
        """Which of these nodes pass as things stand."""
