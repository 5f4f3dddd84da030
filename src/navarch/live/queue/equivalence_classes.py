"""Jobs that wait and are alike: what lets one of them start lets the first of them start, and a few at a time.

In a full cluster thousands of equal jobs wait for the same thing. When a pod ends, room for one of them is free, and to try them
all would take a second to find that the first fits and the others do not. So they sleep as a family: a pod that ends wakes as
many of them, the eldest first, as could possibly find room in what it held.

    room for a job on a node before:  none, so some resource r has  left(r) < asked(r)
    and after:                        at most (left(r) + freed(r)) / asked(r)  <  freed(r) / asked(r) + 1

Room is not always figures on one node: a device that several share, a volume that may be attached once more, a pod that kept others
away. Then a few are woken (`FEW`), and when all who were woken got what they waited for, twice as many next (`Holding.more`).

Who differs from the others in something that this cannot see is tried by the clock, a few of a family at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from types import MappingProxyType

from navarch.engine.reasons import Event
from navarch.live.queue.claim_signatures import Claims, at_first_sight, like
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, LabelSelector, Requests, Shape, TaskSpec

LARGE = 64
"""Gangs of more pods than this have no kin: to compare them costs as much as to try them."""
FEW = 32
"""So many of a family are tried where no figures tell for how many there may be room."""
UNTOLD = ("what no figure tells", 1)
"""Stands among requests for what else the pod needs, or kept others from."""
_OF_KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"


class EquivalenceClass:
    """Those that sleep of a family."""

    def __init__(self, key: Hashable, wakes: frozenset[Event], asks: Requests, seen: Hashable | None = None) -> None:
        self.key = key
        self.seen = seen
        """What one sees of them before one of them was tried (`glance`)."""
        self.wakes = wakes
        self.asks = asks
        """The least that a pod of theirs asks for which asks for any, resource by resource."""
        self.until: dict[str, float] = {}
        """Job -> when its back-off ends."""
        self.due = 0.0
        """When the first of them is to be tried by the clock."""
        self._by_time: list[tuple[float, str]] = []
        self._by_age: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self.until)

    def join(self, job: str, until: float, age: float) -> None:
        self.until[job] = until
        if len(self._by_time) > 2 * len(self.until) + 16:  # entries of those that left are passed over, and here thrown away
            self._by_time = list({entry for entry in self._by_time if self.until.get(entry[1]) == entry[0]})
            heapq.heapify(self._by_time)
        if len(self._by_age) > 2 * len(self.until) + 16:
            self._by_age = list({entry for entry in self._by_age if entry[1] in self.until})
            heapq.heapify(self._by_age)
        heapq.heappush(self._by_time, (until, job))
        heapq.heappush(self._by_age, (age, job))

    def leave(self, job: str) -> None:
        del self.until[job]

    def expired(self, now: float, most: int) -> list[str]:
        """Jobs whose back-off is over, those that waited longest first."""
        found: dict[str, None] = {}
        heap = self._by_time
        while heap and len(found) < most and (heap[0][0] <= now or self.until.get(heap[0][1]) != heap[0][0]):
            until, job = heapq.heappop(heap)
            if self.until.get(job) == until:
                found[job] = None
        return list(found)

    def next_expiry(self) -> float:
        """When the next back-off ends; there must be one."""
        heap = self._by_time
        while self.until.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0]

    def oldest(self, most: int) -> list[str]:
        found: dict[str, None] = {}
        while self._by_age and len(found) < most:
            job = heapq.heappop(self._by_age)[1]
            if job in self.until:
                found[job] = None
        return list(found)

    def may_start(self, freed: Requests) -> int:
        """How many of them could find room where a pod with these requests was."""
        held = dict(freed)
        most = 1 + max((held.get(name, 0) // amount for name, amount in self.asks if amount > 0), default=len(self))
        untold = freed and (UNTOLD in freed or UNTOLD in self.asks or Event.POD_CHANGED in self.wakes)
        return max(most, FEW) if untold else most


def signature(cluster: Cluster, key: str) -> Hashable | None:
    """What those have in common of whom one would say at first sight that they are alike: a few look-ups, no more. None: it is no
    job that could be tried."""
    jobs = cluster.jobs
    row = jobs.rows.of.get(key)
    spec = jobs.specs[row] if row is not None else None
    if row is None or spec is None or not jobs.tasks[row]:
        return None
    rows = jobs.tasks[row]
    number = int(cluster.tasks.shape[next(iter(rows))])
    sight = at_first_sight(cluster.shapes.specs[number], number)
    return spec.queue, spec.namespace, spec.priority, spec.min_member, len(rows), sight


def equivalence_class_of(
    job: JobSpec,
    shapes: Sequence[int],
    tasks: Sequence[TaskSpec],
    standing: bytes,
    *,
    read: frozenset[str] = frozenset(),
    claims: Claims = MappingProxyType({}),
) -> Hashable | None:
    """What a job has in common with those that fare as it does; None: it stands for itself. `shapes`: of its tasks, by number.
    `standing`: where its tasks stand and what they hold. `read`: labels that rules about pods read (`labels_read`). `claims`: on
    devices, all there are."""
    if len(tasks) > LARGE:
        return None
    if job.sub_groups:
        read = read.union(*((*part.match_label_keys, *_keys(part.selector)) for part in job.sub_groups))
    own = {number: found for number, t in zip(shapes, tasks) if t.shape.claims and (found := like(t, claims)) is not None}
    each = [
        (
            own.get(number, number),
            *(t.role, t.sub_group, t.priority, t.pod_priority, t.preemption_policy, t.gates, t.nominated_node, t.scheduler_name),
            tuple((key, t.labels[key]) for key in sorted(read) if key in t.labels) if read else (),
        )
        for number, t in zip(shapes, tasks)
    ]
    by_number = {number: t.shape for number, t in zip(shapes, tasks) if number not in own}
    about = (job.queue, job.namespace, job.dialect, job.phase, job.priority, job.priority_class, job.preemptable, job.tried_once)
    demands = (job.min_member, job.min_resources, job.roles, job.sub_groups, job.min_sub_groups, job.topology)
    return (
        about,
        demands,
        tuple(sorted(item for item in job.annotations.items() if item[0] != _OF_KUBECTL)) if job.annotations else (),
        job.preemption_delay,
        standing,
        each[0] if len(each) == 1 else tuple(sorted(map(repr, each))),
        tuple(by_number[number] for number in sorted(by_number)),  # a number goes to another shape when its last pod has gone
    )


def labels_read(shapes: Iterable[Shape]) -> frozenset[str]:
    """Labels of pods by which the rules of other pods tell whom they keep away or want near. What is merely preferred keeps nobody
    waiting. (Some pod with such a rule is in every cluster, and most labels of a job's pods are its own.)"""
    found: set[str] = set()
    for shape in shapes:
        if shape.pod_affinity is not None:
            for term in (*shape.pod_affinity.required, *shape.pod_affinity.anti_required):
                found.update(_keys(term.selector))
        for constraint in shape.spread:
            if constraint.hard:
                found.update(_keys(constraint.selector))
    return frozenset(found)


def reads_namespaces(shapes: Iterable[Shape]) -> bool:
    """Whether some pod keeps others away, or wants them near, by what their namespaces are labelled."""
    return any(
        term.namespace_selector is not None
        for shape in shapes
        if shape.pod_affinity is not None
        for term in (*shape.pod_affinity.required, *shape.pod_affinity.anti_required)
    )


def _keys(selector: LabelSelector | None) -> Iterable[str]:
    return () if selector is None else (requirement.key for requirement in selector.requirements)


def least_asked(tasks: Sequence[TaskSpec]) -> Requests:
    """The least of each resource that any of the pods asks for which asks for it."""
    if len(tasks) == 1:
        return held_by(tasks[0].shape)
    least: dict[str, int] = {}
    for task in tasks:
        for name, amount in held_by(task.shape):
            least[name] = min(amount, least.get(name) or amount)
    return tuple(least.items())


def held_by(shape: Shape) -> Requests:
    """What such a pod keeps from others, as far as figures tell."""
    affinity = shape.pod_affinity
    if shape.devices or shape.ports or shape.volumes or shape.claims or (affinity is not None and affinity.anti_required):
        return (*shape.requests, UNTOLD)
    return shape.requests


def less_held(before: Shape, now: Shape) -> Requests:
    """What a pod keeps from others no longer that was `before` and goes on as `now`."""
    held = dict(now.requests)
    return tuple((name, less) for name, amount in before.requests if (less := amount - held.get(name, 0)) > 0)
