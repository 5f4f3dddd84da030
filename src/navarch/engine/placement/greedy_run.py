"""Nodes for a run of equal tasks: at each step the best node, as if the tasks were placed one by one.

A node that the run has used is compared by its ladder: its total after one more task, two more, and so on. Ladders are computed for
several nodes and many steps at once, because a computation costs as much for a hundred columns as for one. Runs of the same policy are
alike, so a run begins as the last one ended: it packs nodes, or it spreads over them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Rows
from navarch.engine.placement.node_ranking import WORST, best_rows
from navarch.model.resources import BoolArray, FloatArray

if TYPE_CHECKING:
    from navarch.engine.session import Session

Ladders = Callable[[Rows, int, int], FloatArray]
"""(rows, start, steps) -> (rows, steps): the total of each row after start+1, start+2 ... further tasks; `WORST` where the next no
longer fits."""
_MOST_STEPS = 128
"""Steps of a node's ladder that are computed at once when a run fills it; fewer where the run has fewer tasks."""
_FIRST_STEPS = 3
"""Steps computed for all candidates together once a run turns out to spread."""
_LOOK = 4
"""A run that needs more distinct nodes than this spreads."""


def greedy_run(session: Session, total: FloatArray, count: int, ladders: Ladders, may_lose: Callable[[int], bool]) -> list[int]:
    """Take the best of the nodes used so far (each at its next ladder step) and the best unused node, until `count` nodes are chosen.
    Fewer: the others have no room, or their totals must be computed again. `may_lose`: whether the totals of other nodes stay when
    this one takes no more tasks."""
    known: dict[int, list[float]] = {}
    given: list[tuple[float, int]] = []
    if session.runs_spread:
        best = best_rows(total, count)
        steps = 1 if session.run_nodes >= count else _FIRST_STEPS  # each node took one task in the last run, and will in this one
        after = ladders(best, 0, steps)
        if _one_task_each(total, best, after[:, 0], count, may_lose):
            session.run_nodes = count
            chosen: list[int] = best.tolist()
            return chosen
        if steps < _FIRST_STEPS:
            after = ladders(best, 0, _FIRST_STEPS)
        unused: Iterator[tuple[float, int]] = _in_order(total, best, after, known)
    else:
        unused = _best_unused(session, total, count, ladders, known, given)
    fresh = next(unused, None)
    heap: list[tuple[float, int]] = []
    taken: dict[int, int] = {}
    chosen = []
    while len(chosen) < count:
        if fresh is not None and (not heap or fresh < heap[0]):
            row, fresh = fresh[1], next(unused, None)
        elif heap:
            row = heapq.heappop(heap)[1]
        else:
            break
        steps, ladder = taken.get(row, 0), known.setdefault(row, [])
        rival = fresh if not heap or (fresh is not None and fresh < heap[0]) else heap[0]
        following = 0.0
        while True:  # where a run packs, the node mostly remains the best one
            chosen.append(row)
            steps += 1
            if len(chosen) == count:
                break
            if steps > len(ladder):
                ladder += ladders(np.array([row]), len(ladder), min(count - len(chosen), _MOST_STEPS))[0].tolist()
            following = ladder[steps - 1]
            if following == WORST:
                break
            if rival is not None and rival < (-following, row):
                heapq.heappush(heap, (-following, row))
                break
        taken[row] = steps
        if following == WORST and not may_lose(row):
            break  # the feasible set lost an extreme: normalised scores must be combined again
    for negated, row in given:  # cheaper than a copy of all totals
        total[row] = -negated
    session.runs_spread = len(taken) * _FIRST_STEPS > len(chosen) and len(taken) > 1
    session.run_nodes = max(1, len(taken))
    return chosen


def _best_unused(
    session: Session, total: FloatArray, count: int, ladders: Ladders, known: dict[int, list[float]], given: list[tuple[float, int]]
) -> Iterator[tuple[float, int]]:
    """Nodes best first, each with its negated total. The first few are found one by one; if a run needs more, it spreads, and all are
    sorted. The ladders of as many nodes as the last run took are computed together: the cost is that of one. A node in `given` has no
    total any more."""
    together, looks = min(session.run_nodes, _LOOK), _LOOK
    while looks:
        looks -= together
        found = list(islice(_one_by_one(total), together))
        given += found
        if together > 1 and found:
            rows = [row for _, row in found]
            known.update(zip(rows, ladders(np.array(rows), 0, min(count, _MOST_STEPS)).tolist()))
        yield from found
        if len(found) < together:
            return
        together = 1
    best, after = _best_together(total, count, ladders)
    yield from _in_order(total, best, after, known)


def _one_by_one(total: FloatArray) -> Iterator[tuple[float, int]]:
    """The best nodes, each with its negated total. A node that was given has no total any more."""
    while True:
        row = int(total.argmax())
        best = float(total[row])
        if best == WORST:
            return
        total[row] = WORST
        yield -best, row


def _best_together(total: FloatArray, count: int, ladders: Ladders) -> tuple[Rows, FloatArray]:
    """The `count` best nodes, best first, and the first steps of their ladders."""
    rows = best_rows(total, count)
    return rows, ladders(rows, 0, _FIRST_STEPS)


def _in_order(total: FloatArray, best: Rows, after: FloatArray, known: dict[int, list[float]]) -> Iterator[tuple[float, int]]:
    known.update(zip(best.tolist(), after.tolist()))
    return zip((-total[best]).tolist(), best.tolist())


def _one_task_each(total: FloatArray, best: Rows, after: FloatArray, count: int, may_lose: Callable[[int], bool]) -> bool:
    """Whether a run takes each of the best nodes once, in their order: with its task, each is worse than the last one without.
    `after`: the totals of these nodes with one task."""
    if len(best) < count:
        return False
    last, earlier, after = best[-1], best[:-1], after[:-1]
    worse: BoolArray = (after < total[last]) | ((after == total[last]) & (earlier > last))
    return bool(worse.all()) and all(map(may_lose, earlier[after == WORST].tolist()))
