"""Nodes for tasks of several classes in a given order, with the answer of placing them one by one.

A placement changes one node for all classes. To place tasks one by one, each class would be asked about that node after each of them.
A run asks each class once:

1. Guess: each task goes to the node with the highest expected total (`expected_totals`).
2. Ask: the guess tells which tasks are on a node after each placement. Each class is asked about all these nodes together.
3. Check: the run chooses again by the true totals. The first node that is not the guessed one is still right, because the nodes before
   it are. The guesses after it are dropped.

The caller places the tasks on the nodes that are sure, and asks for the others in a further run. After a wrong guess the next runs
look ahead: the totals of each class's best nodes with one more task are computed before they guess.

Only views whose answers depend on the figures of a node can take part (`ClassView.can_mix`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Rows
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.expected_totals import ExpectedTotals
from navarch.engine.placement.node_ranking import WORST, NodeRanking, best_rows
from navarch.engine.placement.row_answer_cache import TracedFigures
from navarch.model.resources import BoolArray, FloatArray, IntArray

Answers = tuple[BoolArray, BoolArray, BoolArray, FloatArray]
"""As of `ClassView.judge`, for each placement."""
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
        """How many of the next runs look ahead, because a guess was wrong."""
        self._blind = 0
        """How many of the next runs guess by moves alone, because nodes came to states that were not seen before."""
        self._run: _Run | None = None

    def choose(self, views: Sequence[ClassView]) -> list[int]:
        """Nodes for tasks of these classes, in order, as far as they are sure. Empty: the first task fits no node now."""
        self._run = None
        classes = _classes_of(views)
        if classes is None:
            return []
        run = self._run = _Run(views, classes, self._expected_totals)
        if self._looks:
            self._looks -= 1
            run.look_ahead()
        by_states = self._looks > 0 or not self._blind
        guess = run.guess() if by_states else run.guess_by_moves()
        nodes = run.check(guess) if guess.nodes else []
        self._blind = _BLIND if by_states and guess.known * _SEEN < len(guess.nodes) else max(self._blind - 1, 0)
        if len(nodes) < len(views):
            self._looks, self._blind = _LOOKS, 0
        return nodes

    def placed(self, nodes: Sequence[int]) -> None:
        """The tasks of the last run are on these nodes now, and nothing else has changed: its classes know what that means."""
        if self._run is not None:
            self._run.placed(nodes)
            self._run = None


class _Class:
    """A class of tasks in a run."""

    def __init__(self, view: ClassView, ranking: NodeRanking) -> None:
        self.number = view.task.number
        self.view = view
        self.ranking = ranking
        """The totals of all nodes before the run."""

    def ask(self, at: TracedFigures, where: Rows) -> tuple[Answers | None, FloatArray]:
        """Its answers about nodes in the states `at`, and their totals. None: figures do not determine the answers."""
        at.added_was_read = False
        possible, idle, future, score = self.view.judge(at, where)
        extra = self.ranking.extra
        totals = np.where(possible & idle & future, score if extra is None else score + extra[where], WORST)
        return None if at.added_was_read else (possible, idle, future, score), totals


def _classes_of(views: Sequence[ClassView]) -> list[_Class] | None:
    """The classes of a run, each once. None: for one of them no node has room now."""
    found: dict[int, _Class] = {}
    for view in views:
        if view.task.number not in found:
            ranking = view.ranking()
            if ranking is None:
                return None
            found[view.task.number] = _Class(view, ranking)
    return list(found.values())


class _Guess(Struct):
    """The lists have one element a placement: a task with the node that was guessed for it."""

    nodes: list[int]
    """Fewer than there are tasks, if no node was expected to take the next one."""
    states: list[int] = field(default_factory=list)
    """The state of the node with the task on it. Empty: the guess is one by moves."""
    totals: list[FloatArray] = field(default_factory=list)
    """The totals that the node is expected to have then, by class. Empty as well in a guess by moves."""
    known: int = 0
    """Placements after which the state of the node was known."""


class _Run:
    """Arrays called totals are (classes, nodes) or (classes, placements): the score that a class gives a node, or minus infinity where
    its task does not fit."""

    def __init__(self, views: Sequence[ClassView], classes: Sequence[_Class], expected: ExpectedTotals) -> None:
        self._classes = classes
        self._numbers = [each.number for each in classes]
        place = {number: i for i, number in enumerate(self._numbers)}
        self._class_of: Rows = np.array([place[view.task.number] for view in views], dtype=np.intp)
        """For each task, the place of its class in `classes`."""
        self._requests: IntArray = np.stack([each.view.task.request for each in classes])
        self._footprints: IntArray = np.stack([each.view.task.footprint for each in classes])
        self._nodes = views[0].session.nodes
        self._expected = expected
        expected.begin(self._nodes)
        self._guess = _Guess([])
        self._answers: list[Answers] = []
        """Of each class, about the node of each placement with the task on it."""

    def look_ahead(self) -> None:
        """Compute the totals of the best nodes of each class with a task of the class on them, where no run has shown them."""
        expected = self._expected
        columns, counts = expected.columns(self._numbers), np.bincount(self._class_of).tolist()
        unknown: dict[int, tuple[int, int]] = {}
        """State -> a node that comes to it, and the class of the task that brings it there."""
        for place, each in enumerate(self._classes):
            best = best_rows(each.ranking.total, min(counts[place], _AHEAD))
            for before, row in expected.states_of(self._nodes, best).items():
                state = expected.after(before, each.number, self._requests[place])
                if state not in unknown and expected.totals(state, columns) is None:
                    unknown[state] = row, place
        if not unknown:
            return
        where, coming = (np.array(column, dtype=np.intp) for column in zip(*unknown.values()))
        at = self._with_more(where, self._requests[coming].T, self._footprints[coming].T)
        expected.keep(list(unknown), columns, np.stack([each.ask(at, where)[1] for each in self._classes]))

    # guessing

    def guess(self) -> _Guess:
        """By the states of nodes: a state has the totals that an earlier run saw."""
        expected, nodes, after, expected_totals = self._expected, list[int](), list[int](), list[FloatArray]()
        totals, moves, columns, known = self._totals(), self._moves(), expected.columns(self._numbers), 0
        states: dict[int, int] = {}
        """Used node -> its state."""
        seen: dict[int, FloatArray | None] = {}
        """State -> its totals, where they are known."""
        for place, row in self._best_nodes(totals):
            state = states.get(row)
            if state is None:
                state = expected.state_of(self._nodes, row)
            states[row] = state = expected.after(state, self._numbers[place], self._requests[place])
            if state not in seen:
                seen[state] = expected.totals(state, columns)
            found = seen[state]
            if found is None:
                found = self._moved(totals[:, row], moves[place], expected.left(state))
            else:
                known += 1
            nodes.append(row)
            after.append(state)
            expected_totals.append(found)
            totals[:, row] = found
        return _Guess(nodes, after, expected_totals, known)

    def guess_by_moves(self) -> _Guess:
        """By how totals moved before with a task of the class."""
        totals, moves, nodes = self._totals(), self._moves(), list[int]()
        left: dict[int, IntArray] = {}
        """Used node -> what is left of it."""
        most = self._requests.max(axis=0)
        for place, row in self._best_nodes(totals):
            nodes.append(row)
            free = left.get(row)
            if free is None:
                free = self._nodes.allocatable[:, row] - self._nodes.used[:, row]
            left[row] = free = free - self._requests[place]
            if (free < most).any():
                totals[:, row] = self._moved(totals[:, row], moves[place], free)
            else:
                totals[:, row] += moves[place]
        return _Guess(nodes)

    def _totals(self) -> FloatArray:
        """Of all nodes before the run."""
        return np.stack([each.ranking.total for each in self._classes])

    def _moves(self) -> list[FloatArray]:
        """For each class, by how much a task of it is expected to move the totals of its node."""
        return [self._expected.moves(self._numbers, number) for number in self._numbers]

    def _best_nodes(self, totals: FloatArray, first: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """For each task from `first` to `end` the place of its class and its best node, until a task fits nowhere. The caller updates
        the totals after each of them."""
        of_class = list(totals)
        for place in self._class_of[first:end].tolist():
            row = int(of_class[place].argmax())
            if of_class[place].item(row) == WORST:
                return
            yield place, row

    def _moved(self, totals: FloatArray, move: FloatArray, left: IntArray) -> FloatArray:
        """The totals of a node after a task that moves them so, with so much left."""
        return np.where((self._requests <= left).all(axis=1), totals + move, WORST)

    # asking and checking

    def check(self, guess: _Guess) -> list[int]:
        """The nodes that are sure: the guessed ones up to the first wrong one, and the right one in its place."""
        self._guess = guess
        where: Rows = np.array(guess.nodes, dtype=np.intp)
        classes = self._class_of[: len(where)]
        at = self._with_more(where, _sums_so_far(where, self._requests[classes]), _sums_so_far(where, self._footprints[classes]))
        after: list[FloatArray] = []
        for each in self._classes:
            answers, totals = each.ask(at, where)
            if answers is None:
                return []
            self._answers.append(answers)
            after.append(totals)
        true = np.stack(after)
        right = self._as_expected(guess, true)
        if right < len(where):
            self._learn(where, true)
        end = self._end(where, true)
        return guess.nodes[:end] if end <= right else self._choose_again(guess.nodes, true, right, end)

    def _as_expected(self, guess: _Guess, true: FloatArray) -> int:
        """The first placement with other totals than expected. The nodes up to this one are right, its own included."""
        if not guess.states:
            return 0
        if guess.known < len(guess.nodes):
            self._expected.keep(guess.states, self._expected.columns(self._numbers), true)
        equal = (true == np.array(guess.totals).T).all(axis=0)
        return len(equal) if equal.all() else int(equal.argmin())

    def _end(self, where: Rows, true: FloatArray) -> int:
        """The first placement that the totals do not decide: before it, a node that had an extreme of a score which is normalised took
        no more tasks of its class, so that all nodes may have other totals now."""
        end, classes = len(where), self._class_of[: len(where)]
        for place, each in enumerate(self._classes):
            full = np.flatnonzero(true[place] == WORST)
            lost = full[~each.ranking.may_lose_each(where[full])]
            if len(lost):
                later = np.flatnonzero(classes[lost[0] + 1 : end] == place)
                end = int(lost[0] + 1 + later[0]) if len(later) else end
        return end

    def _choose_again(self, guessed: list[int], true: FloatArray, first: int, end: int) -> list[int]:
        """The sure nodes up to `end`. Those up to `first` are right."""
        totals, nodes = self._totals(), guessed[:first]
        totals[:, nodes] = true[:, :first]  # of several placements on one node the last one stays
        for number, (_, row) in enumerate(self._best_nodes(totals, first, end), first):
            nodes.append(row)
            if row != guessed[number]:
                break
            totals[:, row] = true[:, number]
        return nodes

    def _learn(self, where: Rows, true: FloatArray) -> None:
        """Keep by how much the totals of nodes moved with each placement."""
        before, classes = _placements_before(where), self._class_of[: len(where)]
        placements = {number: np.flatnonzero(classes == place) for place, number in enumerate(self._numbers)}
        for each, totals in zip(self._classes, true):
            with np.errstate(invalid="ignore"):
                moved = totals - np.where(before < 0, each.ranking.total[where], totals[before])
            self._expected.learn(each.number, moved, placements)

    def placed(self, nodes: Sequence[int]) -> None:
        """The first tasks are on these nodes now: hand the answers about them to the views."""
        guess = self._guess
        last = {row: number for number, row in enumerate(nodes)}
        """Node -> its last placement."""
        put_right = guess.nodes[: len(nodes)] != list(nodes)
        if put_right:  # no class was asked about this node with the last task on it
            last.pop(nodes[-1])
        rows, at = np.array(list(last), dtype=np.intp), np.array(list(last.values()), dtype=np.intp)
        for each, (possible, idle, future, score) in zip(self._classes, self._answers):
            each.view.adopt(rows, possible[at], idle[at], future[at], score[at])
        if guess.states:
            self._expected.placed(self._nodes, {row: guess.states[number] for row, number in last.items()})
        if put_right:
            self._nodes.changed.append(np.array(nodes[-1:], dtype=np.intp))

    def _with_more(self, where: Rows, amounts: IntArray, footprints: IntArray) -> TracedFigures:
        """Nodes with these amounts (R, n) and footprints (2, n) added."""
        extra = {"used": amounts, "requested": amounts, "scoring": footprints}
        return TracedFigures(self._nodes, where, extra, np.zeros(len(where), dtype=np.int64))


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
