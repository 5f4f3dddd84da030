"""Scenario generators: two ways to form scenarios from the order of victims.

Both take batch after batch in order. After each batch, three quick tests check whether all victims so far could be enough; if
not, no scenario is formed yet. Node by node: all batches of the jobs on a node of the newest victim. Several nodes: as many of the
victims' nodes as are needed, those with the least free resources first, then more and more of them; the victims are named node by
node.

Scenarios that resource sums prove to fail (`resource_bound`) are skipped. Further victims only add free resources, so if all
victims so far together are not enough, no subset of them is. Sums over the columns of a stretch of batches tell at once after which
of them the victims could be enough; the tests are made only there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from navarch.actions.kai.solver.domain_capacity import DomainCapacity
from navarch.actions.kai.solver.resource_bound import ResourceBound
from navarch.actions.kai.solver.victim_queue import Batch, Victims, without_repeats
from navarch.actions.kai.solver.victim_sequence import Stretch
from navarch.engine.job import Job
from navarch.engine.placement.static_cache import static_mask
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray, IntArray

_ROUNDING = 1e-9
"""Sums of parts of GPUs in another order may differ by less. Where GPUs are shared, `suffice` counts exactly."""


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
        self.free: FloatArray = session.devices.idle_parts() + session.devices.releasing_parts()
        for batch in self.once:
            self.give(self.free, batch)
        kinds = {session.class_of(task).number: task for task in tasks}
        self.demands = [mask for task in kinds.values() if (mask := _demanded(session, task)) is not None]
        self.gpus_each = 0
        """GPUs of every task, if all want the same whole number. Then they fit if and only if the nodes together have as many slots
        of that size, because first fit fills node after node."""
        if self.wanted and self.wanted[0] == self.wanted[-1] > 0 and self.wanted[0].is_integer() and not exhaustive:
            self.gpus_each = int(self.wanted[0])

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

    def recorded_may_suffice(self) -> bool:
        """Whether the recorded victims alone could be enough."""
        return bool(self.recorded) and self.could_fit(self.free, np.zeros(len(self.free), dtype=bool)) and self.bound.admits()

    def nodes_match(self, victims: BoolArray) -> bool:
        """Whether each node selector matches a usable node, or one with victims."""
        here = self.feasible | victims
        return all((mask & here).any() for mask in self.demands)

    def could_fit(self, free: FloatArray, victims: BoolArray) -> bool:
        """Whether the GPUs of the tasks fit the nodes and required domains after the evictions, and each node selector matches a
        usable node."""
        if not self.nodes_match(victims) or not self.domains.could_hold(free):
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
    """The victims taken so far."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.session = probe.session
        self.batches: Victims = []
        self.room = probe.bound.copy()
        """With the stretches that were taken whole."""
        self.free: FloatArray = probe.free.copy()
        """Free GPUs of every node, with those of the victims."""
        self.on_nodes: BoolArray = np.zeros(len(probe.free), dtype=bool)
        self.appeared: list[int] = []
        """The nodes with victims, in the order in which they got the first one."""
        self._columns: list[tuple[IntArray, IntArray]] = []
        """For the tasks of the victims: the place of the batch, and the node."""
        self._of_job: dict[int, Victims] = {}
        self._indexed_batches = 0
        """How many batches `_of_job` knows of."""
        for batch in probe.recorded:
            self._of_job.setdefault(batch.job.row, []).append(batch)
        self._demanded = False

    def may_be_enough(self, stretch: Stretch) -> BoolArray:
        """After which batches of the next stretch, by sums, the victims could be enough. See `Probe.gpus_each` for the slots."""
        probe, gpus_each = self.probe, self.probe.gpus_each
        out = self.room.enough_after(stretch)
        if gpus_each and probe.counts_gpus:

            def fits(node: IntArray, freed: FloatArray) -> IntArray:
                return _slots(self.free[node] + freed[0] + _ROUNDING, gpus_each)

            slots = _slots(self.free + _ROUNDING, gpus_each)
            out &= int(slots.sum()) + stretch.totals(fits, stretch.columns.gpus[None], slots) >= len(probe.wanted)
        return out

    def take(self, stretch: Stretch, first: int, end: int) -> None:
        """Take the batches of a stretch from `first` up to `end`."""
        self.probe.spend(end - first)
        columns = stretch.columns
        here = slice(*np.searchsorted(columns.place, (first, end)).tolist())
        nodes = columns.node[here]
        self._columns.append((columns.place[here] + (len(self.batches) - first), nodes))
        self.batches += stretch.batches[first:end]
        np.add.at(self.free, nodes, columns.gpus[here])
        fresh = nodes[~self.on_nodes[nodes]]
        if len(fresh):
            self.appeared += dict.fromkeys(fresh.tolist())
            self.on_nodes[fresh] = True

    def columns(self) -> tuple[IntArray, IntArray]:
        """For the tasks of the victims: the place of the batch, and the node."""
        if len(self._columns) > 1:
            self._columns = [(np.concatenate([p for p, _ in self._columns]), np.concatenate([n for _, n in self._columns]))]
        return self._columns[0]

    def on_any(self, chosen: IntArray) -> Victims:
        """The batches with a task on one of these nodes, node by node."""
        place, node = self.columns()
        number: IntArray = np.full(len(self.free), len(chosen), dtype=np.int64)
        number[chosen] = np.arange(len(chosen))
        first: IntArray = np.full(len(self.batches), len(chosen), dtype=np.int64)
        np.minimum.at(first, place, number[node])
        order = np.argsort(first, kind="stable")
        return [self.batches[each] for each in order[: int((first < len(chosen)).sum())].tolist()]

    def of_jobs_on(self, node: int) -> Victims:
        """All batches of the jobs that have a batch on the node."""
        of_job = self._of_job
        for batch in self.batches[self._indexed_batches :]:
            row = batch.job.row
            if row in of_job:
                of_job[row].append(batch)
            else:
                of_job[row] = [batch]
        self._indexed_batches = len(self.batches)
        place, nodes = self.columns()
        rows = dict.fromkeys(self.batches[each].job.row for each in place[nodes == node].tolist())
        found = (of_job[row] for row in rows)
        return [Batch(each[0].job, tuple(task for batch in each for task in batch.tasks)) for each in found]

    def suffice(self) -> bool:
        """The tests of `Probe.could_fit`. Where slots decide about GPUs, `may_be_enough` has counted them."""
        probe = self.probe
        assert self.session.devices is not None
        if not probe.gpus_each or not probe.counts_gpus or self.session.devices.any_shared:
            return probe.could_fit(self.free, self.on_nodes)
        self._demanded = self._demanded or probe.nodes_match(self.on_nodes)
        return self._demanded and probe.domains.could_hold(self.free)


def _slots(free: FloatArray, gpus_each: int) -> IntArray:
    out: IntArray = (np.maximum(free, 0.0) // gpus_each).astype(np.int64)
    return out


def _states(probe: Probe, taken: TakenVictims, ordered: Iterator[Stretch]) -> Iterator[Batch]:
    """The newest batch of every state that may suffice."""
    for stretch in ordered:
        done = 0
        for place in np.flatnonzero(taken.may_be_enough(stretch)).tolist():
            taken.take(stretch, done, place + 1)
            done = place + 1
            if taken.suffice():
                yield stretch.batches[place]
        taken.take(stretch, done, len(stretch))
        taken.room.add_stretch(stretch)


def node_by_node(probe: Probe, ordered: Iterator[Stretch]) -> Iterator[Victims]:
    taken = TakenVictims(probe)
    if probe.recorded_may_suffice():
        yield []
    for batch in _states(probe, taken, ordered):
        tried: set[frozenset[int]] = set()
        for node in _nodes_of(probe.session, batch.job):
            chosen = taken.of_jobs_on(node)
            tasks = frozenset(task for each in chosen for task in each.tasks)
            if chosen and tasks not in tried:
                tried.add(tasks)
                yield chosen


def several_nodes(probe: Probe, ordered: Iterator[Stretch]) -> Iterator[Victims]:
    taken = TakenVictims(probe)
    if probe.recorded_may_suffice():
        yield []
    smallest, total = min(probe.wanted, default=0.0), sum(probe.wanted)
    for _ in _states(probe, taken, ordered):
        free = taken.free
        baseline = float(probe.free[probe.feasible & ~taken.on_nodes].sum())
        need = max(0.0, total - baseline)
        nodes = np.array(taken.appeared, dtype=np.intp)
        if smallest > 0:
            nodes = nodes[free[nodes] >= smallest]
        nodes = nodes[np.argsort(free[nodes], kind="stable")]
        for size in _sizes(free[nodes].tolist(), need):
            yield taken.on_any(nodes[:size])


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
