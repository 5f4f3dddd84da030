"""The resource bound: finds scenarios that cannot hold, by resource sums alone.

A task is placed on a node only if its request fits what is free or in release there. An eviction adds the victim's request on its
own node only; every placement, and every victim that stays, takes from it. So during a trial no node ever has more than its
current free resources plus the requests of its victims, and takes at most as many tasks of a class as fit into that at once.
Static filters only exclude nodes. If these numbers, summed over nodes, are below the tasks of the class that must be placed
together, one task finds no node and the trial fails. A shared device counts as if the eviction of its user freed it entirely.

If every victim must be placed again (`all_return`), victims that request at least as much as a task of the class need room of that
size too, and count with it. This is left out where a node is over-committed, or where not every node is open to the class.

Further victims never hurt: each adds at least as much room as it needs again itself. So if a set of victims is refused, every
subset is.

Nothing is refused where requests do not decide (filters check resources, or resources in release count separately).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add

import numpy as np

from navarch.actions.kai.solver.victim_queue import Batch
from navarch.actions.kai.solver.victim_sequence import Stretch
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray

_MANY = 1 << 40
_FEW = 8
"""Tasks that are looked at one by one, which is faster than by columns."""


class ClassDemand:
    """Tasks of one class: how many are wanted, and how many each node could take."""

    __slots__ = ("_need", "_now", "_room", "_within", "all_return", "counts", "dims", "free", "need", "total", "usable", "wanted")

    def __init__(self, session: Session, kind: TaskClass, wanted: int, *, all_return: bool) -> None:
        view = session.view(kind)
        self.dims: list[int] = [d for d in view.dims.tolist() if kind.request[d] > 0 and d not in session.claimable_dims]
        self.need: list[int] = kind.request[self.dims].tolist()
        self.wanted = wanted
        self.usable = view.static
        self.free: IntArray = session.nodes.future_idle[self.dims]
        """Before any eviction."""
        self.all_return = all_return and bool(self.usable.all()) and bool((self.free >= 0).all())
        self._need = np.array(self.need, dtype=np.int64)[:, None]
        self._now = self.free.copy()
        self._room: dict[int, list[int]] = {}
        """Columns of `_now` that were updated one by one; they are newer than it."""
        self._within: dict[int, bool] = {}
        self.counts: IntArray = self.most(self.free)
        self.total = int(self.counts.sum())

    def copy(self) -> ClassDemand:
        out = ClassDemand.__new__(ClassDemand)
        for name in self.__slots__:
            setattr(out, name, getattr(self, name))
        out._now, out.counts = self._now.copy(), self.counts.copy()
        out._room = {node: room.copy() for node, room in self._room.items()}
        return out

    def within(self, shape: int, request: Sequence[int]) -> bool:
        """Whether a task with this request asks for at least as much as the class."""
        known = self._within.get(shape)
        if known is None:
            known = self._within[shape] = all(request[dim] >= need for dim, need in zip(self.dims, self.need))
        return known

    def most(self, free: IntArray) -> IntArray:
        """How many tasks fit on every node, given free amounts of the resources that the class requests."""
        out: IntArray = (np.maximum(free, 0) // self._need).min(axis=0, initial=_MANY) * self.usable
        return out

    # one node

    def _at(self, node: int) -> list[int]:
        found = self._room.get(node)
        if found is None:
            found = self._room[node] = self._now[:, node].tolist()
        return found

    def fits(self, node: int, more: Sequence[int]) -> int:
        """How many would fit on a node with so much more of everything."""
        if not self.usable[node]:
            return 0
        room = self._at(node)
        return max(0, min((room[i] + more[dim]) // need for i, (dim, need) in enumerate(zip(self.dims, self.need))))

    def add(self, node: int, more: Sequence[int]) -> None:
        """The node has so much more from now on."""
        room, count = self._at(node), _MANY
        for i, (dim, need) in enumerate(zip(self.dims, self.need)):
            now = room[i] = room[i] + more[dim]
            count = min(count, now // need)
        count = max(count, 0) if self.usable[node] else 0
        self.total += count - int(self.counts[node])
        self.counts[node] = count

    # all nodes

    def enough_after(self, stretch: Stretch, no_less: BoolArray) -> BoolArray:
        """After which batches of a stretch as many fit as are wanted. `no_less`: tasks of the stretch that count as wanted too."""
        now = self._current()

        def fits(node: IntArray, freed: IntArray) -> IntArray:
            out: IntArray = (np.maximum(now[:, node] + freed, 0) // self._need).min(axis=0, initial=_MANY) * self.usable[node]
            return out

        total = self.total + stretch.totals(fits, stretch.columns.freed[self.dims], self.counts)
        if not self.all_return:
            return total >= self.wanted
        back = np.cumsum(np.bincount(stretch.columns.place, weights=no_less, minlength=len(stretch)))
        found: BoolArray = total >= self.wanted + back
        return found

    def add_all(self, node: IntArray, freed: IntArray) -> None:
        """The nodes have so much more from now on. `freed`: (resources, nodes); nodes may repeat."""
        now = self._current()
        for i, dim in enumerate(self.dims):
            np.add.at(now[i], node, freed[dim])
        self.counts = self.most(now)
        self.total = int(self.counts.sum())

    def _current(self) -> IntArray:
        """The free amounts on every node, updated."""
        for node, room in self._room.items():
            self._now[:, node] = room
        self._room.clear()
        return self._now


class ResourceBound:
    """Its figures are those at its creation, while nothing is evicted."""

    def __init__(self, session: Session, tasks: Sequence[int], recorded: Iterable[Batch] = (), *, all_return: bool = False) -> None:
        self.session = session
        self.kinds: list[ClassDemand] = []
        self._node = session.node.copy()
        self._requests: dict[int, tuple[int, ...]] = {}
        if not session.semantics.releasing_is_apart and not session.resources_by_filters:
            wanted: dict[int, tuple[TaskClass, int]] = {}
            for task in tasks:
                kind = session.class_of(task)
                wanted[kind.number] = (kind, wanted.get(kind.number, (kind, 0))[1] + 1)
            every = [ClassDemand(session, kind, count, all_return=all_return) for kind, count in wanted.values()]
            self.kinds = [kind for kind in every if kind.dims]
        devices = session.devices
        self._shared = devices is not None and bool(devices.dims) and devices.any_shared
        for batch in recorded:
            self.add(batch)

    def copy(self) -> ResourceBound:
        out = ResourceBound.__new__(ResourceBound)
        out.__dict__.update(self.__dict__)
        out.kinds = [kind.copy() for kind in self.kinds]
        return out

    def add(self, batch: Batch) -> None:
        """From now on every scenario evicts this batch."""
        if len(batch.tasks) == 1 and not self._shared:  # the usual batch
            self._add_one(batch.tasks[0])
            return
        for node, amounts in self._more((batch,)).items():
            for kind in self.kinds:
                kind.add(node, amounts)
        for kind in self.kinds:
            kind.wanted += self._returning(kind, (batch,))

    def _add_one(self, task: int) -> None:
        node, request, shape = int(self._node[task]), self.request(task), int(self.session.shape[task])
        for kind in self.kinds:
            if node >= 0:
                kind.add(node, request)
            if kind.all_return and kind.within(shape, request):
                kind.wanted += 1

    def enough_after(self, stretch: Stretch) -> BoolArray:
        """After which batches of a stretch the tasks may fit. Equal to `add` of one batch after the other and `admits` after each."""
        out: BoolArray = np.ones(len(stretch), dtype=bool)
        for kind in self.kinds:
            out &= kind.enough_after(stretch, self._asks_no_less(kind, stretch))
        return out

    def add_stretch(self, stretch: Stretch) -> None:
        """`add` of each batch."""
        columns = stretch.columns
        for kind in self.kinds:
            kind.add_all(columns.node, columns.freed)
            kind.wanted += int(self._asks_no_less(kind, stretch).sum())

    def _asks_no_less(self, kind: ClassDemand, stretch: Stretch) -> BoolArray:
        """Tasks of a stretch that are placed again and ask for at least as much as the class."""
        tasks = stretch.columns.task
        if not kind.all_return:
            return np.zeros(len(tasks), dtype=bool)
        asked = self.session.snapshot.shape_request[kind.dims][:, self.session.shape[tasks]]
        found: BoolArray = np.logical_and.reduce(asked >= np.array(kind.need)[:, None], axis=0)
        return found

    def remove(self, batch: Batch) -> None:
        """Undo `add`."""
        for node, amounts in self._more((batch,)).items():
            for kind in self.kinds:
                kind.add(node, [-amount for amount in amounts])
        for kind in self.kinds:
            kind.wanted -= self._returning(kind, (batch,))

    def admits(self, batches: Sequence[Batch] = ()) -> bool:
        """Whether the tasks may fit if these are evicted too. False only if they cannot."""
        if all(kind.total >= kind.wanted for kind in self.kinds):
            return True
        more = self._more(batches)
        for kind in self.kinds:
            total = kind.total - self._returning(kind, batches)
            for node, amounts in more.items():
                total += kind.fits(node, amounts) - int(kind.counts[node])
            if total < kind.wanted:
                return False
        return True

    def _returning(self, kind: ClassDemand, batches: Iterable[Batch]) -> int:
        if not kind.all_return:
            return 0
        tasks = [task for batch in batches for task in batch.tasks]
        if len(tasks) < _FEW:
            return sum(self.asks_no_less(task, kind) for task in tasks)
        shapes, counts = np.unique(self.session.shape[tasks], return_counts=True)
        asked = self.session.snapshot.shape_request
        return sum(count for shape, count in zip(shapes.tolist(), counts.tolist()) if kind.within(shape, asked[:, shape].tolist()))

    def asks_no_less(self, task: int, kind: ClassDemand) -> bool:
        return kind.within(int(self.session.shape[task]), self.request(task))

    def _more(self, batches: Iterable[Batch]) -> dict[int, tuple[int, ...]]:
        """Node -> what these batches hold on it."""
        node_of = self._node
        freed: dict[int, tuple[int, ...]] = {}
        for batch in batches:
            for task in batch.tasks:
                node = int(node_of[task])
                if node < 0:
                    continue
                amounts = self._amounts(task, node)
                known = freed.get(node)
                freed[node] = amounts if known is None else tuple(map(add, known, amounts))
        return freed

    def request(self, task: int) -> tuple[int, ...]:
        number = int(self.session.shape[task])
        known = self._requests.get(number)
        if known is None:
            known = self._requests[number] = tuple(self.session.snapshot.shape_request[:, number].tolist())
        return known

    def _amounts(self, task: int, node: int) -> tuple[int, ...]:
        """What the eviction of the task frees."""
        known = self.request(task)
        if self._shared:
            kind = self.session.class_of(task)
            if shares_devices(kind):
                assert self.session.devices is not None and kind.shape.devices is not None
                dim = int(self.session.devices.dim[node])
                return tuple(a + 1000 * kind.shape.devices.count * (i == dim) for i, a in enumerate(known))
        return known
