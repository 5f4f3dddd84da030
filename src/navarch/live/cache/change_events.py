"""Changes of the model as events for the scheduling queue: which waiting jobs are tried again, and whether a cycle starts now.

Ingest reports each change here (see `ingest.changes.Changes`). Each becomes events of the kind that refusals name, with the job
concerned if there is one. Most changes leave everything as it was for waiting jobs: these become no event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from navarch.engine.reasons import Event
from navarch.ingest.groups import is_shadow
from navarch.live.cache.object_changes import freed_resources, permits_more, same_demand, same_object, same_queue_and_protection
from navarch.live.queue import claim_signatures
from navarch.live.queue.equivalence_classes import UNCOUNTED, occupied_requests, selects_namespaces
from navarch.model.cluster import Cluster
from navarch.model.objects.workloads import CONTROLLERS, SERVICE
from navarch.model.spec import JobSpec, NamespaceSpec, NodeSpec, ObjectSpec, QuotaSpec, Requests, TaskSpec
from navarch.model.status import IS_TERMINAL, TaskStatus

_STORAGE = ("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment")
_VOLUME_KINDS = frozenset({"PersistentVolume", "PersistentVolumeClaim", *_STORAGE})
_CLAIM_KINDS = frozenset({"ResourceSlice", "DeviceClass", "DeviceTaintRule"})
_SELECTING = frozenset({SERVICE, *CONTROLLERS})


class RaiseEvent(Protocol):
    def __call__(self, event: Event, job: str = "", *, urgent: bool = True, freed: Requests | None = None) -> None:
        """Something happened, to this job or to all jobs. `urgent`: start a cycle for it. `freed`: what a pod held that ended, ()
        if it only asked for something; None: what there is room for now is not known."""


class PodWatcher(Protocol):
    """Keeps the job history (`live.usage.job_recorder`)."""

    def task_changed(self, before: TaskSpec | None, task: TaskSpec) -> None: ...

    def task_removed(self, before: TaskSpec) -> None: ...


class ChangeEvents:
    """Three callbacks beside `raise_event`. `on_job_removed`: a job lost its group, or its last pod if it has no group; a later job of
    the same name is another one. `on_demand_changed`: the pending pods of a job became more or request something else.
    `on_volumes_changed`: a volume, a claim or a storage class changed. `pods`: told of each pod that comes, changes or goes."""

    def __init__(
        self,
        cluster: Cluster,
        raise_event: RaiseEvent,
        on_job_removed: Callable[[str], object],
        on_demand_changed: Callable[[str], object],
        on_volumes_changed: Callable[[], object],
        pods: PodWatcher | None = None,
    ) -> None:
        self._cluster = cluster
        self._raise_event = raise_event
        self._on_job_removed = on_job_removed
        self._on_demand_changed = on_demand_changed
        self._on_volumes_changed = on_volumes_changed
        self._pods = pods

    # pods

    def task_changed(self, before: TaskSpec | None, task: TaskSpec) -> None:
        raise_event = self._raise_event
        if self._pods is not None:
            self._pods.task_changed(before, task)
        if before is not None and (freed := freed_resources(before, task)):
            raise_event(Event.POD_REMOVED, urgent=False, freed=freed)
        if task.status == TaskStatus.PENDING:
            changed = before is None or before.status != task.status or not same_demand(before, task)
            if changed:
                self._on_demand_changed(task.job)
            raise_event(Event.POD_CHANGED, task.job, urgent=changed and self._may_start(task.job))
        elif IS_TERMINAL[task.status] and (before is None or not IS_TERMINAL[before.status]):
            raise_event(Event.POD_REMOVED, task.job, freed=occupied_requests(task.shape))
        elif task.status == TaskStatus.RELEASING and before is not None and before.status != task.status and before.node:
            # Its queue has room from now on, and its place can be promised to others before it is gone.
            raise_event(Event.POD_REMOVED, urgent=False, freed=occupied_requests(task.shape))
            raise_event(Event.POD_CHANGED, task.job, urgent=False)
        elif before is None or before.node != task.node or before.labels != task.labels:
            raise_event(Event.POD_CHANGED, urgent=False)
        else:
            raise_event(Event.POD_CHANGED, task.job, urgent=False)

    def tasks_added(self, tasks: Sequence[TaskSpec]) -> None:
        """One event stands for all pods that come with a node: each of them would raise the same."""
        settled = [task.status != TaskStatus.PENDING and not IS_TERMINAL[task.status] for task in tasks]
        for task, plain in zip(tasks, settled):
            if not plain:
                self.task_changed(None, task)
            elif self._pods is not None:
                self._pods.task_changed(None, task)
        if any(settled):
            self._raise_event(Event.POD_CHANGED, urgent=False)

    def task_removed(self, before: TaskSpec) -> None:
        if self._pods is not None:
            self._pods.task_removed(before)
        if before.node:
            self._raise_event(Event.POD_REMOVED, freed=occupied_requests(before.shape))
        elif before.job:
            # It leaves what it was promised. Where queues share by what they ask for, others may be due more now.
            self._raise_event(Event.POD_REMOVED, urgent=False, freed=occupied_requests(before.shape) if before.nominated_node else ())
        if before.job:  # without this pod the job no longer equals the jobs that failed with it
            self._raise_event(Event.POD_CHANGED, before.job, urgent=bool(before.node) or self._may_start(before.job))

    def _may_start(self, job: str) -> bool:
        """Whether the job has its group and enough pods. The pods of a gang arrive one by one, and only the last of them is worth a
        cycle of its own."""
        jobs = self._cluster.jobs
        row = jobs.rows.of.get(job)
        spec = jobs.specs[row] if row is not None else None
        return row is not None and spec is not None and len(jobs.tasks[row]) >= spec.min_member

    # jobs

    def job_changed(self, before: JobSpec | None, job: JobSpec) -> None:
        status_only = before is not None and job == replace(before, phase=job.phase, conditions=job.conditions, counts=job.counts)
        self._raise_event(Event.JOB_CHANGED, job.key, urgent=not status_only)
        if before is not None and not same_queue_and_protection(before, job):
            # The queue that it leaves has room, or others may take from it.
            self._raise_event(Event.POD_REMOVED, urgent=False, freed=())

    def job_removed(self, before: JobSpec, held: bool) -> None:
        self._on_job_removed(before.key)
        if is_shadow(before.key):
            return  # the removal of its last pod reports the rest
        self._raise_event(Event.JOB_CHANGED, before.key, urgent=False)  # no cycle has anything to decide about it
        # Others may be admitted for what it was admitted for, as if a pod that held it had ended, or be due more than before.
        admitted = before.phase == "Inqueue" and before.min_resources is not None
        if admitted or held:
            self._raise_event(Event.POD_REMOVED, urgent=False, freed=before.min_resources if admitted else ())

    # nodes, queues, namespaces, quotas

    def node_changed(self, before: NodeSpec | None, node: NodeSpec) -> None:
        if before is None or replace(before, images=node.images) != node:  # no job waits for an image
            self._raise_event(Event.NODE_ADDED if before is None else Event.NODE_CHANGED)

    def node_removed(self, name: str) -> None:
        self._raise_event(Event.NODE_CHANGED, urgent=False)

    def queues_changed(self, *, implied: bool) -> None:
        self._raise_event(Event.QUEUE_CHANGED, urgent=not implied)

    def namespace_changed(self, before: NamespaceSpec | None, now: NamespaceSpec | None) -> None:
        if now is None or (before.labels if before else {}) == now.labels:
            return
        if selects_namespaces(self._cluster.shapes.with_pod_rules.values()):
            # Rules about other pods may no longer keep a pod away, or may now find the pod that they ask for.
            self._raise_event(Event.POD_REMOVED, urgent=False, freed=(UNCOUNTED,))
            self._raise_event(Event.POD_CHANGED, urgent=False)

    def quota_changed(self, before: QuotaSpec | None, now: QuotaSpec | None) -> None:
        if now is None or (before is not None and permits_more(before, now)):
            self._raise_event(Event.QUOTA_CHANGED)

    # objects that only some plugins read

    def object_changed(self, spec: ObjectSpec, before: Any, now: Any) -> None:
        if spec.kind == "BindRequest":
            return  # the change of its pod is reported separately
        changed = not same_object(before, now)  # else it was only written again
        if spec.kind in _VOLUME_KINDS:
            self._on_volumes_changed()
            if changed:
                self._raise_event(Event.VOLUME_CHANGED)
        elif not changed:
            return
        elif spec.kind == claim_signatures.KIND:
            for uid in claim_signatures.owner_uids(now):
                task = self._cluster.task(uid)
                if task is not None and task.status == TaskStatus.PENDING and task.job:
                    self._raise_event(Event.POD_CHANGED, task.job)
            # The jobs that wait for a claim of their own are one equivalence class, and one of them is tried. More jobs wait for
            # devices that a claim gives back.
            self._raise_event(Event.CLAIM_CHANGED, freed=(UNCOUNTED,) if claim_signatures.releases_devices(before, now) else ())
        elif spec.kind in _CLAIM_KINDS:
            self._raise_event(Event.CLAIM_CHANGED)
        elif spec.kind in _SELECTING:
            # It decides which pods a pod is spread against. Such objects are created in each roll-out.
            self._raise_event(Event.POD_REMOVED, urgent=False, freed=(UNCOUNTED,))
        else:
            self._raise_event(Event.NODE_CHANGED, urgent=False)
