"""The order of victims of one search, popped only as far as needed, with its tasks as columns.

The probes of a search go through the order many times from the start. `VictimSequence` keeps the batches that were popped and returns
them again. The order without recorded batches equals the full order minus these, as long as each recorded batch is everything that
its job holds: such a job is popped once in either case and its queue has the same weight, so later pops compare the same values.
If only a part of an elastic job is recorded, the job is popped less often, so the order is computed again.

A probe looks at a stretch of batches at once (`Stretch`): sums over its columns tell after which batches the victims so far could be
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from navarch.actions.kai.solver.victim_queue import Batch, VictimPool, Victims, batches
from navarch.engine.gangs.chunks import next_to_evict
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.session import Session
from navarch.model.resources import FloatArray, IntArray

Amounts = NDArray[Any]
Fits = Callable[[IntArray, Amounts], IntArray]
"""How many tasks fit on nodes, given the nodes and what was freed on each."""
_AT_LEAST, _SHARE = 32, 3
"""So many batches are popped together, or this part of those that are known."""


@dataclass(slots=True, eq=False)
class Columns:
    """The tasks of batches that have a node, in order."""

    place: IntArray
    """The place of each task's batch."""
    task: IntArray
    node: IntArray
    gpus: FloatArray
    """GPUs that the task holds."""
    freed: IntArray
    """(resources, tasks): what its eviction frees. A shared device counts as if it became free entirely."""

    def of_places(self, first: int, end: int, kept: list[int]) -> Columns:
        """The columns of the places `kept`, which are in order from `first` to `end`. Places are numbered anew."""
        number = np.full(end - first, -1, dtype=np.int64)
        number[np.array(kept) - first] = np.arange(len(kept))
        here = slice(*np.searchsorted(self.place, (first, end)).tolist())
        place = number[self.place[here] - first]
        out = Columns(place, self.task[here], self.node[here], self.gpus[here], self.freed[:, here])
        if len(kept) == end - first:
            return out
        stays = place >= 0
        return Columns(place[stays], out.task[stays], out.node[stays], out.gpus[stays], out.freed[:, stays])


class Stretch:
    """Batches that follow each other in the order of a probe."""

    def __init__(self, session: Session, found: Victims, columns: Columns) -> None:
        self.batches = found
        self.columns = columns

    def __len__(self) -> int:
        return len(self.batches)

    @cached_property
    def _by_node(self) -> tuple[IntArray, IntArray, IntArray]:
        """The columns sorted by node, the node of each, and where the columns of its node begin."""
        order = np.argsort(self.columns.node, kind="stable")
        node = self.columns.node[order]
        begins = np.ones(len(node), dtype=bool)
        begins[1:] = node[1:] != node[:-1]
        return order, node, np.maximum.accumulate(np.where(begins, np.arange(len(node)), 0))

    def totals(self, fits: Fits, freed: Amounts, counts: IntArray) -> IntArray:
        """By how much the number of tasks that fit on all nodes has grown after each batch.

        `freed`: (resources, columns). `counts`: how many fit on every node before the stretch."""
        order, node, begin = self._by_node
        freed = freed[:, order]
        sums = np.cumsum(freed, axis=1)
        sums -= sums[:, begin] - freed[:, begin]
        after = fits(node, sums)
        before = np.empty_like(after)
        before[1:] = after[:-1]
        first = begin == np.arange(len(begin))
        before[first] = counts[node[first]]
        grown = np.bincount(self.columns.place[order], weights=after - before, minlength=len(self))
        total: IntArray = np.cumsum(grown).astype(np.int64)
        return total


class VictimSequence:
    def __init__(self, session: Session, pool: VictimPool) -> None:
        self.session, self.pool = session, pool
        self.batches: Victims = []
        self._rest = batches(session, pool, unlimited=True)
        self._columns = columns_of(session, [])
        jobs = sum(len(entries) for entries in pool.sorted_jobs.queues.values())
        self._limit = None if pool.limit is None or pool.limit >= jobs else pool.limit

    def without(self, recorded: Sequence[Batch]) -> Iterator[Stretch]:
        """The batches in order without the recorded ones: those that are known at once, then more and more at a time. Equal to
        popping all again."""
        settled = frozenset(task for batch in recorded for task in batch.tasks)
        if any(len(next_to_evict(self.session, batch.job.tree)) < len(batch.job.tree.active) for batch in recorded):
            return stretches(self.session, batches(self.session, self.pool, settled))
        return self._skipping(settled)

    def _skipping(self, settled: frozenset[int]) -> Iterator[Stretch]:
        done, seen = 0, set[int]()
        while True:
            if done == len(self.batches):
                self._pop(max(_AT_LEAST, done // _SHARE))
            first, done = done, len(self.batches)
            if first == done:
                return
            kept = self._places(first, done, settled, seen)
            if kept:
                found = [self.batches[place] for place in kept]
                yield Stretch(self.session, found, self._columns.of_places(first, done, kept))

    def _places(self, first: int, end: int, settled: frozenset[int], seen: set[int]) -> list[int]:
        """Places without those of recorded batches, and without those of further jobs once the limit is reached. `seen`: the jobs
        that count for the limit."""
        if self._limit is None and not settled:
            return list(range(first, end))
        out = []
        for place in range(first, end):
            batch = self.batches[place]
            if batch.tasks[0] in settled:
                continue
            if self._limit is not None:
                if batch.job.row not in seen and len(seen) == self._limit:
                    continue
                seen.add(batch.job.row)
            out.append(place)
        return out

    def _pop(self, count: int) -> None:
        more = list(islice(self._rest, count))
        new, old = columns_of(self.session, more), self._columns
        self._columns = Columns(
            np.concatenate([old.place, new.place + len(self.batches)]),
            np.concatenate([old.task, new.task]),
            np.concatenate([old.node, new.node]),
            np.concatenate([old.gpus, new.gpus]),
            np.concatenate([old.freed, new.freed], axis=1),
        )
        self.batches += more


def stretches(session: Session, ordered: Iterator[Batch], size: int = _AT_LEAST) -> Iterator[Stretch]:
    while found := list(islice(ordered, size)):
        yield Stretch(session, found, columns_of(session, found))


def columns_of(session: Session, found: Victims) -> Columns:
    tasks = [(place, task) for place, batch in enumerate(found) for task in batch.tasks]
    both = np.array(tasks, dtype=np.int64).reshape(-1, 2)
    both = both[session.node[both[:, 1]] >= 0]
    place, task = both[:, 0], both[:, 1]
    node = session.node[task].astype(np.int64)
    freed: IntArray = session.snapshot.shape_request[:, session.shape[task]].copy()
    devices = session.devices
    assert devices is not None
    held: dict[tuple[int, int], float] = {}
    gpus = np.zeros(len(task))
    for i, key in enumerate(zip(session.shape[task].tolist(), devices.memory[node].tolist())):
        if key not in held:
            held[key] = devices.gpus_of(session.class_of(int(task[i])), key[1])
        gpus[i] = held[key]
    if devices.dims and devices.any_shared:
        for i, row in enumerate(task.tolist()):
            kind = session.class_of(row)
            if shares_devices(kind):
                assert kind.shape.devices is not None
                freed[int(devices.dim[node[i]]), i] += 1000 * kind.shape.devices.count
    return Columns(place, task, node, gpus, freed)
