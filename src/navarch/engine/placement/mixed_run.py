"""Nodes for tasks of several classes in a given order, with the answer of placing them one by one.

A run guesses first: each task goes to the node with the highest expected total (`expected_totals`). The guess fixes the figures of the
used nodes after each placement. So every class is asked once about all of them, in one step. Then the run chooses again by the true
totals, and returns the nodes up to the first wrong guess, that one put right. After a wrong guess the next runs look ahead: the totals
of each class's best nodes with one more task are computed before they guess.

Only views whose answers depend on the figures of a node can take part (`ClassView.can_mix`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.expected_totals import ExpectedTotals
from navarch.engine.placement.node_ranking import WORST, NodeRanking, best_rows
from navarch.engine.placement.row_answer_cache import TracedFigures
from navarch.model.resources import BoolArray, FloatArray, IntArray

Answers = tuple[BoolArray, BoolArray, BoolArray, FloatArray]
_AHEAD = 48
"""Nodes of a class whose totals with one more task are computed before a run, at most."""
_LOOKS = 8
"""Runs that look ahead after a wrong guess."""
_BLIND, _SEEN = 16, 4
"""After a run in which fewer than one state in `_SEEN` was known, this many runs guess by moves alone."""


class MixedRuns:
    """The runs of one session."""

    def __init__(self) -> None:
        self._expected_totals = ExpectedTotals()
        self._looks = 0
        """Runs that look ahead, because a guess was wrong."""
        self._blind = 0
        """Runs that guess by moves alone, because nodes came to states that were not seen before."""
        self._run: _Run | None = None

    def choose(self, views: Sequence[ClassView]) -> list[int]:
        """Nodes for tasks of these classes, in order, as far as they are sure. Empty: the first task fits no node now."""
        self._run = run = _Run(views)
        if not run.ready:
            return []
        self._expected_totals.begin(views[0].session.nodes)
        if self._looks:
            self._looks -= 1
            run.look_ahead(self._expected_totals)
        by_states = self._looks > 0 or not self._blind
        rows = run.guess(self._expected_totals) if by_states else run.guess_by_moves(self._expected_totals)
        sure = run.check(rows, self._expected_totals) if rows else 0
        self._blind = _BLIND if by_states and run.hits * _SEEN < len(rows) else max(self._blind - 1, 0)
        if sure < len(views):
            self._looks, self._blind = _LOOKS, 0
        return rows[:sure]

    def placed(self, rows: Sequence[int]) -> None:
        """The tasks of the last run are on these nodes now, and nothing else has changed: its classes know what that means."""
        if self._run is not None:
            self._run.placed(rows, self._expected_totals)
            self._run = None


class _Class:
    """One class in a run."""

    def __init__(self, view: ClassView, ranking: NodeRanking) -> None:
        self.view = view
        self.ranking = ranking
        self.after: FloatArray = np.empty(0)
        """For each placement, the total of its node afterwards."""
        self.answers: Answers | None = None
        """For each placement, what the class says about its node afterwards."""
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
        self._guessed: list[int] = []
        """The node of each task, before a wrong one is put right."""
        self._states: list[int] = []
        """For each guess, the state of its node with the task on it. Empty: the run guessed by moves."""
        self._expected: list[FloatArray] = []
        """For each guess, the totals that its node is expected to have then, by class."""
        self.hits = 0
        """Guesses about a node whose state was known."""
        self._order = [self._classes[view.task.number] for view in views]
        self._nodes = views[0].session.nodes
        place = {number: i for i, number in enumerate(self._classes)}
        self._kind: Rows = np.array([place[view.task.number] for view in views], dtype=np.intp)
        """For each task, the number of its class within the run."""
        self._requests: IntArray = np.stack([each.view.task.request for each in self._classes.values()])
        self._footprints: IntArray = np.stack([each.view.task.footprint for each in self._classes.values()])

    def look_ahead(self, expected: ExpectedTotals) -> None:
        """Compute the totals of the best nodes of each class with a task of the class on them, where no run has shown them."""
        nodes, numbers = self._nodes, list(self._classes)
        columns, counts = expected.columns(numbers), Counter(each.view.task.number for each in self._order)
        unknown: dict[int, tuple[int, _Class]] = {}
        for number, each in self._classes.items():
            rows = best_rows(each.ranking.total, min(counts[number], _AHEAD))
            for before, row in expected.states_of(nodes, rows).items():
                state = expected.after(before, number, each.view.task.request)
                if state not in unknown and expected.totals(state, columns) is None:
                    unknown[state] = row, each
        if not unknown:
            return
        where: Rows = np.array([row for row, _ in unknown.values()], dtype=np.intp)
        amounts = np.array([each.view.task.request for _, each in unknown.values()]).T
        footprints = np.array([each.view.task.footprint for _, each in unknown.values()]).T
        extra = {"used": amounts, "requested": amounts, "scoring": footprints}
        at = self._with_more(where, extra)
        found = [self._ask(each, at, where)[1] for each in self._classes.values()]
        expected.keep(list(unknown), columns, np.stack(found))

    def guess(self, expected: ExpectedTotals) -> list[int]:
        """The node of each task, by the states of nodes."""
        nodes, numbers = self._nodes, list(self._classes)
        totals, moves = self._totals(), [expected.moves(numbers, number) for number in numbers]
        columns = expected.columns(numbers)
        states: dict[int, int] = {}
        """Used node -> its state."""
        seen: dict[int, FloatArray | None] = {}
        """State -> its totals, where they are known."""
        rows: list[int] = []
        for kind, row in self._best_rows(totals):
            rows.append(row)
            state = states.get(row)
            if state is None:
                state = expected.state_of(nodes, row)
            states[row] = state = expected.after(state, numbers[kind], self._requests[kind])
            self._states.append(state)
            if state not in seen:
                seen[state] = expected.totals(state, columns)
            known = seen[state]
            if known is None:
                known = self._moved(totals[:, row], moves[kind], expected.left(state))
            else:
                self.hits += 1
            self._expected.append(known)
            totals[:, row] = known
        return rows

    def guess_by_moves(self, expected: ExpectedTotals) -> list[int]:
        """The node of each task, by how totals moved before."""
        nodes, numbers = self._nodes, list(self._classes)
        totals, moves = self._totals(), [expected.moves(numbers, number) for number in numbers]
        left: dict[int, IntArray] = {}
        """Used node -> what is left of it."""
        most = self._requests.max(axis=0)
        rows: list[int] = []
        for kind, row in self._best_rows(totals):
            rows.append(row)
            free = left.get(row)
            if free is None:
                free = nodes.allocatable[:, row] - nodes.used[:, row]
            left[row] = free = free - self._requests[kind]
            if (free < most).any():
                totals[:, row] = self._moved(totals[:, row], moves[kind], free)
            else:
                totals[:, row] += moves[kind]
        return rows

    def _totals(self) -> FloatArray:
        """(classes, nodes)."""
        return np.stack([each.ranking.total for each in self._classes.values()])

    def _best_rows(self, totals: FloatArray, first: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """The class of each task and its best node, until no node takes a task. The caller updates the totals between them."""
        of_kind = list(totals)
        for kind in self._kind[first:end].tolist():
            row = int(of_kind[kind].argmax())
            if of_kind[kind].item(row) == WORST:
                return
            yield kind, row

    def _moved(self, totals: FloatArray, move: FloatArray, left: IntArray) -> FloatArray:
        """The totals of a node after a task that moves them so, with so much left."""
        return np.where((self._requests <= left).all(axis=1), totals + move, WORST)

    def check(self, rows: list[int], expected: ExpectedTotals) -> int:
        """How many of the guessed nodes are right. The first wrong one is put right and counts."""
        self._guessed = rows.copy()
        where: Rows = np.array(rows, dtype=np.intp)
        kinds = self._kind[: len(rows)]
        amounts, footprints = _sums_so_far(where, self._requests[kinds]), _sums_so_far(where, self._footprints[kinds])
        extra = {"used": amounts, "requested": amounts, "scoring": footprints}
        at = self._with_more(where, extra)
        for each in self._classes.values():
            each.answers, each.after = self._ask(each, at, where)
            if each.answers is None:
                return 0
            lost = np.flatnonzero(each.after == WORST)
            lost = lost[~each.ranking.may_lose_each(where[lost])]
            each.sure_until = int(lost[0]) if len(lost) else len(where)
        after = np.stack([each.after for each in self._classes.values()])
        sure = 0
        """Guesses up to this one are right."""
        if self._states:
            if self.hits < len(rows):
                expected.keep(self._states, expected.columns(list(self._classes)), after)
            as_expected = (after == np.array(self._expected).T).all(axis=0)
            sure = len(rows) if as_expected.all() else int(as_expected.argmin())
        at_kind = {number: np.flatnonzero(kinds == kind) for kind, number in enumerate(self._classes)}
        if sure < len(rows):
            self._learn(where, at_kind, expected)
        late = [at[at > self._classes[number].sure_until] for number, at in at_kind.items()]
        end = min((int(at[0]) for at in late if len(at)), default=len(rows))
        return end if end <= sure else self._repeat(rows, where, after, sure, end)

    def _repeat(self, rows: list[int], where: Rows, after: FloatArray, first: int, end: int) -> int:
        """`check` of the guesses from `first` to `end`, by choosing again with the true totals. `after`: (classes, placements)."""
        totals = self._totals()
        totals[:, where[:first]] = after[:, :first]  # of several placements on one node the last one stays
        number = first
        for _, row in self._best_rows(totals, first, end):
            if row != rows[number]:
                rows[number] = row
                return number + 1
            totals[:, row] = after[:, number]
            number += 1
        return number

    def _learn(self, where: Rows, at_kind: Mapping[int, Rows], expected: ExpectedTotals) -> None:
        """Keep by how much the totals of nodes moved with each placement."""
        before = _placements_before(where)
        for number, each in self._classes.items():
            with np.errstate(invalid="ignore"):
                moved = each.after - np.where(before < 0, each.ranking.total[where], each.after[before])
            expected.learn(number, moved, at_kind)

    def placed(self, rows: Sequence[int], expected: ExpectedTotals) -> None:
        last = {row: number for number, row in enumerate(rows)}
        put_right = self._guessed[: len(rows)] != list(rows)
        if put_right:  # no class was asked about this node with the last task on it
            last.pop(rows[-1])
        at = np.array(list(last.values()), dtype=np.intp)
        for each in self._classes.values():
            assert each.answers is not None
            possible, idle, future, score = each.answers
            each.view.adopt(np.array(list(last), dtype=np.intp), possible[at], idle[at], future[at], score[at])
        if self._states:
            expected.placed(self._nodes, {row: self._states[number] for row, number in last.items()})
        if put_right:
            self._nodes.changed.append(np.array(rows[-1:], dtype=np.intp))

    def _with_more(self, where: Rows, extra: dict[str, IntArray]) -> TracedFigures:
        """Nodes with these amounts added."""
        return TracedFigures(self._nodes, where, extra, np.zeros(len(where), dtype=np.int64))

    def _ask(self, each: _Class, at: TracedFigures, where: Rows) -> tuple[Answers | None, FloatArray]:
        """What a class says about nodes, and its totals there. None: figures do not determine it."""
        at.added_was_read = False
        possible, idle, future, score = each.view.judge(at, where)
        ranking = each.ranking
        totals = np.where(possible & idle & future, score if ranking.extra is None else score + ranking.extra[where], WORST)
        return None if at.added_was_read else (possible, idle, future, score), totals


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


def _placements_before(where: Rows) -> Rows:
    """For each placement the last one before it on the same node, or -1."""
    order = np.argsort(where, kind="stable")
    found: Rows = np.full(len(where), -1, dtype=np.intp)
    again = np.flatnonzero(where[order][1:] == where[order][:-1])
    found[order[again + 1]] = order[again]
    return found
