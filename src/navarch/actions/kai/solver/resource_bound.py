"""Scenarios that cannot hold, told by figures alone: what is free and what its victims hold is too little for the tasks.

Why a scenario that `admits` turns down would fail if it were played. A task is placed on a node only while its request fits what
is or will be free there. Evicting a victim adds its request to that, on its own node alone; every placement, and every victim that
stays after all, takes from it. So while a scenario is played, no node ever has more than what it has now plus the requests of the
victims on it, and takes at most as many tasks of a kind as fit into that at once. Static filters only take nodes away. If these
numbers, summed over nodes, stay below the tasks of the kind that must be placed together, one of them finds no node, the
job is not placed, and the trial fails, whatever else happens in it. A shared device is counted as if its user's leaving freed it
whole.

If nobody may lose a place (`all_return`), victims that ask for no less than a task of the kind must find room of that size as well,
and count with it. That is left out where a node is used beyond what it has, or not every node is open to the kind.

More victims never hurt: each adds at least as much room of the kind's size as it takes again itself. So what is turned down for
some victims is turned down for any part of them.

Where requests are not what decides (filters judge resources, or what is being released counts apart), and where even a failed
trial would leave something behind (`trial.leaves_nothing`), nothing is turned down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add

import numpy as np

from navarch.actions.kai.solver.scenario_trial import leaves_nothing
from navarch.actions.kai.solver.victim_queue import Batch
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.session import Session
from navarch.model.resources import IntArray

_MANY = 1 << 40


class Kind:
    """Tasks of one class: how many are wanted, and how many each node could take."""

    __slots__ = ("_need", "_now", "_room", "_within", "all_return", "counts", "dims", "free", "need", "total", "usable", "wanted")

    def __init__(self, session: Session, kind: TaskClass, wanted: int, *, all_return: bool) -> None:
        view = session.view(kind)
        self.dims: list[int] = [dim for dim in view.dims.tolist() if kind.request[dim] > 0]
        self.need: list[int] = kind.request[self.dims].tolist()
        self.wanted = wanted
        self.usable = view.static
        self.free: IntArray = (session.nodes.future_idle + session.slack[:, None])[self.dims]
        """Before anyone goes."""
        self.all_return = all_return and bool(self.usable.all()) and bool((self.free >= 0).all())
        self._need = np.array(self.need, dtype=np.int64)[:, None]
        self._now = self.free.copy()
        self._room: dict[int, list[int]] = {}
        """Columns of `_now` that were looked at one by one; they are ahead of it."""
        self._within: dict[int, bool] = {}
        self.counts: IntArray = self.most(self.free)
        self.total = int(self.counts.sum())

    def within(self, shape: int, request: Sequence[int]) -> bool:
        """Whether who asks for this asks for no less than the kind."""
        known = self._within.get(shape)
        if known is None:
            known = self._within[shape] = all(request[dim] >= need for dim, need in zip(self.dims, self.need))
        return known

    def most(self, free: IntArray) -> IntArray:
        """How many fit on every node, with so much free of the resources that the kind asks for."""
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
        room, count = self._at(node), self.fits(node, more)
        for i, dim in enumerate(self.dims):
            room[i] += more[dim]
        self.total += count - int(self.counts[node])
        self.counts[node] = count

    # all nodes

    def with_all(self, more: IntArray) -> IntArray:
        """What would be free on every node with so much more of everything."""
        for node, room in self._room.items():
            self._now[:, node] = room
        self._room.clear()
        out: IntArray = self._now + more[self.dims]
        return out

    def settle(self, now: IntArray) -> None:
        """So much is free from now on."""
        self._now = now
        self.counts = self.most(now)
        self.total = int(self.counts.sum())


class RoomBound:
    """Figures are as of when it was made: while nothing is evicted."""

    def __init__(self, session: Session, tasks: Sequence[int], recorded: Iterable[Batch] = (), *, all_return: bool = False) -> None:
        self.session = session
        self.kinds: list[Kind] = []
        self._node = session.node.copy()
        self._requests: dict[int, tuple[int, ...]] = {}
        if not session.semantics.releasing_is_apart and not session.resources_by_filters:
            wanted: dict[int, tuple[TaskClass, int]] = {}
            for task in tasks:
                kind = session.class_of(task)
                wanted[kind.number] = (kind, wanted.get(kind.number, (kind, 0))[1] + 1)
            every = [Kind(session, kind, count, all_return=all_return) for kind, count in wanted.values()]
            self.kinds = [kind for kind in every if kind.dims]
        devices = session.devices
        self._shared = devices is not None and bool(devices.dims) and devices.any_shared
        self.traces = False
        """Something was taken whose trial leaves traces."""
        for batch in recorded:
            self.take(batch)

    def take(self, batch: Batch) -> None:
        """The batch goes in every scenario from now on."""
        self.traces = self.traces or not leaves_nothing(self.session, (batch,))
        for node, amounts in self._more((batch,)).items():
            for kind in self.kinds:
                kind.add(node, amounts)
        for kind in self.kinds:
            kind.wanted += self._returning(kind, (batch,))

    def take_unless_enough(self, batches: Sequence[Batch]) -> bool:
        """Take all of these if even so the tasks could not find room, else none. Whether they were taken."""
        if self.traces or not self.kinds or not leaves_nothing(self.session, batches):
            return False
        table = self._table(batches)
        after = [kind.with_all(table) for kind in self.kinds]
        again = [self._returning(kind, batches) for kind in self.kinds]
        if all(int(kind.most(now).sum()) >= kind.wanted + back for kind, now, back in zip(self.kinds, after, again, strict=True)):
            return False
        for kind, now, back in zip(self.kinds, after, again, strict=True):
            kind.settle(now)
            kind.wanted += back
        return True

    def give_back(self, batch: Batch) -> None:
        """The opposite of `take`."""
        for node, amounts in self._more((batch,)).items():
            for kind in self.kinds:
                kind.add(node, [-amount for amount in amounts])
        for kind in self.kinds:
            kind.wanted -= self._returning(kind, (batch,))

    def admits(self, batches: Sequence[Batch] = ()) -> bool:
        """Whether the tasks could find room if these go as well; False only if they cannot."""
        if self.traces or all(kind.total >= kind.wanted for kind in self.kinds) or not leaves_nothing(self.session, batches):
            return True
        more = self._more(batches)
        for kind in self.kinds:
            total = kind.total - self._returning(kind, batches)
            for node, amounts in more.items():
                total += kind.fits(node, amounts) - int(kind.counts[node])
            if total < kind.wanted:
                return False
        return True

    def _returning(self, kind: Kind, batches: Iterable[Batch]) -> int:
        if not kind.all_return:
            return 0
        return sum(self.asks_no_less(task, kind) for batch in batches for task in batch.tasks)

    def asks_no_less(self, task: int, kind: Kind) -> bool:
        return kind.within(int(self.session.shape[task]), self.request(task))

    def _more(self, batches: Iterable[Batch]) -> dict[int, tuple[int, ...]]:
        """Node -> what these hold on it."""
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

    def _table(self, batches: Iterable[Batch]) -> IntArray:
        """The same as a table over all nodes."""
        session = self.session
        out: IntArray = np.zeros((len(session.slack), len(session.nodes)), dtype=np.int64)
        if self._shared:
            for node, amounts in self._more(batches).items():
                out[:, node] = amounts
            return out
        rows = np.array([task for batch in batches for task in batch.tasks], dtype=np.intp)
        rows = rows[self._node[rows] >= 0]
        nodes = self._node[rows]
        for dim, amounts in enumerate(session.snapshot.shape_request[:, session.shape[rows]]):
            if amounts.any():
                np.add.at(out[dim], nodes, amounts)
        return out

    def request(self, task: int) -> tuple[int, ...]:
        number = int(self.session.shape[task])
        known = self._requests.get(number)
        if known is None:
            known = self._requests[number] = tuple(self.session.snapshot.shape_request[:, number].tolist())
        return known

    def _amounts(self, task: int, node: int) -> tuple[int, ...]:
        """What leaving frees."""
        known = self.request(task)
        if self._shared:
            kind = self.session.class_of(task)
            if shares_devices(kind):
                assert self.session.devices is not None and kind.shape.devices is not None
                dim = int(self.session.devices.dim[node])
                return tuple(a + 1000 * kind.shape.devices.count * (i == dim) for i, a in enumerate(known))
        return known
