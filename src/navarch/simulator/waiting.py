"""Which waiting jobs a cycle tries, and whether one is due at all.

Two rules. `TryAll` gives every waiting job a try whenever anything happened: right for every policy. `ByRoom` is for policies under
which a refused job stays refused until some node gains room, and equal jobs are refused equally (`Plugin.waits_for_room`). It
leaves out what cannot change the outcome:

- a job is tried while the nodes that it may use have room for its pods, each for itself. One that was refused is tried again when
  that is so after something ended on such a node;
- of equal jobs as many are tried, first ones first, as that node has room for;
- a job that comes while an equal one waits is not tried;
- in a queue that keeps its order nothing behind the first job is tried until that one has started. If queues have nodes of their
  own, few jobs are tried at first and more as long as all of them start.
- an elastic job that runs with some of its pods holds up no other. A cycle is due for it when a node gains room for one more, and
  it takes part in every other cycle too. In a queue that keeps its order it grows only where no job of the queue waits, so whenever
  an elastic job is tried, all jobs of its queue are.

Jobs that are not tried are held (`JobTable.hold`), as the live scheduler holds those that wait.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np

from navarch.engine.arguments import Arguments
from navarch.engine.points.protocols import JobOrder
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.resources import IntArray
from navarch.model.spec import JobSpec, NodeSpec
from navarch.simulator.jobs import GPU_TYPE, PodSet
from navarch.simulator.progress import SimulatedJob

Asks = list[tuple[int, int]]
"""(resource, amount) for each resource that a pod asks for."""
Order = Callable[[JobSpec], Any]
Rows = slice | np.ndarray[Any, np.dtype[np.intp]]
MOST_TRIED = 64
"""Of a queue that keeps its order, and has nodes of its own, at most so many are tried at once."""


class Waiting(Protocol):
    """Told of what happens; asked whether a cycle is due."""

    def arrives(self, job: SimulatedJob) -> None:
        """The job waits from now on."""

    def leaves(self, job: SimulatedJob) -> None:
        """The job does not wait any more."""

    def gains_room(self, node: str) -> None:
        """Something on the node ended."""

    def changes(self) -> None:
        """Anything else happened that may let jobs start."""

    @property
    def is_due(self) -> bool:
        """Whether a cycle could start something."""

    def begin_cycle(self) -> None:
        """A cycle is about to run: hold what it need not try."""

    def end_cycle(self) -> None:
        """It ran, and what started has left."""


class TryAll:
    def __init__(self) -> None:
        self._jobs: set[str] = set()
        self._happened = False

    def arrives(self, job: SimulatedJob) -> None:
        self._jobs.add(job.spec.key)
        self._happened = True

    def leaves(self, job: SimulatedJob) -> None:
        self._jobs.discard(job.spec.key)

    def gains_room(self, node: str) -> None:
        self._happened = True

    def changes(self) -> None:
        self._happened = True

    @property
    def is_due(self) -> bool:
        return self._happened and bool(self._jobs)

    def begin_cycle(self) -> None:
        self._happened = False

    def end_cycle(self) -> None:
        return None


class _Class:
    """Waiting jobs that fare alike, in policy order."""

    __slots__ = ("asks", "counts", "entries", "is_elastic", "line", "needed", "pods", "roomy", "rows", "tried")

    def __init__(self, pods: tuple[PodSet, ...], needed: int, asks: list[Asks], counts: list[int], line: _Line) -> None:
        self.pods = pods
        self.needed = needed
        self.is_elastic = needed < sum(counts)
        self.asks = asks
        """Of a pod, for each kind of pod that they have."""
        self.counts = counts
        """How many pods of each kind."""
        self.line = line
        self.rows: Rows | None = None
        """Of the node table: nodes that they may use; None: not known."""
        self.roomy = -1
        """The one of them that had the most room when all were last looked at; -1: none had any."""
        self.entries: list[tuple[Any, str]] = []
        """(place in the policy's order, key)"""
        self.tried = 0
        """How many of them the next cycle tries."""

    def room(self, idle: list[int]) -> int:
        """For how many of them a node with this much idle could matter."""
        return max(min(idle[dim] // amount for dim, amount in asks) for asks in self.asks)

    def matches(self, node: NodeSpec) -> bool:
        return any(_matches(pods, node) for pods in self.pods)


class _Line:
    """All jobs of a queue that keeps its order."""

    __slots__ = ("blocked", "entries", "step", "tried")

    def __init__(self) -> None:
        self.entries: list[tuple[Any, str]] = []
        self.blocked = ""
        """The job that was tried and waits for room."""
        self.tried = 0
        """How many of the first ones the next cycle tries."""
        self.step = 1


class ByRoom:
    def __init__(self, cluster: Cluster, order: Order, *, keeps_order: bool) -> None:
        self._cluster = cluster
        self._order = order
        self._keeps_order = keeps_order
        self._lines: dict[str, _Line] = {}
        self._classes: dict[Hashable, _Class] = {}
        self._waiting: dict[str, tuple[_Class, tuple[Any, str]]] = {}
        self._growing: dict[str, _Class] = {}
        """Elastic jobs that run without some of their pods."""
        self._active: dict[str, None] = {}
        """Jobs that the next cycle tries."""
        self._by_node: dict[str, list[_Class]] | None = None
        self._some_are_elastic = False
        self._queues_share_nodes = False
        """Then the order of queues decides as well, and a cycle has to see all that could start."""

    # what happens

    def arrives(self, job: SimulatedJob) -> None:
        key = job.spec.key
        if job.nodes:
            self.leaves(job)
            self._growing[key] = self._class_of(job)
            self._activate(key)
            return
        if key in self._waiting:
            return
        entry = (self._order(job.spec), key)
        alike = self._class_of(job)
        self._waiting[key] = alike, entry
        if self._keeps_order:
            line = alike.line
            place = bisect_left(line.entries, entry)
            line.entries.insert(place, entry)
            if place <= line.tried:  # all before it are tried
                if self._has_room(alike):
                    line.tried += 1
                    self._active[key] = None
                    return
                self._stop_at(line, place)
        else:
            everyone = alike.tried == len(alike.entries)
            insort(alike.entries, entry)
            if everyone and self._has_room(alike):
                alike.tried += 1
                self._active[key] = None
                return
        self._cluster.jobs.hold(key, True)

    def _stop_at(self, line: _Line, place: int) -> None:
        """The job at this place has no room: nothing behind it is tried."""
        for _, key in line.entries[place + 1 : line.tried + 1]:
            del self._active[key]
            self._cluster.jobs.hold(key, True)
        line.tried = place
        if not place:
            line.blocked = line.entries[0][1]

    def leaves(self, job: SimulatedJob) -> None:
        if self._growing.pop(job.spec.key, None) is not None:
            self._active.pop(job.spec.key, None)
        found = self._waiting.pop(job.spec.key, None)
        if found is None:
            return
        alike, entry = found
        of = alike.line if self._keeps_order else alike
        place = bisect_left(of.entries, entry)
        del of.entries[place]
        if self._active.pop(entry[1], 0) is None:
            of.tried -= 1
        if alike.line.blocked == entry[1]:
            alike.line.blocked = ""

    def gains_room(self, node: str) -> None:
        classes = self._classes_of(node)
        if not classes:
            return
        nodes = self._cluster.nodes
        row = nodes.rows.of[node]
        idle = (nodes.allocatable[:, row] - nodes.used[:, row]).tolist()
        for key, grows in self._growing.items():
            if grows.room(idle) > 0:
                self._activate(key)
        for alike in classes:
            if self._keeps_order:
                line = alike.line
                first = line.entries[0][1] if line.entries and not line.tried else ""
                if (
                    first
                    and self._waiting[first][0] is alike
                    and alike.room(idle) > 0
                    and (alike.needed == 1 or self._has_room(alike))
                ):
                    line.blocked, line.step = "", 1
                    self._try_more(line)
            elif alike.tried < len(alike.entries) and (room := alike.room(idle)) > 0 and self._has_room_beside(alike):
                before = alike.tried
                alike.tried = min(len(alike.entries), before + room)
                for _, key in alike.entries[before : alike.tried]:
                    self._activate(key)

    def changes(self) -> None:
        self._by_node = None
        for key in self._growing:
            self._activate(key)
        for alike in self._classes.values():
            alike.rows, alike.roomy = None, -1
        for line in self._lines.values():
            line.blocked = ""
            if self._keeps_order and line.entries and not line.tried:
                self._try_more(line)
        if not self._keeps_order:
            for alike in self._classes.values():
                alike.tried = len(alike.entries)
                for _, key in alike.entries:
                    self._activate(key)

    # cycles

    @property
    def is_due(self) -> bool:
        return bool(self._active)

    def begin_cycle(self) -> None:
        if not self._keeps_order or not self._some_are_elastic:
            return
        starting = [self._waiting[key][0] for key in self._active if key in self._waiting]
        for alike in (*self._growing.values(), *starting):
            if alike.is_elastic and alike.line.tried < len(alike.line.entries):
                alike.line.tried = len(alike.line.entries)
                for _, other in alike.line.entries:
                    self._activate(other)

    def end_cycle(self) -> None:
        failed, self._active = self._active, {}
        for key in failed:
            if key in self._growing:
                continue
            self._cluster.jobs.hold(key, True)
            alike, _ = self._waiting[key]
            if not self._keeps_order:
                alike.tried = 0
            else:
                alike.line.tried = 0
                alike.line.blocked = alike.line.entries[0][1]
        if self._keeps_order:
            for line in self._lines.values():
                if line.entries and not line.blocked and not line.tried:
                    first = line.entries[0][1]
                    if self._has_room(self._waiting[first][0]):
                        line.step = min(2 * line.step, MOST_TRIED)
                        self._try_more(line)
                    else:
                        line.blocked = first

    def _try_more(self, line: _Line) -> None:
        """Try the first few of a queue if none of them is being tried."""
        line.tried = len(line.entries) if self._queues_share_nodes else min(line.step, len(line.entries))
        for _, key in line.entries[: line.tried]:
            self._activate(key)

    def _activate(self, key: str) -> None:
        if key not in self._active:
            self._active[key] = None
            self._cluster.jobs.hold(key, False)

    # classes

    def _has_room_beside(self, alike: _Class) -> bool:
        """The same where one node is known to have room for one pod."""
        return alike.needed == 1 or self._has_room(alike)

    def _has_room(self, alike: _Class) -> bool:
        """Whether the nodes that a job of the class may use have room for its pods, were each kind of pod alone. About 10 us."""
        nodes = self._cluster.nodes
        if alike.needed == 1 and alike.roomy >= 0:
            row = alike.roomy
            if alike.room((nodes.allocatable[:, row] - nodes.used[:, row]).tolist()) > 0:
                return True
        if alike.rows is None:
            alike.rows = self._rows_of(alike)
        if alike.needed == 1:
            return self._find_roomy(alike, alike.rows)
        total = 0
        for asks, count in zip(alike.asks, alike.counts):
            slots: IntArray | None = None
            for dim, amount in asks:
                each = (nodes.allocatable[dim, alike.rows] - nodes.used[dim, alike.rows]) // amount
                slots = each if slots is None else np.minimum(slots, each)
            total += count if slots is None else min(count, int(slots.clip(0).sum()))
        return total >= alike.needed

    def _find_roomy(self, alike: _Class, rows: Rows) -> bool:
        """The same for jobs that start with one pod: keeps the node with room that has the most."""
        nodes = self._cluster.nodes
        for asks in alike.asks:
            if not asks:
                return True
            last, least = asks[-1]  # GPUs, where it asks for some
            idle = nodes.allocatable[last, rows] - nodes.used[last, rows]
            fits = idle >= least
            for dim, amount in asks[:-1]:
                fits &= nodes.allocatable[dim, rows] - nodes.used[dim, rows] >= amount
            place = int(np.where(fits, idle, -1).argmax()) if len(idle) else -1
            if place >= 0 and fits[place]:
                alike.roomy = place if isinstance(rows, slice) else int(rows[place])
                return True
        alike.roomy = -1
        return False

    def _rows_of(self, alike: _Class) -> Rows:
        """The rows of nodes that the class may use. All of them are a slice, which selects without a copy: rows without a node have
        nothing to give."""
        nodes = self._cluster.nodes
        found = [nodes.rows.of[spec.name] for spec in nodes.specs if spec is not None and alike.matches(spec)]
        every = sum(spec is not None for spec in nodes.specs)
        return slice(nodes.rows.top) if len(found) == every else np.array(found, dtype=np.intp)

    def _class_of(self, job: SimulatedJob) -> _Class:
        trace = job.job
        key = (trace.pods, trace.queue, trace.needed, trace.priority)
        found = self._classes.get(key)
        if found is None:
            line = self._lines.setdefault(trace.queue, _Line())
            asks, counts = self._asks(job)
            found = self._classes[key] = _Class(trace.pods, trace.needed, asks, counts, line)
            self._some_are_elastic |= found.is_elastic
            if self._by_node is None:
                self._index_nodes()
            else:
                self._enter(found, self._by_node)
        return found

    def _asks(self, job: SimulatedJob) -> tuple[list[Asks], list[int]]:
        cluster = self._cluster
        shapes = Counter(int(cluster.tasks.shape[cluster.tasks.rows.of[uid]]) for uid in job.tasks)
        asks = []
        for shape in shapes:
            request = cluster.shapes.request[: len(cluster.space), shape].tolist()
            asks.append([(dim, amount) for dim, amount in enumerate(request) if amount])
        return asks, list(shapes.values())

    def _classes_of(self, node: str) -> list[_Class]:
        if self._by_node is None:
            self._index_nodes()
            assert self._by_node is not None
        return self._by_node.get(node, [])

    def _index_nodes(self) -> None:
        by_node = self._by_node = {spec.name: [] for spec in self._cluster.nodes.specs if spec is not None}
        for alike in self._classes.values():
            self._enter(alike, by_node)

    def _enter(self, alike: _Class, by_node: dict[str, list[_Class]]) -> None:
        """Let nodes that the class may use know it. Nodes that are alike in what pods select by are asked about once."""
        answers: dict[Hashable, bool] = {}
        names = sorted({GPU_TYPE, *(name for pods in alike.pods for name, _ in pods.node_selector)})
        for spec in self._cluster.nodes.specs:
            if spec is None:
                continue
            kind = tuple(spec.labels.get(name) for name in names)
            matches = answers.get(kind)
            if matches is None:
                matches = answers[kind] = alike.matches(spec)
            if matches:
                others = by_node[spec.name]
                self._queues_share_nodes |= bool(others) and others[0].line is not alike.line
                others.append(alike)


def _matches(pods: PodSet, node: NodeSpec) -> bool:
    labels = node.labels
    if any(labels.get(name) != value for name, value in pods.node_selector):
        return False
    return not pods.gpu_types or labels.get(GPU_TYPE) in pods.gpu_types


def waiting_for(policy: Policy, registry: Registry, cluster: Cluster, *, skip: bool = True) -> Waiting:
    """The rule that fits the policy. `skip` False: never leave anything out."""
    placed = [each for tier in registry.select_plugins(policy).tiers for each in tier]
    simple = set(policy.actions) <= {"allocate", "backfill"} and not policy.profiles
    if not skip or not simple or not all(kind.waits_for_room for kind, _, _ in placed):
        return TryAll()
    known: list[tuple[Callable[[JobSpec, Arguments], Any], Arguments]] = []
    for kind, option, points in placed:
        if JobOrder in points:
            by_spec = getattr(kind, "waiting_order", None)
            if by_spec is None:
                return TryAll()
            known.append((by_spec, Arguments(kind.arguments, option.arguments)))

    def order(spec: JobSpec) -> tuple[Any, ...]:
        return (*(by_spec(spec, given) for by_spec, given in known), spec.created, spec.key)

    return ByRoom(cluster, order, keeps_order=registry.keeps_order(policy))
