"""Which victims to try, in which order: two ways of turning the line of victims into scenarios.

Both take batch after batch from the line. After each, three quick tests say whether all that was taken so far could be enough;
if not, nothing is tried yet. Node by node: the jobs that stand on a node of the newest victim, whole. Several nodes at once: as
many of the nodes that victims stand on as are needed, those with the least room first, then more and more of them.

Scenarios that figures prove to fail (`room_bound`) are passed over. Taken victims only ever add room, so what all of them together
cannot do no choice among them can: such a state offers nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from navarch.actions.kai.solver.resource_bound import RoomBound
from navarch.actions.kai.solver.victim_queue import Batch, Victims, without_repeats
from navarch.engine.job import Job
from navarch.engine.placement.static_cache import static_mask
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray

_STRETCH = 128


class Ground:
    """What a probe stands on: the tasks to be placed, the nodes it may use, what is settled, and what GPUs there are."""

    def __init__(
        self,
        session: Session,
        tasks: Sequence[int],
        feasible: BoolArray,
        recorded: Sequence[Batch],
        *,
        plain: bool = False,
        all_return: bool = False,
        spend: Callable[[int], None] = lambda steps: None,
    ) -> None:
        """`all_return`: see `RoomBound`. `plain`: every state is tested from scratch and offers what it has, whatever
        figures say. `spend` is told of every batch that is looked at."""
        self.spend = spend
        self.session = session
        self.plain, self.all_return = plain, all_return
        self.tasks = tasks
        self.feasible = feasible
        self.recorded = list(recorded)
        self.once = without_repeats(recorded)
        self.counts_gpus = sum(len(b.tasks) for b in self.once) == sum(len(b.tasks) for b in recorded)
        """Whether the GPUs that victims free are summed up. A scenario that names a victim twice is not judged by that sum."""
        assert session.devices is not None
        self._gpus: dict[tuple[int, int], float] = {}
        self.wanted = sorted((gpus_asked(session, task) for task in tasks), reverse=True)
        self.free: FloatArray = session.devices.idle_parts() + session.devices.releasing_parts()
        for batch in self.once:
            self.give(self.free, batch)
        self.demands = [mask for task in tasks if (mask := _demanded(session, task)) is not None]
        self.alike = 0
        """GPUs of every task if all want the same whole number of them."""
        if self.wanted and self.wanted[0] == self.wanted[-1] > 0 and self.wanted[0].is_integer() and not plain:
            self.alike = int(self.wanted[0])

    def give(self, free: FloatArray, batch: Batch) -> None:
        session = self.session
        for task in batch.tasks:
            if session.node[task] >= 0:
                free[session.node[task]] += self.gpus_held(task, int(session.node[task]))

    def gpus_held(self, task: int, node: int) -> float:
        session = self.session
        assert session.devices is not None
        shape, memory = int(session.shape[task]), int(session.devices.memory[node])
        known = self._gpus.get((shape, memory))
        if known is None:
            known = self._gpus[shape, memory] = session.devices.gpus_of(session.class_of(task), memory)
        return known

    def could_fit(self, free: FloatArray, victims: BoolArray) -> bool:
        """Whether the tasks' GPUs find room on the nodes as they would be, and their node selectors a node at all."""
        here = self.feasible | victims
        if not all((mask & here).any() for mask in self.demands):
            return False
        if not self.counts_gpus:
            return True
        count = len(self.wanted)
        room = np.sort(free)[::-1][:count].tolist() if count < len(free) else sorted(free.tolist(), reverse=True)
        for asked in self.wanted:
            if asked == 0:
                return True
            for i, amount in enumerate(room):
                if amount >= asked:
                    room[i] = amount - asked
                    break
            else:
                return False
        return True


class Taken:
    """The victims taken from the line so far. What is made of them is brought up to date when it is asked for."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.session = ground.session
        self.batches: Victims = []
        self.room = RoomBound(ground.session, () if ground.plain else ground.tasks, ground.once, all_return=ground.all_return)
        self._free = ground.free.copy()
        self._on_nodes: BoolArray = np.zeros(len(ground.free), dtype=bool)
        self._appeared: dict[int, int] = {}
        self._figured = 0
        """How many batches these know of."""
        self._of_job: dict[int, Victims] = {}
        self._jobs_on: dict[int, dict[int, None]] = {}
        self._sorted = 0
        """How many batches these know of."""
        for batch in ground.recorded:
            self._of_job.setdefault(batch.job.row, []).append(batch)
        self._demanded = False
        self._slots = self._count_slots()

    def take(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.room.take(batch)

    def take_unless_enough(self, stretch: Victims) -> bool:
        """Take all of these if even so nothing could be done, else none. Whether they were taken."""
        taken = self.room.take_unless_enough(stretch)
        if taken:
            self.batches += stretch
        return taken

    # what is made of them

    @property
    def free(self) -> FloatArray:
        self._figure()
        return self._free

    @property
    def on_nodes(self) -> BoolArray:
        self._figure()
        return self._on_nodes

    @property
    def appeared(self) -> dict[int, int]:
        """Node -> how many others had victims before it."""
        self._figure()
        return self._appeared

    def _figure(self) -> None:
        new = self.batches[self._figured :]
        if not new:
            return
        self._figured = len(self.batches)
        ground, alike = self.ground, self.ground.alike
        one_by_one = len(new) == 1
        for batch in new:
            for task in batch.tasks:
                node = int(self.session.node[task])
                if node < 0:
                    continue
                before = float(self._free[node])
                after = self._free[node] = before + ground.gpus_held(task, node)
                if one_by_one and alike:
                    self._slots += int(max(after, 0.0) // alike) - int(max(before, 0.0) // alike)
                self._on_nodes[node] = True
                self._appeared.setdefault(node, len(self._appeared))
        if not one_by_one:
            self._slots = self._count_slots()

    def _count_slots(self) -> int:
        alike = self.ground.alike
        return int((np.maximum(self._free, 0) // alike).sum()) if alike else 0

    def of_jobs_on(self, node: int) -> Victims:
        """All batches of the jobs that have one on the node, recorded ones included, as one batch a job."""
        for batch in self.batches[self._sorted :]:
            self._of_job.setdefault(batch.job.row, []).append(batch)
            for task in batch.tasks:
                here = int(self.session.node[task])
                if here >= 0:
                    self._jobs_on.setdefault(here, {})[batch.job.row] = None
        self._sorted = len(self.batches)
        found = (self._of_job[row] for row in self._jobs_on.get(node, ()))
        return [Batch(of_job[0].job, tuple(task for batch in of_job for task in batch.tasks)) for of_job in found]

    def could_do(self) -> bool:
        """The tests of `Ground.could_fit`, kept up to date, and whether figures leave any hope.

        Tasks that all want the same whole number of GPUs fit if and only if the nodes together hold so many of them: first
        fit then fills node after node, and of the nodes that hold one at all the largest come first."""
        ground = self.ground
        self._figure()
        if not ground.alike or not ground.counts_gpus:
            fits = ground.could_fit(self.free, self.on_nodes)
        else:
            if not self._demanded:
                here = ground.feasible | self.on_nodes
                self._demanded = all((mask & here).any() for mask in ground.demands)
            fits = self._demanded and self._slots >= len(ground.wanted)
        return fits and self.room.admits()


def _states(ground: Ground, taken: Taken, line: Iterator[Batch]) -> Iterator[Batch]:
    """The newest batch of every state that could do. More victims only add room, so where a whole stretch of the line
    together is not enough no state in it is; stretches grow while they are taken whole."""
    size, hope = 1, False
    while stretch := list(islice(line, size)):
        ground.spend(len(stretch))
        if not hope and taken.take_unless_enough(stretch):
            size = min(2 * size, _STRETCH)
            continue
        hope, size = True, 8
        for batch in stretch:
            taken.take(batch)
            if taken.could_do():
                yield batch


def node_by_node(ground: Ground, line: Iterator[Batch]) -> Iterator[Victims]:
    taken = Taken(ground)
    if ground.recorded and taken.could_do():
        yield []
    for batch in _states(ground, taken, line):
        tried: set[frozenset[int]] = set()
        for node in _nodes_of(ground.session, batch.job):
            chosen = taken.of_jobs_on(node)
            tasks = frozenset(task for each in chosen for task in each.tasks)
            if chosen and tasks not in tried:
                tried.add(tasks)
                yield chosen


def several_nodes(ground: Ground, line: Iterator[Batch]) -> Iterator[Victims]:
    taken = Taken(ground)
    if ground.recorded and taken.could_do():
        yield []
    smallest, total = min(ground.wanted, default=0.0), sum(ground.wanted)
    for _ in _states(ground, taken, line):
        appeared, free = taken.appeared, taken.free.tolist()
        baseline = float(ground.free[ground.feasible & ~taken.on_nodes].sum())
        need = max(0.0, total - baseline)
        nodes = [node for node in appeared if smallest <= 0 or free[node] >= smallest]
        nodes.sort(key=lambda node: (free[node], appeared[node]))
        where = [[int(ground.session.node[t]) for t in b.tasks] for b in taken.batches]
        for size in _sizes([free[node] for node in nodes], need):
            chosen = set(nodes[:size])
            yield [b for b, at in zip(taken.batches, where, strict=True) if not chosen.isdisjoint(at)]


def _sizes(capacities: Sequence[float], need: float) -> Iterator[int]:
    """The smallest number of nodes that could be enough, then one, three, seven more and so on, then all."""
    first, sum_ = 0, 0.0
    while sum_ < need:
        if first == len(capacities):
            return
        sum_ += capacities[first]
        first += 1
    step, size = 1, first
    while size < len(capacities):
        yield size
        size, step = first + step, 2 * step + 1
    yield len(capacities)


NODE_BY_NODE = "NodeLocalGreedy"
GENERATORS = {NODE_BY_NODE: node_by_node, "MultiNodeGang": several_nodes}


def gpus_asked(session: Session, task: int) -> float:
    """GPUs of a task to be placed; a share of memory names no part of one."""
    assert session.devices is not None
    return session.devices.gpus_of(session.class_of(task), 0)


def _demanded(session: Session, task: int) -> BoolArray | None:
    kind = session.class_of(task)
    for each in session.filters_for(kind):
        if each.selects_nodes:
            return static_mask(session, each, kind)
    return None


def _nodes_of(session: Session, job: Job) -> list[int]:
    """Nodes with any pod of the job, by name."""
    return sorted({int(session.node[task]) for task in job.tasks if session.node[task] >= 0}, key=lambda n: session.nodes.names[n])
