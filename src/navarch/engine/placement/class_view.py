"""The view of one task class: a mask and a score vector over all nodes, updated by changed rows.

A `ClassView` is made when a class is first used. Afterwards only rows in the change log since its last update are computed again.
Equal tasks are placed in one step (`choose`): a greedy run over the k best nodes with their ladders. The result equals placing
them one by one, because a placement changes only its own node, or, for tasks with anti-affinity to each other, excludes its
domain. Cost: bench/decide, bench/predicates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.placement.greedy_run import greedy_run
from navarch.engine.placement.node_ranking import WORST, NodeRanking
from navarch.engine.placement.refusals import count_refusals
from navarch.engine.placement.row_answer_cache import FEW, Answer, RowAnswerCache
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.placement.static_cache import static_mask, static_raw
from navarch.engine.reasons import Reason
from navarch.engine.steps import NODES_A_STEP
from navarch.model.resources import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from navarch.engine.session import Session

_FITS = np.int64(-(1 << 62))
"""An amount that fits into whatever is free."""
_UNREAD = 64
"""Entries of the change log, and rows that they name, that are read one by one."""
_SPARSE = 64
"""Rows are few if they are fewer than one in this many nodes."""


def _distinct(rows: Rows, size: int) -> Rows:
    """Each row once, ascending. A flag a node is quicker than sorting where many rows are named, and a set where few are."""
    if len(rows) < _UNREAD:
        return np.array(sorted(set(rows.tolist())), dtype=np.intp)
    if len(rows) * _SPARSE < size:
        return np.unique(rows)
    named = np.zeros(size, dtype=bool)
    named[rows] = True
    return np.flatnonzero(named)


def _as_slice(dims: Rows) -> Rows | slice:
    """The same indices as a slice where they follow each other: it selects without copying."""
    return slice(int(dims[0]), int(dims[-1]) + 1) if len(dims) and dims[-1] - dims[0] == len(dims) - 1 else dims


class ClassView:
    keeps_answers: ClassVar[bool] = True
    """Keep answers about nodes from one choice to the next. False: compute them anew, which must give the same choices."""

    def __init__(self, session: Session, task: TaskClass) -> None:
        self.session = session
        self.task = task
        nodes = session.nodes
        filters, scorers = session.filters_for(task), session.scorers_for(task)
        self.row_filters = [f for f in filters if f.scope is Scope.ROW]
        self.global_filters = [f for f in filters if f.scope is Scope.GLOBAL]
        self.row_scorers = [s for s in scorers if s.scope is Scope.ROW and not s.normalises]
        self.normalised = [s for s in scorers if s.normalises and s.scope is not Scope.GLOBAL]
        self.global_scorers = [s for s in scorers if s.scope is Scope.GLOBAL]
        moving = any(s.scope is Scope.ROW for s in self.normalised)
        self.devices = session.devices if session.devices is not None and shares_devices(task) else None
        self._alone = self.devices is not None or moving
        self.figures_only = not self.global_filters and all(f.figures_only for f in self.row_filters)
        """Static filters aside, feasibility depends on nothing but the columns of `Figures`."""
        asked = task.request * 0 if session.resources_by_filters else task.request
        self.dims: Rows = np.flatnonzero(asked)
        self._picked: Rows | slice = _as_slice(self.dims)
        self.need: IntArray = task.request[self.dims, None]
        self._claimable: BoolArray | None = None
        """Which of the resources devices may serve; None: none of them."""
        if session.claimable_dims:
            found = np.isin(self.dims, list(session.claimable_dims))
            self._claimable = found[:, None] if found.any() else None
        size = len(nodes)
        session.steps.spend(1 + size // NODES_A_STEP * (2 + len(filters) + len(scorers)) // 4)
        hard_shard = session.shard if session.shard_is_hard else None
        self.static: BoolArray = np.ones(size, dtype=bool) if hard_shard is None else hard_shard.copy()
        for f in filters:
            if f.scope is Scope.STATIC:
                self.static &= static_mask(session, f, task)
        self.base: FloatArray = np.zeros(size)
        for s in scorers:
            if s.scope is Scope.STATIC and not s.normalises:
                self.base += s.weight * static_raw(session, s, task)
        self.raw: list[FloatArray] = [
            static_raw(session, s, task) if s.scope is Scope.STATIC else s.raw(task, nodes) for s in self.normalised
        ]
        self.normal: list[tuple[float, float, FloatArray] | None] = [None] * len(self.normalised)
        self.possible: BoolArray = np.empty(size, dtype=bool)
        """Passes every filter but resources."""
        self.idle: BoolArray = np.empty(size, dtype=bool)
        self.future: BoolArray = np.empty(size, dtype=bool)
        self.score: FloatArray = np.empty(size)
        self.possible, self.idle, self.future, self.score = self.judge(nodes)
        self.read = len(nodes.changed)
        self._fixed: BoolArray | None = None
        self._merits: tuple[float, FloatArray] | None = None
        self.is_local = not (self.global_filters or self.global_scorers or self.normalised)
        """Every answer about a node depends on that node alone."""
        self._refused: tuple[int, FitErrors] | None = None
        self._row_answers: RowAnswerCache | None = None
        self._looks_ahead = self.keeps_answers and self.figures_only and self.devices is None and not moving
        parts = session.shard is not None and not session.shard_is_hard
        local = not (self.global_filters or self.global_scorers or moving or parts)
        self._may_rank = self.keeps_answers and local and not session.semantics.releasing_is_apart
        self._ranking: NodeRanking | None = None
        self._singles = self._runs = 0

    def judge(self, at: Figures, rows: Rows | slice | None = None) -> tuple[BoolArray, BoolArray, BoolArray, FloatArray]:
        """Row answers for any columns: passes filters, fits idle resources, fits future idle resources, plain score. `rows`: the
        node rows of the columns, where they differ from those of `at`."""
        task, dims, need = self.task, self._picked, self.need
        rows = at.rows if rows is None else rows
        free = at.allocatable[dims] - at.used[dims]
        if self._claimable is not None:
            need = np.where(self._claimable & (at.allocatable[dims] == 0), _FITS, need)
        idle: BoolArray = np.logical_and.reduce(need <= free, axis=0)
        if self.session.semantics.releasing_is_apart:
            future: BoolArray = idle | np.all(need <= at.releasing[dims] - at.pipelined[dims], axis=0)
        elif at.nothing_leaves:
            future = idle.copy()
        else:
            free += at.releasing[dims]
            free -= at.pipelined[dims]
            future = np.logical_and.reduce(need <= free, axis=0)
        if self.devices is not None:
            idle &= self.devices.fits(task, at.idle, rows)
            future &= self.devices.fits(task, at.future_idle, rows)
        possible = self.static[rows]
        for f in self.row_filters:
            possible = possible & f.mask(task, at)
            now = f.mask_now(task, at)
            if now is not None:
                idle &= now
        score = self.base[rows]
        for s in self.row_scorers:
            raw = s.raw(task, at)
            score = score + (raw if s.weight == 1 else s.weight * raw)
        return possible, idle, future, score

    def refresh(self, *, look_ahead: bool = True) -> None:
        """Update the rows that the change log names since the last update. `look_ahead`: single tasks follow, so that answers about
        their next figures are worth computing."""
        nodes = self.session.nodes
        log = nodes.changed
        if self.read == len(log):
            return
        unread, self.read = log[self.read :], len(log)
        if look_ahead and self._looks_ahead and len(unread) <= _UNREAD and sum(map(len, unread)) <= _UNREAD:
            few = {row for part in unread for row in part.tolist()}
            answers = self._answers_about(few) if len(few) <= FEW else []
            if answers:
                for row, answer in zip(few, answers):
                    self._refresh_row(row, answer)
                return
            if answers is None:
                self._looks_ahead = False
        rows = unread[0] if len(unread) == 1 else _distinct(np.concatenate(unread), len(nodes))
        at = nodes.at(rows)
        self._put(rows, *self.judge(at))
        for number, scorer in enumerate(self.normalised):
            if scorer.scope is Scope.ROW:
                self.raw[number][rows] = scorer.raw(self.task, at)
                self.normal[number] = None

    def adopt(self, rows: Rows, possible: BoolArray, idle: BoolArray, future: BoolArray, score: FloatArray) -> None:
        """Answers about all rows that the change log names since the last update, where a run has computed them already."""
        self.read = len(self.session.nodes.changed)
        self._put(rows, possible, idle, future, score)

    def _put(self, rows: Rows, possible: BoolArray, idle: BoolArray, future: BoolArray, score: FloatArray) -> None:
        self.possible[rows], self.idle[rows], self.future[rows], self.score[rows] = possible, idle, future, score
        if self._merits is not None:
            self._merits[1][rows] = self._merit(rows, self._merits[0])
        if self._ranking is not None and not self._ranking.repair(rows, possible & idle & future, score):
            self._ranking = None

    def _answers_about(self, rows: set[int]) -> list[Answer] | None:
        if self._row_answers is None:
            self._row_answers = RowAnswerCache(self.session.nodes, self.task, self.judge, self.static, self.base)
        return self._row_answers.of(rows)

    def _refresh_row(self, row: int, answer: Answer) -> None:
        possible, idle, future, score = answer
        self.possible[row], self.idle[row], self.future[row], self.score[row] = possible, idle, future, score
        if self._merits is not None:
            at_once, merits = self._merits
            merits[row] = score + at_once * idle if possible and future else WORST
        if self._ranking is not None and not self._ranking.repair_row(row, possible and idle and future, score):
            self._ranking = None

    def merits(self, at_once: float) -> FloatArray:
        """Scores of the nodes that can take the task now or later, plus `at_once` where now; minus infinity elsewhere. Updated by
        changed rows, and only for a view that `is_local`."""
        self.refresh()
        if self._merits is None or self._merits[0] != at_once:
            self._merits = (at_once, self._merit(slice(None), at_once))
        return self._merits[1]

    def _merit(self, rows: Rows | slice, at_once: float) -> FloatArray:
        takes = self.possible[rows] & self.future[rows]
        return np.where(takes, self.score[rows] + at_once * self.idle[rows], WORST)

    def feasible(self) -> BoolArray:
        """Nodes that pass every filter now, resources aside."""
        self.refresh()
        out = self.possible
        for f in self.global_filters:
            out = out & f.mask(self.task, self.session.nodes)
        return out

    def fits_now(self) -> bool:
        """Whether some node has room for one such task at this moment; rules that look at other pods are not asked."""
        self.refresh(look_ahead=False)
        return bool((self.possible & self.idle).any())

    def passes(self, row: int) -> bool:
        """Whether one node passes every filter now, resources aside: cheaper than `feasible` inside a search."""
        self.refresh()
        if not self.possible[row]:
            return False
        at = self.session.nodes.at(np.array([row])) if self.global_filters else None
        return at is None or all(f.mask(self.task, at)[0] for f in self.global_filters)

    def admits(self, row: int) -> bool:
        """As `passes`, without updating the class's figures: for what-if trials."""
        if not self.static[row]:
            return False
        at = self.session.nodes.at(np.array([row]))
        return all(f.mask(self.task, at)[0] for f in (*self.row_filters, *self.global_filters))

    def refusal_at(self, row: int) -> tuple[list[str], bool]:
        """The reasons of the first filter that refuses this node, and whether no eviction could change it."""
        at = self.session.nodes.at(np.array([row]))
        for f in self.session.filters_for(self.task):
            said = [r for r in f.explain(self.task, at) if r.refused[0]]
            if said:
                return [r.message for r in said], any(np.ravel(r.unresolvable)[0] for r in said)
        return [], False

    def slots(self, most: int) -> IntArray:
        """An upper bound on the further tasks of the class that each node can take, resources in release included; at most `most`.
        Filters on other pods are not asked."""
        self.refresh()
        room: IntArray = np.where(self.possible & self.future, most, 0)
        if len(self.dims):
            nodes, dims = self.session.nodes, self.dims
            free = nodes.allocatable[dims] - nodes.used[dims] + nodes.releasing[dims] - nodes.pipelined[dims]
            each = free // np.maximum(self.need, 1)
            if self._claimable is not None:
                each = np.where(self._claimable & (nodes.allocatable[dims] == 0), most, each)
            room = np.minimum(room, each.min(axis=0))
        return np.maximum(room, 0)

    def unresolvable(self) -> BoolArray:
        """Nodes where no eviction can make room for the class."""
        session, task = self.session, self.task
        if self._fixed is None:
            foreign = ~session.shard if session.shard is not None and session.shard_is_hard else None
            self._fixed = np.zeros(len(session.nodes), dtype=bool) if foreign is None else foreign
            for f in session.filters_for(task):
                if f.scope is Scope.STATIC:
                    for refusal in f.explain(task, session.nodes):
                        self._fixed |= refusal.refused & refusal.unresolvable
        out = self._fixed
        for f in (*self.row_filters, *self.global_filters):
            if not f.resolvable:
                for refusal in f.explain(task, session.nodes):
                    out = out | (refusal.refused & refusal.unresolvable)
        return out

    def totals(self, group: BoolArray) -> FloatArray:
        """The score of every node, normalised over the nodes of `group`. Scores of other nodes have no meaning."""
        self.refresh()
        extra = self._extra(group)
        return self.score if extra is None else self.score + extra

    def _extra(self, group: BoolArray) -> FloatArray | None:
        """The scores that do not change while equal tasks are placed. They are added last, so that equal sums stay equal."""
        total: FloatArray | None = None
        for number, scorer in enumerate(self.normalised):
            column = self._normalised(number, scorer, group)
            total = column if total is None else total + column
        for scorer in self.global_scorers:
            scorer.prepare(self.task, group)
            raw = scorer.raw(self.task, self.session.nodes)
            if scorer.normalises:
                low, high = _extremes(raw, group)
                raw = scorer.normalise(self.task, raw, low, high)
            column = scorer.weight * raw
            total = column if total is None else total + column
        return total

    def _normalised(self, number: int, scorer: NodeScorer, group: BoolArray) -> FloatArray:
        raw = self.raw[number]
        low, high = _extremes(raw, group)
        kept = self.normal[number]
        if kept is not None and kept[0] == low and kept[1] == high:
            return kept[2]
        column = scorer.weight * scorer.normalise(self.task, raw, low, high)
        self.normal[number] = (low, high, column)
        return column

    # choosing

    def groups(self, within: BoolArray | None = None, *, tolerant: bool = False) -> list[tuple[BoolArray, bool]]:
        """Candidate groups, best first, each with whether it fits only the resources in release. `within`: only these nodes.
        `tolerant`: include nodes whose filters refuse for a reason that an eviction might undo."""
        feasible = ~self.unresolvable() if tolerant else self.feasible()
        if within is not None:
            feasible = feasible & within
        self.refresh()
        self.session.steps.spend(1 + len(self.static) // NODES_A_STEP // 4)
        future = feasible & self.future
        idle = future & self.idle
        mine = self.session.shard
        if mine is None or self.session.shard_is_hard:
            return [(idle, False), (future, True)]
        return [(idle & mine, False), (idle & ~mine, False), (future & mine, True), (future & ~mine, True)]

    def choose(self, count: int, within: BoolArray | None = None) -> tuple[list[int], bool]:
        """Nodes for up to `count` tasks of the class in order, and whether they are promises only.

        May return fewer nodes than `count` (the group is exhausted, or must be updated): call again for the rest."""
        if count == 1 and within is None and self._may_rank:
            row = self._best_ranked()
            if row is not None:
                return [row], False
        self.refresh(look_ahead=count == 1)
        if count > 1 and within is None and self._may_rank and not self._alone:
            chosen = self._run_ranked(count)
            if chosen:
                return chosen, False
        groups = self.groups(within)
        if self.session.semantics.releasing_is_apart and self.session.nodes.releasing.any():
            all_ = np.logical_or.reduce([group for group, _ in groups])
            row = self.best(all_) if all_.any() else None
            return ([], False) if row is None else ([row], not self.idle[row])
        for group, pipelined in groups:
            if not group.any():
                continue
            return self.choose_in(group, count, pipelined=pipelined), pipelined
        return [], False

    def _best_ranked(self) -> int | None:
        """The node for one task, by cached totals from the second call on. None: no node has room now."""
        self.refresh()
        if self._ranking is not None:
            return self._ranking.best()
        self._singles += 1
        if self._singles == 1:
            return None
        self._ranking = self._rank()
        return None if self._ranking is None else self._ranking.best()

    def _run_ranked(self, count: int) -> list[int]:
        """Nodes for several tasks, by cached totals from the second call on. Empty: no node has room now."""
        self._runs += 1
        if self._ranking is None and self._runs > 1:
            self._ranking = self._rank()
        ranking = self._ranking
        return [] if ranking is None else self._run(ranking.total, ranking.extra, count, False, ranking.may_lose)

    def can_mix(self) -> bool:
        """Whether a run may place tasks of this class between tasks of other classes (`mixed_run`)."""
        return self._may_rank and self._looks_ahead and not self.one_by_one(None)

    def ranking(self) -> NodeRanking | None:
        """The totals of all nodes for one task, updated. None: no node has room now."""
        self.refresh(look_ahead=False)
        if self._ranking is None:
            self._ranking = self._rank()
        return self._ranking

    def _rank(self) -> NodeRanking | None:
        group = self.possible & self.future & self.idle
        if not group.any():
            return None
        extra = self._extra(group)
        kept = [(raw, normal[0], normal[1]) for raw, normal in zip(self.raw, self.normal) if normal is not None]
        return NodeRanking(group, self.score, extra, kept)

    def one_by_one(self, group: BoolArray | None) -> bool:
        """Whether some answer depends on more than the node's own figures, so that equal tasks cannot be placed in one step.
        `group`: among these nodes, where not all are candidates."""
        if self._alone or any(f.moved_by_own_class(self.task) and not f.closes(self.task) for f in self.global_filters):
            return True
        if not self.global_scorers:
            return False
        nodes = self.static if group is None else group
        return not all(scorer.is_level(self.task, nodes) for scorer in self.global_scorers)

    def choose_in(self, group: BoolArray, count: int, *, pipelined: bool = False) -> list[int]:
        """As `choose`, among the nodes of a group that is not empty."""
        extra = self._extra(group)
        total = np.where(group, self.score if extra is None else self.score + extra, WORST)
        if count == 1 or self.one_by_one(group):
            return [int(total.argmax())]
        closing = [kind for f in self.global_filters if f.moved_by_own_class(self.task) for kind in f.closes(self.task)]
        return self._apart(total, count, closing) if closing else self._run(total, extra, count, pipelined, self._may_lose)

    def scoring_failure(self) -> Reason | None:
        """Why the last choice does not count: a score could not be had."""
        return next((reason for scorer in self.global_scorers if (reason := scorer.failure(self.task)) is not None), None)

    def best(self, group: BoolArray) -> int:
        """The best node of a group, the first in node order among equals."""
        return int(np.where(group, self.totals(group), WORST).argmax())

    def _run(
        self, total: FloatArray, extra: FloatArray | None, count: int, pipelined: bool, may_lose: Callable[[int], bool]
    ) -> list[int]:
        """Nodes for several tasks by their totals. `may_lose`: whether the totals of other nodes stay when this one
        takes no more tasks."""

        def ladders(rows: Rows, start: int, steps: int) -> FloatArray:
            return self._ladders(rows, start, steps, pipelined, extra)

        return greedy_run(self.session, total, count, ladders, may_lose)

    def _apart(self, total: FloatArray, count: int, closing: list[tuple[Rows, int]]) -> list[int]:
        """Take the best node whose domains hold no task of the run: about 10 us a task at 5,000 nodes."""
        chosen: list[int] = []
        while len(chosen) < count:
            row = int(total.argmax())
            if total[row] == WORST:
                break
            chosen.append(row)
            shut = [codes == codes[row] for codes, outside in closing if codes[row] != outside]
            if not shut:
                break  # in no domain: the node may take the next one too, at another score
            lost = np.flatnonzero(np.logical_or.reduce(shut) & (total > WORST))
            total[lost] = WORST
            if self._was_extreme(lost):
                break  # as below
        return chosen

    def _may_lose(self, row: int) -> bool:
        return not self._was_extreme(row)

    def _was_extreme(self, rows: int | Rows) -> bool:
        """Whether losing these nodes may change some normalised score of the others."""
        kept = ((raw[rows], normal) for raw, normal in zip(self.raw, self.normal) if normal is not None)
        return any(low != high and np.any((value == low) | (value == high)) for value, (low, high, _) in kept)

    def _ladders(self, rows: Rows, start: int, steps: int, pipelined: bool, extra: FloatArray | None) -> FloatArray:
        """(rows, steps): for each row, its total after start+1, start+2 ... further tasks; `WORST` where the next no longer fits."""
        task = self.task
        begin = np.full(len(rows), start)
        at = self.session.nodes.ladder(rows, begin, steps, task.request, task.footprint, pipelined=pipelined)
        possible, idle, future, score = self.judge(at)
        fits = possible & future if pipelined else possible & future & idle
        if extra is not None:
            score = score + extra[at.rows]
        return np.where(fits, score, WORST).reshape(len(rows), steps)

    # explaining

    def explain(self, *, resources: bool = True, within: BoolArray | None = None) -> FitErrors:
        """Why nodes refuse, all or those `within`: each node by the first filter that turns it down."""
        self.refresh()
        whole = resources and within is None and not self.global_filters
        if whole and self._refused is not None and self._refused[0] == self.read:
            return self._refused[1]  # a long backlog of equal tasks asks repeatedly
        self.session.steps.spend(1 + len(self.static) // NODES_A_STEP)
        errors = count_refusals(self, resources=resources, within=within)
        if whole:
            self._refused = self.read, errors
        return errors


def _extremes(raw: FloatArray, group: BoolArray) -> tuple[float, float]:
    inside = raw[group]
    return (float(inside.min()), float(inside.max())) if inside.size else (0.0, 0.0)
