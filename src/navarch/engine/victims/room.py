"""Whether a gang could have room once victims are gone: counted by node, before any of them is evicted on trial.

A trial evicts every victim, places the gang and undoes both. This count costs a few microseconds a victim. It leaves out filters and
what tasks of the gang take from each other, so it only says no where a trial would fail too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray


class GangRoom:
    """`pending`: the tasks of the gang. `inside`: the nodes that may be used."""

    def __init__(self, session: Session, pending: Iterable[int], inside: BoolArray) -> None:
        self._session = session
        nodes = session.nodes
        self._room: IntArray = np.where(inside, nodes.future_idle, 0)
        self._counts = Counter(session.class_of(task).number for task in pending)
        classes = {task.number: task for task in map(session.class_of, pending)}
        self._requests = {number: task.request for number, task in classes.items()}
        self._slots = {number: self._count(number, self._room) for number in self._counts}
        self._sums = {number: int(slots.sum()) for number, slots in self._slots.items()}

    def _count(self, number: int, room: IntArray) -> IntArray:
        """How many tasks of the class each column of `room` has room for, up to as many as there are."""
        request = self._requests[number]
        asked = request > 0
        asked[[*self._session.claimable_dims]] = False
        if not asked.any():
            return np.full(room.shape[1], self._counts[number], dtype=np.int64)
        found: IntArray = (room[asked] // request[asked, None]).min(axis=0).clip(0, self._counts[number])
        return found

    def add(self, victims: Iterable[int]) -> None:
        """These tasks would be gone as well."""
        session = self._session
        rows = []
        for task in victims:
            row = int(session.node[task])
            self._room[:, row] += session.class_of(task).request
            rows.append(row)
        changed = np.unique(rows)
        for number, slots in self._slots.items():
            now = self._count(number, self._room[:, changed])
            self._sums[number] += int(now.sum() - slots[changed].sum())
            slots[changed] = now

    @property
    def suffices(self) -> bool:
        """False: a trial would fail."""
        return all(self._sums[number] >= count for number, count in self._counts.items())
