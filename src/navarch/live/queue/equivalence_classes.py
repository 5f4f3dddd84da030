"""Equivalence classes: unschedulable jobs that the same events concern and that fit, or fail to fit, in the same places.

In a full cluster thousands of equal jobs wait for the same resources. When a pod ends, there is room for one of them. Retrying all of
them costs a second of cycle time and places one. So a pod that ends activates only as many jobs of a class, oldest first, as could
fit into what it occupied:

    before:  a job fits on no node, so for some resource r   free(r) < requested(r)
    after:   at most  (free(r) + freed(r)) / requested(r)  <  freed(r) / requested(r) + 1  jobs fit there

Some constraints have no quantity: shared devices, host ports, volumes, anti-affinity. For these a fixed number of jobs is activated
(`PROBE`). When all of them are placed, twice as many follow (`SchedulingQueue.pop_more`).

A job that this module cannot compare (`equivalence_key` gives None) is a class of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from types import MappingProxyType

from navarch.engine.reasons import Event
from navarch.live.queue.claim_signatures import Claims, claim_signature, quick_shape_signature
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, LabelSelector, Requests, Shape, TaskSpec

MAX_COMPARED_PODS = 64
"""Gangs with more pods are a class of their own: comparing them costs as much as trying them."""
PROBE = 32
"""How many jobs of a class are activated where no quantity says how many fit."""
UNCOUNTED = ("constraints without a quantity", 1)
"""Stands among requests for shared devices, host ports, volumes, claims and anti-affinity."""
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class EquivalenceClass:
    """The unschedulable jobs of one class, ordered by age and by the end of their back-off."""

    def __init__(self, key: Hashable, events: frozenset[Event], requests: Requests, signature: Hashable | None = None) -> None:
        self.key = key
        self.signature = signature
        """See `signature`; None: jobs that have just arrived are not compared with this class."""
        self.events = events
        """Events that activate jobs of this class."""
        self.requests = requests
        """For each resource, the smallest request of any pod that requests it."""
        self.retry_at: dict[str, float] = {}
        """Job -> when its back-off ends."""
        self.next_flush = 0.0
        """When the queue next looks for jobs of this class whose back-off has ended."""
        self._by_retry: list[tuple[float, str]] = []
        self._by_age: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self.retry_at)

    @property
    def entries(self) -> int:
        """Entries in the larger of its two orders, those of removed jobs included. At most 17 more than twice its jobs."""
        return max(len(self._by_retry), len(self._by_age))

    def add(self, job: str, retry_at: float, created: float) -> None:
        self.retry_at[job] = retry_at
        if len(self._by_retry) > 2 * len(self.retry_at) + 16:  # entries of removed jobs are skipped when popped, and dropped here
            self._by_retry = list({entry for entry in self._by_retry if self.retry_at.get(entry[1]) == entry[0]})
            heapq.heapify(self._by_retry)
        if len(self._by_age) > 2 * len(self.retry_at) + 16:
            self._by_age = list({entry for entry in self._by_age if entry[1] in self.retry_at})
            heapq.heapify(self._by_age)
        heapq.heappush(self._by_retry, (retry_at, job))
        heapq.heappush(self._by_age, (created, job))

    def remove(self, job: str) -> None:
        del self.retry_at[job]

    def pop_expired(self, now: float, most: int) -> list[str]:
        """At most `most` jobs whose back-off has ended, in the order in which it ended. The caller removes them."""
        found: dict[str, None] = {}
        heap = self._by_retry
        while heap and len(found) < most and (heap[0][0] <= now or self.retry_at.get(heap[0][1]) != heap[0][0]):
            retry_at, job = heapq.heappop(heap)
            if self.retry_at.get(job) == retry_at:
                found[job] = None
        return list(found)

    def next_retry(self) -> float:
        """When the next back-off ends. The class must not be empty."""
        heap = self._by_retry
        while self.retry_at.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0]

    def pop_oldest(self, most: int) -> list[str]:
        """At most `most` jobs, oldest first. The caller removes them."""
        found: dict[str, None] = {}
        while self._by_age and len(found) < most:
            job = heapq.heappop(self._by_age)[1]
            if job in self.retry_at:
                found[job] = None
        return list(found)

    def max_fitting(self, freed: Requests) -> int:
        """An upper bound on how many jobs fit into what a pod with these requests occupied."""
        amounts = dict(freed)
        most = 1 + max((amounts.get(name, 0) // amount for name, amount in self.requests if amount > 0), default=len(self))
        uncounted = freed and (UNCOUNTED in freed or UNCOUNTED in self.requests or Event.POD_CHANGED in self.events)
        return max(most, PROBE) if uncounted else most


def signature(cluster: Cluster, key: str) -> Hashable | None:
    """A coarse signature of a job that was not tried yet: a few look-ups. Jobs with different signatures are never in one class.
    None: the job has no group or no pods, so no cycle can try it."""
    jobs = cluster.jobs
    row = jobs.rows.of.get(key)
    spec = jobs.specs[row] if row is not None else None
    if row is None or spec is None or not jobs.tasks[row]:
        return None
    rows = jobs.tasks[row]
    number = int(cluster.tasks.shape[next(iter(rows))])
    shape = quick_shape_signature(cluster.shapes.specs[number], number)
    return spec.queue, spec.namespace, spec.priority, spec.min_member, len(rows), shape


def equivalence_key(
    job: JobSpec,
    shapes: Sequence[int],
    tasks: Sequence[TaskSpec],
    progress: bytes,
    *,
    label_keys: frozenset[str] = frozenset(),
    claims: Claims = MappingProxyType({}),
) -> Hashable | None:
    """Everything about a job that decides whether and where it fits; equal keys are one class. None: it is a class of its own.

    `shapes`: shape numbers of its tasks. `progress`: statuses of its tasks and what they hold. `label_keys`: label keys that rules
    of other pods select by (`selected_label_keys`). `claims`: every ResourceClaim."""
    if len(tasks) > MAX_COMPARED_PODS:
        return None
    if job.sub_groups:
        label_keys = label_keys.union(*((*part.match_label_keys, *_keys(part.selector)) for part in job.sub_groups))
    by_content = {
        number: found for number, t in zip(shapes, tasks) if t.shape.claims and (found := claim_signature(t, claims)) is not None
    }
    each = [
        (
            by_content.get(number, number),
            *(t.role, t.sub_group, t.priority, t.pod_priority, t.preemption_policy, t.gates, t.nominated_node, t.scheduler_name),
            tuple((key, t.labels[key]) for key in sorted(label_keys) if key in t.labels) if label_keys else (),
        )
        for number, t in zip(shapes, tasks)
    ]
    by_number = {number: t.shape for number, t in zip(shapes, tasks) if number not in by_content}
    about = (job.queue, job.namespace, job.dialect, job.phase, job.priority, job.priority_class, job.preemptable, job.tried_once)
    demands = (job.min_member, job.min_resources, job.roles, job.sub_groups, job.min_sub_groups, job.topology)
    return (
        about,
        demands,
        tuple(sorted(item for item in job.annotations.items() if item[0] != _APPLIED)) if job.annotations else (),
        job.preemption_delay,
        progress,
        each[0] if len(each) == 1 else tuple(sorted(map(repr, each))),
        tuple(by_number[number] for number in sorted(by_number)),  # a number is reused after the last pod of its shape is gone
    )


def selected_label_keys(shapes: Iterable[Shape]) -> frozenset[str]:
    """Label keys by which required affinity, anti-affinity and hard spread constraints select pods. Preferred rules are left out: they
    keep no pod waiting. (Most labels of a job's pods are its own, so comparing all labels would leave every job alone.)"""
    found: set[str] = set()
    for shape in shapes:
        if shape.pod_affinity is not None:
            for term in (*shape.pod_affinity.required, *shape.pod_affinity.anti_required):
                found.update(_keys(term.selector))
        for constraint in shape.spread:
            if constraint.hard:
                found.update(_keys(constraint.selector))
    return frozenset(found)


def selects_namespaces(shapes: Iterable[Shape]) -> bool:
    """Whether a required affinity or anti-affinity term selects pods by labels of their namespace."""
    return any(
        term.namespace_selector is not None
        for shape in shapes
        if shape.pod_affinity is not None
        for term in (*shape.pod_affinity.required, *shape.pod_affinity.anti_required)
    )


def _keys(selector: LabelSelector | None) -> Iterable[str]:
    return () if selector is None else (requirement.key for requirement in selector.requirements)


def min_requests(tasks: Sequence[TaskSpec]) -> Requests:
    """For each resource, the smallest request of any pod that requests it."""
    if len(tasks) == 1:
        return occupied_requests(tasks[0].shape)
    least: dict[str, int] = {}
    for task in tasks:
        for name, amount in occupied_requests(task.shape):
            least[name] = min(amount, least.get(name) or amount)
    return tuple(least.items())


def occupied_requests(shape: Shape) -> Requests:
    """What a pod of this shape occupies: its requests, and `UNCOUNTED` if it occupies anything that has no quantity."""
    affinity = shape.pod_affinity
    if shape.devices or shape.ports or shape.volumes or shape.claims or (affinity is not None and affinity.anti_required):
        return (*shape.requests, UNCOUNTED)
    return shape.requests


def freed_by_resize(before: Shape, now: Shape) -> Requests:
    """What a pod frees when it is resized in place."""
    requests = dict(now.requests)
    return tuple((name, less) for name, amount in before.requests if (less := amount - requests.get(name, 0)) > 0)
