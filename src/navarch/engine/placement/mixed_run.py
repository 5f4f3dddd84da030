"""Nodes for tasks of several classes in a given order, with the answer of placing them one by one.

A run guesses first: each task goes to the best node that the run has not used, or to the first used node with room, whichever the last
run found right. The guess fixes the figures of the used nodes after each placement. So every class is asked once about all of them, in
one step, and the guess is checked against those scores. The nodes up to the first wrong guess are returned.

Only views whose answers depend on the figures of a node can take part (`ClassView.can_mix`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.node_ranking import WORST, NodeRanking
from navarch.engine.placement.row_answer_cache import Asked
from navarch.model.resources import BoolArray, FloatArray, IntArray

Habit = int
UNUSED, OLDEST, NEWEST = 0, 1, 2
"""To which node a task goes: one that the run has not used, the first with room of those that it has used, or the last."""


class MixedRuns:
    """The runs of one session."""

    def __init__(self) -> None:
        self._habits: dict[int, Habit] = {}
        """Class -> where its tasks went, as far as runs have shown."""
        self._run: _Run | None = None

    def choose(self, views: Sequence[ClassView]) -> list[int]:
        """Nodes for tasks of these classes, in order, as far as they are sure. Empty: the first task fits no node now."""
        self._run = run = _Run(views)
        if not run.ready:
            return []
        rows = run.guess(self._habits)
        if not rows:
            return []
        sure = run.check(rows)
        if run.better is not None:
            number = views[sure - 1].task.number
            used = OLDEST if self._habits.get(number) != OLDEST else NEWEST
            self._habits[number] = used if run.better == "used" else UNUSED
        return rows[:sure]

    def placed(self, rows: Sequence[int]) -> None:
        """The tasks of the last run are on these nodes now, and nothing else has changed: its classes know what that means."""
        if self._run is not None:
            self._run.placed(rows)
            self._run = None


class _Class:
    """One class in a run."""

    def __init__(self, view: ClassView, ranking: NodeRanking) -> None:
        self.view = view
        self.ranking = ranking
        self.unused: FloatArray = ranking.total.copy()
        """Totals of nodes that the run has not used."""
        self.after: FloatArray = np.empty(0)
        """By placement: the total of its node afterwards."""
        self.answers: tuple[BoolArray, BoolArray, BoolArray, FloatArray] | None = None
        """By placement: what the class says about its node afterwards."""
        self.sure_until = 0
        """The first placement that may change the scores of all nodes."""


class _Run:
    def __init__(self, views: Sequence[ClassView]) -> None:
        self._classes: dict[int, _Class] = {}
        self.ready = True
        for view in views:
            if view.task.number not in self._classes:
                ranking = view.ranking()
                if ranking is None:
                    self.ready = False
                    return
                self._classes[view.task.number] = _Class(view, ranking)
        self.better: str | None = None
        """Which nodes were better where the check found a wrong guess: `used` or `unused`."""
        self._guessed: list[int] = []
        self._order = [self._classes[view.task.number] for view in views]
        self._nodes = views[0].session.nodes

    def guess(self, habits: Mapping[int, Habit]) -> list[int]:
        rows: list[int] = []
        used: dict[int, IntArray] = {}
        """Node -> what is left of it."""
        nodes = self._nodes
        for each in self._order:
            task = each.view.task
            habit = habits.get(task.number, UNUSED)
            row = -1 if habit == UNUSED else _with_room(used if habit == OLDEST else {r: used[r] for r in reversed(used)}, task)
            if row < 0:
                row = int(each.unused.argmax())
                if each.unused[row] == WORST:
                    return rows
                for other in self._classes.values():
                    other.unused[row] = WORST
                used[row] = nodes.allocatable[:, row] - nodes.used[:, row]
            rows.append(row)
            used[row] = used[row] - task.request
        return rows

    def check(self, rows: list[int]) -> int:
        """How many of the guessed nodes are right. The first wrong one is put right and counts."""
        self._guessed = rows.copy()
        where: Rows = np.array(rows, dtype=np.intp)
        order = self._order[: len(rows)]
        amounts = _sums_so_far(where, np.array([each.view.task.request for each in order]))
        footprints = _sums_so_far(where, np.array([each.view.task.footprint for each in order]))
        extra = {"used": amounts, "requested": amounts, "scoring": footprints}
        for each in self._classes.values():
            if not self._ask(each, where, extra):
                return 0
            each.unused[:] = each.ranking.total
        last: dict[int, int] = {}
        """Used node -> its last placement."""
        live = np.zeros(len(rows), dtype=bool)
        for number, (each, row) in enumerate(zip(order, rows)):
            if each.sure_until < number:
                return number
            before = last.get(row)
            value = float(each.ranking.total[row]) if before is None else float(each.after[before])
            if value == WORST:
                return number
            best = int(each.unused.argmax())
            found = (float(each.unused[best]), -best)
            if last:
                totals = np.where(live, each.after, WORST)
                most = float(totals.max())
                found = max(found, (most, -int(where[totals == most].min())))
            if found > (value, -row):
                self.better = "used" if -found[1] in last else "unused"
                rows[number] = -found[1]
                return number + 1
            if before is None:
                for other in self._classes.values():
                    other.unused[row] = WORST
            else:
                live[before] = False
            live[number] = True
            last[row] = number
        return len(rows)

    def placed(self, rows: Sequence[int]) -> None:
        last = {row: number for number, row in enumerate(rows)}
        put_right = self._guessed[: len(rows)] != list(rows)
        if put_right:  # no class was asked about this node with the last task on it
            last.pop(rows[-1])
        at = np.array(list(last.values()), dtype=np.intp)
        for each in self._classes.values():
            assert each.answers is not None
            possible, idle, future, score = each.answers
            each.view.adopt(np.array(list(last), dtype=np.intp), possible[at], idle[at], future[at], score[at])
        if put_right:
            self._nodes.changed.append(np.array(rows[-1:], dtype=np.intp))

    def _ask(self, each: _Class, where: Rows, extra: dict[str, IntArray]) -> bool:
        """Compute the totals of the used nodes after each placement. False: figures do not determine them."""
        at = Asked(self._nodes, where, extra, np.zeros(len(where), dtype=np.int64))
        possible, idle, future, score = each.view.judge(at, where)
        if at.added_was_read:
            return False
        each.answers = possible, idle, future, score
        takes = possible & idle & future
        ranking = each.ranking
        each.after = np.where(takes, score if ranking.extra is None else score + ranking.extra[where], WORST)
        lost = [i for i in np.flatnonzero(~takes).tolist() if not ranking.may_lose(int(where[i]))]
        each.sure_until = lost[0] if lost else len(where)
        return True


def _with_room(used: Mapping[int, IntArray], task: TaskClass) -> int:
    return next((row for row, left in used.items() if (left >= task.request).all()), -1)


def _sums_so_far(where: Rows, amounts: IntArray) -> IntArray:
    """(R, n): for each placement the sum of the amounts (n, R) of all placements up to it on the same node."""
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    sums = np.cumsum(amounts[order], axis=0)
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    begins = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    sums = sums - (sums[begins] - amounts[order][begins])
    found = np.empty_like(sums)
    found[order] = sums
    return np.ascontiguousarray(found.T)
