"""Victims as columns, and an estimate by resource sums of which victims make room first.

The victims are ordered, worst first. What their eviction frees is summed in this order for every node, so that no trial is
needed to see how many victims must go before a node has room for one more task. The estimate takes the nodes that have room
first, and only the victims on them that are needed. `minimal_search` tries that choice and reduces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from navarch.actions.kai.solver.victim_queue import Batch
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.points.gang_protocols import Scenario
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray


class VictimColumns:
    """Batches in order of eviction, and their tasks as columns sorted by node."""

    def __init__(self, session: Session, batches: list[Batch]) -> None:
        self.session = session
        self.batches = batches
        tasks = [(i, task) for i, batch in enumerate(batches) for task in batch.tasks]
        self.place = np.array([i for i, _ in tasks], dtype=np.intp)
        rows = np.array([task for _, task in tasks], dtype=np.intp)
        self.node = session.node[rows].astype(np.intp) if tasks else np.zeros(0, dtype=np.intp)
        self.freed: IntArray = session.snapshot.shape_request[:, session.shape[rows]].copy()
        devices = session.devices
        if devices is not None and devices.dims and devices.any_shared:
            for i, (_, task) in enumerate(tasks):
                kind = session.class_of(task)
                if shares_devices(kind):  # its device may become free with it: figures hope for the best
                    asked = kind.shape.devices
                    assert asked is not None
                    self.freed[int(devices.dim[self.node[i]]), i] += 1000 * asked.count
        order = np.lexsort((self.place, self.node))
        self.place, self.node, self.freed = self.place[order], self.node[order], self.freed[:, order]
        self.start = np.searchsorted(self.node, np.arange(len(session.nodes) + 1))
        """The first column of each node."""
        self.of: list[list[int]] = [[] for _ in batches]
        """The columns of each batch."""
        for column, place in enumerate(self.place.tolist()):
            self.of[place].append(column)

    def here(self, node: int) -> slice:
        return slice(int(self.start[node]), int(self.start[node + 1]))

    def with_freed(self, places: Sequence[int], room: IntArray) -> IntArray:
        """A copy of a table of free resources, plus what these batches hold."""
        out = room.copy()
        self.add_freed(out, np.array([column for place in places for column in self.of[place]], dtype=np.intp))
        return out

    def add_freed(self, room: IntArray, tasks: IntArray) -> None:
        """Add what these columns hold to a table of free resources."""
        if len(tasks) <= 2:
            for column in tasks:
                room[:, self.node[column]] += self.freed[:, column]
            return
        nodes = self.node[tasks]
        for resource, amount in enumerate(self.freed[:, tasks]):
            if amount.any():
                room[resource] += np.bincount(nodes, weights=amount, minlength=room.shape[1]).astype(np.int64)


class RoomEstimate:
    """Where the tasks of a chunk may fit, by resource sums."""

    def __init__(self, session: Session, chunk: Sequence[int]) -> None:
        self.session = session
        self.size = len(chunk)
        kinds: dict[int, tuple[TaskClass, int]] = {}
        for task in chunk:
            kind = session.class_of(task)
            kinds[kind.number] = (kind, kinds.get(kind.number, (kind, 0))[1] + 1)
        self.kinds = sorted(kinds.values(), key=lambda entry: (-_size(session, entry[0]), entry[0].number))
        self.room: IntArray = session.nodes.future_idle
        """Resources that are free or in release, before any eviction."""
        self.possible = [session.view(kind).feasible().copy() for kind, _ in self.kinds]

    def need(self, kind: TaskClass) -> IntArray:
        """The request of a task. A shared device counts nothing here: only a trial can tell whether it has room."""
        return kind.request

    def fits(self, kind: TaskClass, room: IntArray) -> IntArray:
        """How many such tasks fit into each column of free resources."""
        need = self.need(kind)
        dims = np.flatnonzero(need)
        count: IntArray = (np.maximum(room[dims], 0) // need[dims, None]).min(axis=0)
        return count

    def has_room(self, ordered: VictimColumns) -> bool:
        """Whether evicting all these victims would make room for each class of tasks by itself."""
        room = ordered.with_freed(range(len(ordered.batches)), self.room)
        return all(
            int(self.fits(kind, room)[possible].sum()) >= count
            for (kind, count), possible in zip(self.kinds, self.possible, strict=True)
        )

    def choose(self, ordered: VictimColumns) -> list[int]:
        """Places of the victims that make room first; all places if the sums find no way."""
        room = self.room.copy()
        chosen: set[int] = set()
        for (kind, count), possible in zip(self.kinds, self.possible, strict=True):
            events = sorted(self._events(kind, count, room, ordered, possible, chosen))[:count]
            for _, _, node, upto in events:
                room[:, node] -= self.need(kind)
                for place in ordered.place[ordered.here(node)].tolist():
                    if place <= upto and place not in chosen:
                        chosen.add(place)
                        ordered.add_freed(room, np.array(ordered.of[place], dtype=np.intp))
        return sorted(chosen)

    def _events(
        self, kind: TaskClass, most: int, room: IntArray, ordered: VictimColumns, possible: BoolArray, chosen: set[int]
    ) -> Iterator[tuple[int, int, int, int]]:
        """(place of the last victim, number of victims, node, place): one for each further task that a node could take."""
        idle = self.fits(kind, room)
        for node in np.flatnonzero(possible & (idle > 0)).tolist():
            for _ in range(min(int(idle[node]), most)):
                yield -1, 0, node, -1
        for node in np.flatnonzero(possible & (np.diff(ordered.start) > 0)).tolist():
            here = ordered.here(node)
            places = ordered.place[here]
            gains = np.where(np.isin(places, list(chosen)), 0, 1) if chosen else np.ones(len(places), dtype=np.int64)
            steps = self.fits(kind, room[:, node, None] + np.cumsum(ordered.freed[:, here] * gains, axis=1))
            had = int(idle[node])
            for i in np.flatnonzero(np.diff(steps, prepend=had) > 0).tolist():
                for _ in range(min(int(steps[i]) - had, most)):
                    yield int(places[i]), i + 1, node, int(places[i])
                had = int(steps[i])


def _size(session: Session, kind: TaskClass) -> float:
    """The largest share of the cluster that a task requests, over all resources."""
    total = np.maximum(session.total, 1)
    return float((kind.request / total).max())


def admissible(ordered: VictimColumns, job: Job, tasks: Sequence[int], validate: Callable[[Scenario], bool]) -> list[Batch]:
    """For each queue, its first batches as far as the rules allow taking them all. More from one queue breaks a rule, independent
    of the other queues."""
    by_queue: dict[str, list[Batch]] = {}
    for batch in ordered.batches:
        by_queue.setdefault(batch.job.queue.name, []).append(batch)
    allowed: set[int] = set()
    for batches in by_queue.values():
        low, high = 0, len(batches)
        if validate(_all_lost(ordered.session, job, tasks, batches)):
            low = high
        while low < high:
            middle = (low + high + 1) // 2
            if validate(_all_lost(ordered.session, job, tasks, batches[:middle])):
                low = middle
            else:
                high = middle - 1
        allowed.update(id(batch) for batch in batches[:low])
    return [batch for batch in ordered.batches if id(batch) in allowed]


def _all_lost(session: Session, job: Job, tasks: Sequence[int], batches: Sequence[Batch]) -> Scenario:
    victims: dict[int, tuple[Job, list[int]]] = {}
    for batch in batches:
        victims.setdefault(batch.job.row, (batch.job, []))[1].extend(batch.tasks)
    came_from = {task: int(session.node[task]) for batch in batches for task in batch.tasks}
    return Scenario(job, tasks, list(victims.values()), frozenset(), came_from)
