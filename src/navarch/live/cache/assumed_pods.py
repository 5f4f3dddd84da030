"""Decisions that the API does not show yet: binds, evictions, nominations, and statuses of groups.

A decision counts from the moment it is made, so that the next cycle does not make it again while its write is in flight. Each entry
hides the informer's object until the object shows the same or something else that is final, or until the write fails and the entry
is removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from navarch.live.queue.scheduling_queue import INITIAL_BACKOFF, MAX_BACKOFF
from navarch.model.spec import Condition, JobSpec, Requests, TaskSpec
from navarch.model.status import IS_TERMINAL, TaskStatus


class AssumedBind(Struct):
    uid: str
    namespace: str
    name: str
    node: str
    job: str
    since: float
    gpu_groups: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations that the pod gets with the binding."""
    numa_placement: tuple[tuple[str, Requests], ...] = ()
    """What the pod takes of each NUMA zone of the node, by the zone's name."""
    written: bool = False
    """The API server accepted it; the watch does not show it yet."""
    by_request: bool = False
    """Another binder is to carry it out, on a request of ours."""
    released: bool = False
    """The request to the other binder may be sent: its turn on the node has come (see `request_turns`)."""
    delegated: bool = False
    """The request to the other binder was sent."""
    answer: str = ""
    """What came instead of the API server's yes."""
    refused: bool = False
    """The API server refused it because another scheduler had bound the pod."""


class Postponed(Struct):
    """A pod whose bind failed."""

    failures: int
    until: float
    """No bind before this, on the event loop's clock."""


class AssumedStatus(Struct):
    """The status that a cycle decided for a group. `version`: resourceVersion of our write once it succeeded."""

    uid: str
    phase: str
    conditions: tuple[Condition, ...]
    version: int | None = None


class AssumedPods:
    def __init__(self) -> None:
        self.binds: dict[str, AssumedBind] = {}
        self.evictions: dict[str, float] = {}
        """uid of a pod whose eviction was decided -> when."""
        self.accepted_evictions: set[str] = set()
        """uids of those whose eviction the API server accepted."""
        self.nominations: dict[str, str] = {}
        """uid -> nominated node."""
        self.statuses: dict[str, AssumedStatus] = {}
        """Job key -> status that its object does not show yet."""
        self.starts: dict[str, tuple[str, float]] = {}
        """Job key -> uid, and when the job started, as far as its object does not show that yet."""
        self.postponed: dict[str, Postponed] = {}
        """uid of a pod whose bind failed -> when it may be bound again. Needed for jobs that are always active."""

    # pods

    def observe(self, task: TaskSpec) -> None:
        """The informer shows this task: remove what it confirms or overrules."""
        if task.uid in self.binds and (task.node or IS_TERMINAL[task.status]):
            del self.binds[task.uid]
        if self.postponed and (task.node or IS_TERMINAL[task.status]):
            self.postponed.pop(task.uid, None)
        if task.uid in self.evictions and (task.deleting or IS_TERMINAL[task.status]):
            self.end_eviction(task.uid)
        if task.uid in self.nominations and (task.node or task.nominated_node == self.nominations[task.uid]):
            del self.nominations[task.uid]

    def has_no_decision(self, task: TaskSpec) -> bool:
        """Whether nothing is assumed of this pod."""
        uid = task.uid
        return not (uid in self.binds or uid in self.evictions or uid in self.nominations or uid in self.postponed)

    def gone(self, uid: str) -> None:
        """The pod is gone."""
        self.binds.pop(uid, None)
        self.end_eviction(uid)
        self.nominations.pop(uid, None)
        self.postponed.pop(uid, None)

    def accept_eviction(self, uid: str) -> None:
        """The API server accepted it. The watch may have shown the pod leaving before."""
        if uid in self.evictions:
            self.accepted_evictions.add(uid)

    def end_eviction(self, uid: str) -> None:
        self.evictions.pop(uid, None)
        self.accepted_evictions.discard(uid)

    def postpone(self, uid: str, now: float) -> None:
        """The bind of this pod failed: no other for one second, then two, up to ten. This is for jobs with pods on nodes, which are
        always active; the others back off as a whole (see `SchedulingQueue`)."""
        before = self.postponed.get(uid)
        failures = before.failures + 1 if before else 1
        self.postponed[uid] = Postponed(failures, now + min(INITIAL_BACKOFF * 2 ** min(failures - 1, 10), MAX_BACKOFF))

    def as_decided(self, task: TaskSpec) -> TaskSpec:
        """The task as the API shows it, changed by what was decided about it."""
        bind = self.binds.get(task.uid)
        if bind is not None and not task.node:
            status = TaskStatus.RELEASING if task.deleting else TaskStatus.BINDING
            groups = bind.gpu_groups or task.gpu_groups
            marks = task.annotations_with(bind.annotations)
            zones = bind.numa_placement or task.numa_placement
            task = replace(
                task, node=bind.node, status=status, nominated_node="", gpu_groups=groups, annotations=marks, numa_placement=zones
            )
        elif task.uid in self.nominations and not task.node:
            task = replace(task, nominated_node=self.nominations[task.uid])
        if task.uid in self.evictions and task.node and not IS_TERMINAL[task.status]:
            task = replace(task, status=TaskStatus.RELEASING)
        return task

    # groups

    def observe_group(self, job: JobSpec, version: int) -> JobSpec:
        """A group as the informer shows it, with our newer status until the object shows it."""
        job = self._started(job)
        ours = self.statuses.get(job.key)
        if ours is None:
            return job
        seen = ours.version is not None and version >= ours.version
        if seen or ours.uid != job.uid or same_status(job, ours.phase, ours.conditions):
            del self.statuses[job.key]
            return job
        return replace(job, phase=ours.phase, conditions=ours.conditions)

    def _started(self, job: JobSpec) -> JobSpec:
        uid, moment = self.starts.get(job.key, ("", 0.0))
        if uid == job.uid and int(moment) > int(job.last_started or 0):  # the object has whole seconds
            return replace(job, last_started=moment)
        self.starts.pop(job.key, None)
        return job


def same_status(job: JobSpec, phase: str, conditions: Sequence[Condition]) -> bool:
    """Whether the statuses are equal except for times and ids of transitions."""
    return job.phase == phase and _said(job.conditions) == _said(conditions)


def _said(conditions: Sequence[Condition]) -> list[tuple[str, str, str, str, str]]:
    return sorted((c.type, c.status, c.reason, c.message, c.node_pool) for c in conditions)
