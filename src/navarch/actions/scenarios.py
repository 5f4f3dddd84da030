"""Which victims to try, in which order: two ways of turning the line of victims into scenarios.

Both take batch after batch from the line. After each, three quick tests say whether all that was taken so far could be enough;
if not, nothing is tried yet. Node by node: the jobs that stand on a node of the newest victim, whole. Several nodes at once: as
many of the nodes that victims stand on as are needed, those with the least room first, then more and more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from navarch.actions.victim_pool import Batch
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter
from navarch.engine.session import Session
from navarch.engine.static import static_mask
from navarch.model.resources import BoolArray, FloatArray

Victims = list[Batch]


class Ground:
    """What a probe stands on: the tasks to be placed, the nodes it may use, what is settled, and what GPUs there are."""

    def __init__(self, session: Session, tasks: Sequence[int], feasible: BoolArray, recorded: Sequence[Batch]) -> None:
        self.session = session
        self.tasks = tasks
        self.feasible = feasible
        self.recorded = list(recorded)
        assert session.devices is not None
        self.wanted = sorted((gpus_asked(session, task) for task in tasks), reverse=True)
        self.free: FloatArray = session.devices.idle_parts() + session.devices.releasing_parts()
        for batch in recorded:
            self.give(self.free, batch)
        self.demands = [mask for task in tasks if (mask := _demanded(session, task)) is not None]

    def give(self, free: FloatArray, batch: Batch) -> None:
        session = self.session
        for task in batch.tasks:
            if session.node[task] >= 0:
                free[session.node[task]] += gpus_held(session, task)

    def could_fit(self, free: FloatArray, victims: BoolArray) -> bool:
        """Whether the tasks' GPUs find room on the nodes as they would be, and their node selectors a node at all."""
        here = self.feasible | victims
        if not all((mask & here).any() for mask in self.demands):
            return False
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
    """The victims taken from the line so far."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.session = ground.session
        self.batches: Victims = []
        self.free = ground.free.copy()
        self.on_nodes: BoolArray = np.zeros(len(ground.free), dtype=bool)
        self.of_job: dict[int, Victims] = {}
        self.jobs_on: dict[int, dict[int, None]] = {}
        for batch in ground.recorded:
            self.of_job.setdefault(batch.job.row, []).append(batch)

    def take(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.ground.give(self.free, batch)
        self.of_job.setdefault(batch.job.row, []).append(batch)
        for task in batch.tasks:
            node = int(self.session.node[task])
            if node >= 0:
                self.on_nodes[node] = True
                self.jobs_on.setdefault(node, {})[batch.job.row] = None


def node_by_node(ground: Ground, line: Iterator[Batch]) -> Iterator[Victims]:
    taken = Taken(ground)
    if ground.recorded and ground.could_fit(taken.free, taken.on_nodes):
        yield []
    for batch in line:
        taken.take(batch)
        if not ground.could_fit(taken.free, taken.on_nodes):
            continue
        tried: set[frozenset[int]] = set()
        for node in _nodes_of(ground.session, batch.job):
            chosen = [each for row in taken.jobs_on.get(node, ()) for each in taken.of_job[row]]
            tasks = frozenset(task for each in chosen for task in each.tasks)
            if chosen and tasks not in tried:
                tried.add(tasks)
                yield chosen


def several_nodes(ground: Ground, line: Iterator[Batch]) -> Iterator[Victims]:
    taken = Taken(ground)
    if ground.recorded and ground.could_fit(taken.free, taken.on_nodes):
        yield []
    appeared: dict[int, int] = {}
    smallest, total = min(ground.wanted, default=0.0), sum(ground.wanted)
    for batch in line:
        taken.take(batch)
        for task in batch.tasks:
            node = int(ground.session.node[task])
            if node >= 0:
                appeared.setdefault(node, len(appeared))
        if not ground.could_fit(taken.free, taken.on_nodes):
            continue
        baseline = float(ground.free[ground.feasible & ~taken.on_nodes].sum())
        need = max(0.0, total - baseline)
        nodes = [node for node in appeared if smallest <= 0 or taken.free[node] >= smallest]
        nodes.sort(key=lambda node: (taken.free[node], appeared[node]))
        for size in _sizes([float(taken.free[node]) for node in nodes], need):
            chosen = set(nodes[:size])
            yield [b for b in taken.batches if any(int(ground.session.node[t]) in chosen for t in b.tasks)]


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


GENERATORS = {"node-local": node_by_node, "multi-node": several_nodes}


def gpus_asked(session: Session, task: int) -> float:
    """GPUs of a task to be placed; a share of memory names no part of one."""
    return _counted(session, task, memory=0)


def gpus_held(session: Session, task: int) -> float:
    node = int(session.node[task])
    assert session.devices is not None
    return _counted(session, task, memory=int(session.devices.memory[node]))


def _counted(session: Session, task: int, memory: int) -> float:
    assert session.devices is not None
    return session.devices.gpus_of(session.class_of(task), memory)


def _demanded(session: Session, task: int) -> BoolArray | None:
    kind = session.class_of(task)
    for each in session.filters:
        found: NodeFilter = each
        if found.name == "NodeAffinity" and found.applies(kind):
            return static_mask(session, found, kind)
    return None


def _nodes_of(session: Session, job: Job) -> list[int]:
    """Nodes with any pod of the job, by name."""
    return sorted({int(session.node[task]) for task in job.tasks if session.node[task] >= 0}, key=lambda n: session.nodes.names[n])
