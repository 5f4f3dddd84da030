"""What was decided and cannot yet be seen in the API: binds, evictions, promises, and what groups were told.

A decision counts from the moment it is made, so that the next cycle does not decide it again while the write is on its way.
Each entry lies over the informer's object until that shows the same, shows something else that is final (the truth wins), or
the write failed and the entry is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from navarch.live.queue.scheduling_queue import INITIAL_BACKOFF, MAX_BACKOFF
from navarch.model.spec import Condition, JobSpec, TaskSpec
from navarch.model.status import IS_TERMINAL, TaskStatus


class AssumedBind(Struct):
    uid: str
    namespace: str
    name: str
    node: str
    job: str
    since: float
    gpu_groups: tuple[str, ...] = ()
    written: bool = False
    """The API server said yes; only the watch has to show it."""
    by_request: bool = False
    """Decided for another program, which is to be asked to carry it out."""
    delegated: bool = False
    """Another program carries it out, on a request of ours."""
    refused: bool = False
    """The API server said that the pod has its node already, and not from us."""


class Postponed(Struct):
    """A pod whose bind failed."""

    failures: int
    until: float
    """Not before this, by the event loop's time."""


class AssumedStatus(Struct):
    """What a group was told in memory; `version` is the resourceVersion of our write once it succeeded."""

    uid: str
    phase: str
    conditions: tuple[Condition, ...]
    version: int | None = None


class AssumedPods:
    def __init__(self) -> None:
        self.binds: dict[str, AssumedBind] = {}
        self.evictions: dict[str, float] = {}
        """uid of a pod whose eviction was decided -> when."""
        self.nominations: dict[str, str] = {}
        """uid -> node promised to it."""
        self.statuses: dict[str, AssumedStatus] = {}
        """Job key -> status on its way to the group's object."""
        self.postponed: dict[str, Postponed] = {}
        """uid of a pod whose bind failed -> when it is tried again, where its job is tried in every cycle."""

    # pods

    def observe(self, task: TaskSpec) -> None:
        """The informer shows this task; forget what it confirms or overrules."""
        if task.uid in self.binds and (task.node or IS_TERMINAL[task.status]):
            del self.binds[task.uid]
        if self.postponed and (task.node or IS_TERMINAL[task.status]):
            self.postponed.pop(task.uid, None)
        if task.uid in self.evictions and (task.deleting or IS_TERMINAL[task.status]):
            del self.evictions[task.uid]
        if task.uid in self.nominations and (task.node or task.nominated_node == self.nominations[task.uid]):
            del self.nominations[task.uid]

    def gone(self, uid: str) -> None:
        """The pod does not exist any more."""
        self.binds.pop(uid, None)
        self.evictions.pop(uid, None)
        self.nominations.pop(uid, None)
        self.postponed.pop(uid, None)

    def postpone(self, uid: str, now: float) -> None:
        """Its bind failed: no other for a second, then for two, up to ten. (A job that has no pod on a node sleeps as a whole, see
        `Holding`; one that has is looked at in every cycle.)"""
        before = self.postponed.get(uid)
        failures = before.failures + 1 if before else 1
        self.postponed[uid] = Postponed(failures, now + min(INITIAL_BACKOFF * 2 ** min(failures - 1, 10), MAX_BACKOFF))

    def over(self, task: TaskSpec) -> TaskSpec:
        """The task with what was decided for it laid over what the API shows."""
        bind = self.binds.get(task.uid)
        if bind is not None and not task.node:
            status = TaskStatus.RELEASING if task.deleting else TaskStatus.BINDING
            groups = bind.gpu_groups or task.gpu_groups
            task = replace(task, node=bind.node, status=status, nominated_node="", gpu_groups=groups)
        elif task.uid in self.nominations and not task.node:
            task = replace(task, nominated_node=self.nominations[task.uid])
        if task.uid in self.evictions and task.node and not IS_TERMINAL[task.status]:
            task = replace(task, status=TaskStatus.RELEASING)
        return task

    # groups

    def observe_group(self, job: JobSpec, version: int) -> JobSpec:
        """A group as the informer shows it, with our newer status over it while that is on its way."""
        ours = self.statuses.get(job.key)
        if ours is None:
            return job
        seen = ours.version is not None and version >= ours.version
        if seen or ours.uid != job.uid or same_status(job, ours.phase, ours.conditions):
            del self.statuses[job.key]
            return job
        return replace(job, phase=ours.phase, conditions=ours.conditions)


def same_status(job: JobSpec, phase: str, conditions: Sequence[Condition]) -> bool:
    """Equal but for the times and ids of transitions, which change with every cycle that says the same."""
    return job.phase == phase and _said(job.conditions) == _said(conditions)


def _said(conditions: Sequence[Condition]) -> list[tuple[str, str, str, str, str]]:
    return sorted((c.type, c.status, c.reason, c.message, c.node_pool) for c in conditions)
