"""Scenario generators: two ways to form scenarios from the order of victims.

Both take batch after batch in order. After each batch, three quick tests check whether all victims so far could be enough; if
not, no scenario is formed yet. Node by node: all batches of the jobs on a node of the newest victim. Several nodes: as many of
the victims' nodes as are needed, those with the least free resources first, then more and more of them; the victims are named node by
node.

Scenarios that resource sums prove to fail (`resource_bound`) are skipped. Further victims only add free resources, so if all
victims so far together are not enough, no subset of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from navarch.actions.kai.solver.domain_capacity import DomainCapacity
from navarch.actions.kai.solver.resource_bound import ResourceBound
from navarch.actions.kai.solver.scenario_trial import trials_leave_traces
from navarch.actions.kai.solver.victim_queue import Batch, Victims, without_repeats
from navarch.engine.job import Job
from navarch.engine.placement.static_cache import static_mask
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray

_FIRST, _STRETCH = 16, 128
"""Batches that are looked at together at first, and at most."""


class Probe:
    """The input of one probe: the tasks to place, the usable nodes, the recorded victims, and the GPUs."""

    def __init__(
        self,
        session: Session,
        tasks: Sequence[int],
        feasible: BoolArray,
        recorded: Sequence[Batch],
        bound: ResourceBound,
        domains: DomainCapacity,
        *,
        exhaustive: bool = False,
        spend: Callable[[int], None] = lambda steps: None,
    ) -> None:
        """`bound`: with the recorded victims. `exhaustive`: every state is tested from scratch and offers what it has, whatever
        figures say. `spend` is told of every batch that is looked at."""
        self.spend = spend
        self.session = session
        self.bound = bound
        self.domains = domains
        self.tasks = tasks
        self.feasible = feasible
        self.recorded = list(recorded)
        self.once = without_repeats(recorded)
        self.counts_gpus = sum(len(b.tasks) for b in self.once) == sum(len(b.tasks) for b in recorded)
        """Whether the GPUs that victims free are summed. A scenario that names a victim twice is not judged by that sum."""
        assert session.devices is not None
        self._gpus: dict[tuple[int, int], float] = {}
        self.wanted = sorted((gpus_asked(session, task) for task in tasks), reverse=True)
        self._opening: FloatArray = session.devices.idle_parts() + session.devices.releasing_parts()
        self.free: FloatArray = self._opening.copy()
        for batch in self.once:
            self.give(self.free, batch)
        kinds = {session.class_of(task).number: task for task in tasks}
        self.demands = [mask for task in kinds.values() if (mask := _demanded(session, task)) is not None]
        self.gpus_each = 0
        """GPUs of every task, if all want the same whole number."""
        if self.wanted and self.wanted[0] == self.wanted[-1] > 0 and self.wanted[0].is_integer() and not exhaustive:
            self.gpus_each = int(self.wanted[0])

    def traces(self) -> FloatArray | float:
        """By how much the free GPUs of nodes differ from the start of the probe: failed trials may leave shared GPUs changed."""
        devices = self.session.devices
        assert devices is not None
        if not trials_leave_traces(self.session):
            return 0.0
        changed: FloatArray = devices.idle_parts() + devices.releasing_parts() - self._opening
        return changed

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
        """Whether the GPUs of the tasks fit the nodes and required domains after the evictions, and each node selector matches a
        usable node."""
        here = self.feasible | victims
        if not all((mask & here).any() for mask in self.demands) or not self.domains.could_hold(free):
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


class TakenVictims:
    """The victims taken so far. Derived figures are updated when they are read."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.session = probe.session
        self.batches: Victims = []
        self.room = probe.bound.copy()
        self._free = probe.free.copy()
        self._on_nodes: BoolArray = np.zeros(len(probe.free), dtype=bool)
        self._appeared: dict[int, int] = {}
        self._counted_batches = 0
        """How many batches these know of."""
        self._of_job: dict[int, Victims] = {}
        self._jobs_on: dict[int, dict[int, None]] = {}
        self._indexed_batches = 0
        """How many batches these know of."""
        for batch in probe.recorded:
            self._of_job.setdefault(batch.job.row, []).append(batch)
        self._demanded = False
        self._slots = self._count_slots()

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.room.add(batch)

    def add_unless_enough(self, stretch: Victims) -> bool:
        """Take all of these if even then no scenario could hold, else none. Returns whether they were taken."""
        taken = self.room.add_unless_enough(stretch)
        if taken:
            self.batches += stretch
        return taken

    def add_too_few(self, stretch: Victims, start: int) -> int:
        """Take the batches from `start` on with which the nodes still have too few slots. Returns how many were taken.

        Only slots are looked at, in plain numbers: most states of a long stretch fail by them alone."""
        probe, gpus_each = self.probe, self.probe.gpus_each
        if not gpus_each or not probe.counts_gpus:
            return 0
        self._update_free()
        slots, wanted, node_of, free = self._slots, len(probe.wanted), self.session.node, dict[int, float]()
        if slots >= wanted:
            return 0
        end = start
        for batch in stretch[start:]:
            for task in batch.tasks:
                node = int(node_of[task])
                if node < 0:
                    continue
                before = free.get(node)
                if before is None:
                    before = float(self._free[node])
                after = free[node] = before + probe.gpus_held(task, node)
                slots += int(max(after, 0.0) // gpus_each) - int(max(before, 0.0) // gpus_each)
            if slots >= wanted:
                break
            end += 1
        if end > start:
            self.batches += stretch[start:end]
            self.room.add_all(stretch[start:end])
        return end - start

    # what is made of them

    @property
    def free(self) -> FloatArray:
        self._update_free()
        return self._free

    @property
    def on_nodes(self) -> BoolArray:
        self._update_free()
        return self._on_nodes

    @property
    def appeared(self) -> dict[int, int]:
        """Node -> how many other nodes had victims before it."""
        self._update_free()
        return self._appeared

    def _update_free(self) -> None:
        new = self.batches[self._counted_batches :]
        if not new:
            return
        self._counted_batches = len(self.batches)
        probe, gpus_each = self.probe, self.probe.gpus_each
        one_by_one = len(new) == 1
        node_of = self.session.node
        for batch in new:
            for task in batch.tasks:
                node = int(node_of[task])
                if node < 0:
                    continue
                before = float(self._free[node])
                after = self._free[node] = before + probe.gpus_held(task, node)
                if one_by_one and gpus_each:
                    self._slots += int(max(after, 0.0) // gpus_each) - int(max(before, 0.0) // gpus_each)
                self._on_nodes[node] = True
                self._appeared.setdefault(node, len(self._appeared))
        if not one_by_one:
            self._slots = self._count_slots()

    def _count_slots(self) -> int:
        gpus_each = self.probe.gpus_each
        return int((np.maximum(self._free, 0) // gpus_each).sum()) if gpus_each else 0

    def of_jobs_on(self, node: int) -> Victims:
        """All batches of the jobs that have a batch on the node."""
        for batch in self.batches[self._indexed_batches :]:
            self._of_job.setdefault(batch.job.row, []).append(batch)
            for task in batch.tasks:
                here = int(self.session.node[task])
                if here >= 0:
                    self._jobs_on.setdefault(here, {})[batch.job.row] = None
        self._indexed_batches = len(self.batches)
        found = (self._of_job[row] for row in self._jobs_on.get(node, ()))
        return [Batch(of_job[0].job, tuple(task for batch in of_job for task in batch.tasks)) for of_job in found]

    def may_suffice(self) -> bool:
        """The tests of `Probe.could_fit`, updated incrementally, and the resource bound.

        Tasks that all want the same whole number of GPUs fit if and only if the nodes together have that many slots, because first
        fit then fills node after node."""
        probe = self.probe
        self._update_free()
        if not probe.gpus_each or not probe.counts_gpus:
            fits = probe.could_fit(self.free, self.on_nodes)
        else:
            if not self._demanded:
                here = probe.feasible | self.on_nodes
                self._demanded = all((mask & here).any() for mask in probe.demands)
            fits = self._demanded and self._slots >= len(probe.wanted) and probe.domains.could_hold(self._free)
        return fits and self.room.admits()


def _states(probe: Probe, taken: TakenVictims, ordered: Iterator[Batch]) -> Iterator[Batch]:
    """The newest batch of every state that may suffice. Victims only add free resources: if a whole stretch of batches is not
    enough, no state in it is. Stretches grow while they are taken whole."""
    size, hope = _FIRST, False
    while stretch := list(islice(ordered, size)):
        probe.spend(len(stretch))
        if not hope and taken.add_unless_enough(stretch):
            size = min(2 * size, _STRETCH)
            continue
        hope, size, place = True, 8, 0
        while place < len(stretch):
            place += taken.add_too_few(stretch, place)
            if place < len(stretch):
                taken.add(stretch[place])
                place += 1
                if taken.may_suffice():
                    yield stretch[place - 1]


def node_by_node(probe: Probe, ordered: Iterator[Batch]) -> Iterator[Victims]:
    taken = TakenVictims(probe)
    if probe.recorded and taken.may_suffice():
        yield []
    for batch in _states(probe, taken, ordered):
        tried: set[frozenset[int]] = set()
        for node in _nodes_of(probe.session, batch.job):
            chosen = taken.of_jobs_on(node)
            tasks = frozenset(task for each in chosen for task in each.tasks)
            if chosen and tasks not in tried:
                tried.add(tasks)
                yield chosen


def several_nodes(probe: Probe, ordered: Iterator[Batch]) -> Iterator[Victims]:
    taken = TakenVictims(probe)
    if probe.recorded and taken.may_suffice():
        yield []
    smallest, total = min(probe.wanted, default=0.0), sum(probe.wanted)
    for _ in _states(probe, taken, ordered):
        traces = probe.traces()
        appeared, free = taken.appeared, (taken.free + traces).tolist()
        baseline = float((probe.free + traces)[probe.feasible & ~taken.on_nodes].sum())
        need = max(0.0, total - baseline)
        nodes = [node for node in appeared if smallest <= 0 or free[node] >= smallest]
        nodes.sort(key=lambda node: (free[node], appeared[node]))
        where = [[int(probe.session.node[t]) for t in b.tasks] for b in taken.batches]
        for size in _sizes([free[node] for node in nodes], need):
            place = {node: i for i, node in enumerate(nodes[:size])}
            first = [min((place[node] for node in at if node in place), default=-1) for at in where]
            yield [taken.batches[i] for i in sorted(range(len(first)), key=first.__getitem__) if first[i] >= 0]


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
    """GPUs of a task to be placed. A share by memory counts none."""
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
