"""Scenarios that cannot hold, told by figures alone: what is free and what its victims hold is too little for the tasks.

Why a scenario that `admits` turns down would fail if it were played. A task is placed on a node only while its request fits what
is or will be free there. Evicting a victim adds its request to that, on its own node alone; every placement, and every victim that
stays after all, takes from it. So while a scenario is played, no node ever has more than what it has now plus the requests of the
victims on it, and takes at most as many tasks of a kind as fit into that at once. Static filters only take nodes away. If these
numbers, summed over nodes, stay below the tasks of the kind that must be placed together, one of them finds no node, the
job is not placed, and the trial fails, whatever else happens in it. A shared device is counted as if its user's leaving freed it
whole. Where requests are not what decides (filters judge resources, or what is being released counts apart), and where even a
failed trial would leave something behind (`trial.leaves_nothing`), nothing is turned down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from navarch.actions.trial import leaves_nothing
from navarch.actions.victim_pool import Batch
from navarch.engine.devices import shares_devices
from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.resources import IntArray

_MANY = 1 << 40


class _Kind:
    """Tasks of one class: how many are wanted, and how many each node could take."""

    __slots__ = ("counts", "dims", "free", "need", "room", "total", "usable", "wanted")

    def __init__(self, session: Session, kind: TaskClass, wanted: int) -> None:
        view = session.view(kind)
        self.dims: list[int] = [dim for dim in view.dims.tolist() if kind.request[dim] > 0]
        self.need: list[int] = kind.request[self.dims].tolist()
        self.wanted = wanted
        self.usable = view.static
        self.free: IntArray = (session.nodes.future_idle + session.slack[:, None])[self.dims]
        self.room: dict[int, list[int]] = {}
        """Columns of `free` that were looked at."""
        need = np.array(self.need, dtype=np.int64)[:, None]
        self.counts: IntArray = (np.maximum(self.free, 0) // need).min(axis=0, initial=_MANY) * self.usable
        self.total = int(self.counts.sum())

    def at(self, node: int) -> list[int]:
        found = self.room.get(node)
        if found is None:
            found = self.room[node] = self.free[:, node].tolist()
        return found

    def fits(self, node: int, more: Sequence[int]) -> int:
        """How many would fit on a node with so much more of everything."""
        if not self.usable[node]:
            return 0
        room = self.at(node)
        return max(0, min((room[i] + more[dim]) // need for i, (dim, need) in enumerate(zip(self.dims, self.need))))

    def add(self, node: int, more: Sequence[int]) -> None:
        """The node has so much more from now on."""
        room, count = self.at(node), self.fits(node, more)
        for i, dim in enumerate(self.dims):
            room[i] += more[dim]
        self.total += count - int(self.counts[node])
        self.counts[node] = count


class RoomBound:
    def __init__(self, session: Session, tasks: Sequence[int], recorded: Iterable[Batch] = ()) -> None:
        self.session = session
        self._freed: dict[int, tuple[int, ...]] = {}
        self._kinds: list[_Kind] = []
        if not session.semantics.releasing_is_apart and not session.resources_by_filters:
            wanted: dict[int, tuple[TaskClass, int]] = {}
            for task in tasks:
                kind = session.class_of(task)
                wanted[kind.number] = (kind, wanted.get(kind.number, (kind, 0))[1] + 1)
            self._kinds = [each for kind, count in wanted.values() if (each := _Kind(session, kind, count)).dims]
        devices = session.devices
        self._shared = devices is not None and bool(devices.dims) and devices.any_shared
        self._traces = False
        """Something was taken whose trial leaves traces."""
        for batch in recorded:
            self.take(batch)

    def take(self, batch: Batch) -> None:
        """The batch goes in every scenario from now on."""
        self._traces = self._traces or not leaves_nothing(self.session, (batch,))
        for node, amounts in self._more((batch,)).items():
            for kind in self._kinds:
                kind.add(node, amounts)

    def give_back(self, batch: Batch) -> None:
        """The opposite of `take`."""
        for node, amounts in self._more((batch,)).items():
            for kind in self._kinds:
                kind.add(node, [-amount for amount in amounts])

    def admits(self, batches: Sequence[Batch] = ()) -> bool:
        """Whether the tasks could find room if these go as well; False only if they cannot."""
        if self._traces or all(kind.total >= kind.wanted for kind in self._kinds) or not leaves_nothing(self.session, batches):
            return True
        more = self._more(batches)
        for kind in self._kinds:
            total = kind.total
            for node, amounts in more.items():
                total += kind.fits(node, amounts) - int(kind.counts[node])
            if total < kind.wanted:
                return False
        return True

    def _more(self, batches: Iterable[Batch]) -> dict[int, list[int]]:
        """Node -> what these hold on it."""
        node_of = self.session.node
        freed: dict[int, list[int]] = {}
        for batch in batches:
            for task in batch.tasks:
                node = int(node_of[task])
                if node < 0:
                    continue
                amounts = self._amounts(task, node)
                known = freed.get(node)
                freed[node] = list(amounts) if known is None else [a + b for a, b in zip(known, amounts)]
        return freed

    def _amounts(self, task: int, node: int) -> tuple[int, ...]:
        session = self.session
        number = int(session.shape[task])
        known = self._freed.get(number)
        if known is None:
            known = self._freed[number] = tuple(session.snapshot.shape_request[:, number].tolist())
        if self._shared:
            kind = session.class_of(task)
            if shares_devices(kind):
                assert session.devices is not None and kind.shape.devices is not None
                dim = int(session.devices.dim[node])
                return tuple(a + 1000 * kind.shape.devices.count * (i == dim) for i, a in enumerate(known))
        return known
