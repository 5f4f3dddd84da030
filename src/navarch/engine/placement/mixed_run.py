"""Nodes for tasks of several classes in a given order, with the answer of placing them one by one.

A run guesses first: each task goes to the node with the highest expected total. A node that the run has used is expected to have the
totals that an equal node with the same figures had in an earlier run, or else to move as other nodes did with a task of that class.
The guess fixes the figures of the used nodes after each placement. So every class is asked once about all of them, in one step, and
the guess is checked against those totals. The nodes up to the first wrong guess are returned, that one put right. After a wrong guess
the next runs look ahead: the totals of each class's best nodes with one more task are computed before they guess.

Only views whose answers depend on the figures of a node can take part (`ClassView.can_mix`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.node_ranking import WORST, NodeRanking, best_rows
from navarch.engine.placement.node_state import NodeState
from navarch.engine.placement.row_answer_cache import Asked
from navarch.model.resources import BoolArray, FloatArray, IntArray

Answers = tuple[BoolArray, BoolArray, BoolArray, FloatArray]
_AHEAD = 48
"""Nodes of a class whose totals with one more task are computed before a run, at most."""
_LOOKS = 8
"""Runs that look ahead after a wrong guess."""
_BLIND, _SEEN = 16, 4
"""So many runs guess by moves alone after one in which fewer than one state in so many was known."""
_KEPT = 1 << 14
"""Figures of nodes whose totals are kept; then they are forgotten."""


class Experience:
    """What the runs of a session have shown about totals. Nodes with equal figures are in one state, which has a number."""

    def __init__(self) -> None:
        self._moves: dict[tuple[int, int], float] = {}
        """(class that is asked, class of the task) -> by how much the total of a node moved with the task."""
        self._columns: dict[int, int] = {}
        """Class -> its column in the table."""
        self._read = 0
        """How much of the nodes' change log is known."""
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[bytes, int] = {}
        """Figures of a node -> its state."""
        self._figures: list[tuple[bytes, IntArray]] = []
        """State -> the size of the node, and what is left of it."""
        self._after: dict[tuple[int, int], int] = {}
        """(state, class) -> the state with one more task of the class."""
        self._table: FloatArray = np.full((64, max(len(self._columns), 1)), np.nan)
        """(states, columns): totals; not a number: not asked."""
        self._of_row: Rows = np.full(0, -1, dtype=np.intp)
        """Node -> its state, -1 where it is not known."""

    def begin(self, nodes: NodeState) -> None:
        """A run begins. The states of earlier runs are forgotten where there are too many."""
        if len(self._figures) > _KEPT:
            self._forget()
        if len(self._of_row) != len(nodes):
            self._of_row = np.full(len(nodes), -1, dtype=np.intp)
            self._read = len(nodes.changed)
        self._read_changes(nodes)

    def _read_changes(self, nodes: NodeState) -> None:
        for rows in nodes.changed[self._read :]:
            self._of_row[rows] = -1
        self._read = len(nodes.changed)

    def placed(self, nodes: NodeState, states: Mapping[int, int]) -> None:
        """A run has changed nodes: these are in these states now."""
        self._read_changes(nodes)
        self._of_row[list(states)] = list(states.values())

    def state_of(self, nodes: NodeState, row: int) -> int:
        """The state of a node."""
        state: int = self._of_row.item(row)
        if state < 0:
            size = nodes.allocatable[:, row]
            self._of_row[row] = state = self.state(size.tobytes(), size - nodes.used[:, row])
        return state

    def states_of(self, nodes: NodeState, rows: Rows) -> dict[int, int]:
        """The states of these nodes, each with one of the nodes in it."""
        for row in rows[self._of_row[rows] < 0].tolist():
            self.state_of(nodes, row)
        return dict(zip(self._of_row[rows].tolist(), rows.tolist()))

    def moves(self, numbers: Sequence[int], kind: int) -> FloatArray:
        """By how much totals are expected to move with a task of this class."""
        return np.array([self._moves.get((asked, kind), 0.0) for asked in numbers])

    def columns(self, numbers: Sequence[int]) -> Rows:
        """The columns of these classes in the table, which has them afterwards."""
        found = [self._columns.setdefault(number, len(self._columns)) for number in numbers]
        self._grow(len(self._figures), len(self._columns))
        return np.array(found, dtype=np.intp)

    def state(self, size: bytes, left: IntArray) -> int:
        """The state of a node of this size with so much left."""
        figures = size + left.tobytes()
        found = self._numbers.get(figures)
        if found is None:
            found = self._numbers[figures] = len(self._figures)
            self._figures.append((size, left))
            self._grow(len(self._figures), len(self._columns))
        return found

    def after(self, state: int, kind: int, request: IntArray) -> int:
        """The state of a node with one more task of the class."""
        found = self._after.get((state, kind))
        if found is None:
            size, left = self._figures[state]
            found = self._after[state, kind] = self.state(size, left - request)
        return found

    def left(self, state: int) -> IntArray:
        return self._figures[state][1]

    def totals(self, state: int, columns: Rows) -> FloatArray | None:
        """Totals of a node in this state for the classes of these columns; None unless all are known."""
        known: FloatArray = self._table[state, columns]
        return None if math.isnan(known.max()) else known

    def keep(self, states: Sequence[int], columns: Rows, totals: FloatArray) -> None:
        """`totals`: (classes, states)."""
        self._table[np.array(states, dtype=np.intp)[:, None], columns] = totals.T

    def learn(self, asked: int, changes: FloatArray, at_kind: Mapping[int, Rows]) -> None:
        """Keep the last change of the totals of a class with a task of each class."""
        for kind, at in at_kind.items():
            moved = at[np.isfinite(changes[at])]
            if len(moved):
                self._moves[asked, kind] = float(changes[moved[-1]])

    def _grow(self, states: int, columns: int) -> None:
        height, width = self._table.shape
        if states > height or columns > width:
            table = np.full((max(2 * height, states) if states > height else height, max(columns, width)), np.nan)
            table[:height, :width] = self._table
            self._table = table


class MixedRuns:
    """The runs of one session."""

    def __init__(self) -> None:
        self._experience = Experience()
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
        self._experience.begin(views[0].session.nodes)
        if self._looks:
            self._looks -= 1
            run.look_ahead(self._experience)
        by_states = self._looks > 0 or not self._blind
        rows = run.guess(self._experience) if by_states else run.guess_by_moves(self._experience)
        sure = run.check(rows, self._experience) if rows else 0
        self._blind = _BLIND if by_states and run.hits * _SEEN < len(rows) else max(self._blind - 1, 0)
        if sure < len(views):
            self._looks, self._blind = _LOOKS, 0
        return rows[:sure]

    def placed(self, rows: Sequence[int]) -> None:
        """The tasks of the last run are on these nodes now, and nothing else has changed: its classes know what that means."""
        if self._run is not None:
            self._run.placed(rows, self._experience)
            self._run = None


class _Class:
    """One class in a run."""

    def __init__(self, view: ClassView, ranking: NodeRanking) -> None:
        self.view = view
        self.ranking = ranking
        self.after: FloatArray = np.empty(0)
        """By placement: the total of its node afterwards."""
        self.answers: Answers | None = None
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
        self._guessed: list[int] = []
        self._states: list[int] = []
        """Of the node of each guess, with the task on it."""
        self._expected: list[FloatArray] = []
        """The totals that it is expected to have for each class."""
        self.hits = 0
        """Guesses about a node whose state was known."""
        self._order = [self._classes[view.task.number] for view in views]
        self._nodes = views[0].session.nodes
        place = {number: i for i, number in enumerate(self._classes)}
        self._kind: Rows = np.array([place[view.task.number] for view in views], dtype=np.intp)
        """Of each task, the number of its class within the run."""
        self._requests: IntArray = np.stack([each.view.task.request for each in self._classes.values()])
        self._footprints: IntArray = np.stack([each.view.task.footprint for each in self._classes.values()])

    def look_ahead(self, experience: Experience) -> None:
        """Compute the totals of the best nodes of each class with a task of the class on them, where no run has shown them."""
        nodes, numbers = self._nodes, list(self._classes)
        columns, counts = experience.columns(numbers), Counter(each.view.task.number for each in self._order)
        unknown: dict[int, tuple[int, _Class]] = {}
        for number, each in self._classes.items():
            rows = best_rows(each.ranking.total, min(counts[number], _AHEAD))
            for before, row in experience.states_of(nodes, rows).items():
                state = experience.after(before, number, each.view.task.request)
                if state not in unknown and experience.totals(state, columns) is None:
                    unknown[state] = row, each
        if not unknown:
            return
        where: Rows = np.array([row for row, _ in unknown.values()], dtype=np.intp)
        amounts = np.array([each.view.task.request for _, each in unknown.values()]).T
        footprints = np.array([each.view.task.footprint for _, each in unknown.values()]).T
        extra = {"used": amounts, "requested": amounts, "scoring": footprints}
        found = [self._ask(each, where, extra)[1] for each in self._classes.values()]
        experience.keep(list(unknown), columns, np.stack(found))

    def guess(self, experience: Experience) -> list[int]:
        """The node of each task, by the states of nodes."""
        nodes, numbers = self._nodes, list(self._classes)
        totals, moves = self._totals(), [experience.moves(numbers, number) for number in numbers]
        columns = experience.columns(numbers)
        states: dict[int, int] = {}
        """Used node -> its state."""
        seen: dict[int, FloatArray | None] = {}
        """State -> its totals, where they are known."""
        rows: list[int] = []
        for kind, row in self._best_rows(totals):
            rows.append(row)
            state = states.get(row)
            if state is None:
                state = experience.state_of(nodes, row)
            states[row] = state = experience.after(state, numbers[kind], self._requests[kind])
            self._states.append(state)
            if state not in seen:
                seen[state] = experience.totals(state, columns)
            known = seen[state]
            if known is None:
                known = self._moved(totals[:, row], moves[kind], experience.left(state))
            else:
                self.hits += 1
            self._expected.append(known)
            totals[:, row] = known
        return rows

    def guess_by_moves(self, experience: Experience) -> list[int]:
        """The node of each task, by how totals moved before."""
        nodes, numbers = self._nodes, list(self._classes)
        totals, moves = self._totals(), [experience.moves(numbers, number) for number in numbers]
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

    def _best_rows(self, totals: FloatArray) -> Iterator[tuple[int, int]]:
        """The class of each task and its best node, until no node takes a task. The caller updates the totals between them."""
        for kind in self._kind.tolist():
            row = int(totals[kind].argmax())
            if totals[kind, row] == WORST:
                return
            yield kind, row

    def _moved(self, totals: FloatArray, move: FloatArray, left: IntArray) -> FloatArray:
        """The totals of a node after a task that moves them so, with so much left."""
        return np.where((self._requests <= left).all(axis=1), totals + move, WORST)

    def check(self, rows: list[int], experience: Experience) -> int:
        """How many of the guessed nodes are right. The first wrong one is put right and counts."""
        self._guessed = rows.copy()
        where: Rows = np.array(rows, dtype=np.intp)
        kinds = self._kind[: len(rows)]
        amounts, footprints = _sums_so_far(where, self._requests[kinds]), _sums_so_far(where, self._footprints[kinds])
        extra = {"used": amounts, "requested": amounts, "scoring": footprints}
        for each in self._classes.values():
            each.answers, each.after = self._ask(each, where, extra)
            if each.answers is None:
                return 0
            lost = np.flatnonzero(each.after == WORST)
            lost = lost[~each.ranking.may_lose_each(where[lost])]
            each.sure_until = int(lost[0]) if len(lost) else len(where)
        after = np.stack([each.after for each in self._classes.values()])
        sure = 0
        """Placements up to this one are right."""
        if self._states:
            if self.hits < len(rows):
                experience.keep(self._states, experience.columns(list(self._classes)), after)
            as_expected = (after == np.array(self._expected).T).all(axis=0)
            sure = len(rows) if as_expected.all() else int(as_expected.argmin())
        at_kind = {number: np.flatnonzero(kinds == kind) for kind, number in enumerate(self._classes)}
        if sure < len(rows):
            return self._compare(rows, where, at_kind, sure, experience)
        over = [at[at > self._classes[number].sure_until] for number, at in at_kind.items()]
        return min((int(at[0]) for at in over if len(at)), default=len(rows))

    def _compare(self, rows: list[int], where: Rows, at_kind: Mapping[int, Rows], sure: int, experience: Experience) -> int:
        """`check` by comparing each guess with all used nodes and the best other node. `sure`: guesses up to here are right."""
        used, place, before = _last_placements(where, sure)
        own = _placements_before(where)
        stop, right = len(rows), -1
        for number, each in self._classes.items():
            total = each.ranking.total
            with np.errstate(invalid="ignore"):
                experience.learn(number, each.after - np.where(own < 0, total[where], each.after[own]), at_kind)
            at = at_kind[number]
            late = at[at > each.sure_until]
            if len(late) and late[0] < stop:
                stop, right = int(late[0]), -1
            at = at[(at >= sure) & (at < stop)]
            if not len(at):
                continue
            seen = before[at - sure]
            known = np.where(seen < 0, total[used], each.after[seen])
            across = np.arange(len(at))
            value = known[across, place[at]]
            best = known.argmax(axis=1)
            most, row = known[across, best], used[best]
            rest = total.copy()
            rest[used] = WORST
            other = int(rest.argmax())
            beside = (rest[other] > most) | ((rest[other] == most) & (other < row))
            most, row = np.where(beside, rest[other], most), np.where(beside, other, row)
            wrong = (most > value) | ((most == value) & (row < where[at]))
            found = np.flatnonzero((value == WORST) | wrong)
            if len(found):
                stop, right = int(at[found[0]]), -1 if value[found[0]] == WORST else int(row[found[0]])
        if right < 0:
            return stop
        rows[stop] = right
        return stop + 1

    def placed(self, rows: Sequence[int], experience: Experience) -> None:
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
            experience.placed(self._nodes, {row: self._states[number] for row, number in last.items()})
        if put_right:
            self._nodes.changed.append(np.array(rows[-1:], dtype=np.intp))

    def _ask(self, each: _Class, where: Rows, extra: dict[str, IntArray]) -> tuple[Answers | None, FloatArray]:
        """What a class says about nodes with these amounts added, and its totals there. None: figures do not determine it."""
        at = Asked(self._nodes, where, extra, np.zeros(len(where), dtype=np.int64))
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


def _last_placements(where: Rows, start: int) -> tuple[Rows, Rows, Rows]:
    """The nodes of a run, ascending; which of them each placement is on; and for each placement from `start` on and each node, the
    last placement on that node before it, or -1: (n - start, nodes)."""
    used, place = np.unique(where, return_inverse=True)
    marks: Rows = np.full((len(where) - start + 1, len(used)), -1, dtype=np.intp)
    marks[0, place[:start]] = np.arange(start)  # the last one on a node is what is kept
    numbers = np.arange(start, len(where))
    marks[numbers - start + 1, place[start:]] = numbers
    return used, place, np.maximum.accumulate(marks, axis=0)[:-1]


def _placements_before(where: Rows) -> Rows:
    """For each placement the last one before it on the same node, or -1."""
    order = np.argsort(where, kind="stable")
    found: Rows = np.full(len(where), -1, dtype=np.intp)
    again = np.flatnonzero(where[order][1:] == where[order][:-1])
    found[order[again + 1]] = order[again]
    return found
