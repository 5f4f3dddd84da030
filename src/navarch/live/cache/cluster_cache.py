"""Objects of the API server into the columns of the model, one change at a time.

Each put replaces what was known of the object and touches only the rows it concerns. What was decided but is not yet visible
(`assumed`) lies over what the informers show. Whoever waits for something to change hears of it through `notice`: an event
of the kind that refusals name, the job concerned if there is one, and whether it is worth a cycle of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.kai.objects import bound_by
from navarch.apis.operators.workload import PodMaker, WorkloadSpec
from navarch.engine.reasons import Event
from navarch.ingest.groups import NAMESPACE_QUEUE, ShadowGroups, completed, is_shadow
from navarch.ingest.pod_reader import PodReader, queue_of
from navarch.ingest.queue_names import Contested
from navarch.live.cache.assumed_objects import AssumedObjects
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.empty_groups import EmptyGroups
from navarch.live.cache.object_changes import given_up, permits_more, same_member, same_object, same_standing, same_wish
from navarch.live.cache.unreadable_pods import UnreadablePods
from navarch.live.queue import claim_signatures
from navarch.live.queue.equivalence_classes import UNCOUNTED, footprint, selects_namespaces
from navarch.model.objects.workloads import CONTROLLERS, SERVICE
from navarch.model.spec import (
    BindRequestSpec,
    DisruptionBudgetSpec,
    JobSpec,
    NamespaceSpec,
    NodeSpec,
    ObjectSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    Requests,
    TaskSpec,
)
from navarch.model.status import IS_TERMINAL, TaskStatus

_STORAGE = ("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment")
_VOLUME_KINDS = frozenset({"PersistentVolume", "PersistentVolumeClaim", *_STORAGE})
_CLAIM_KINDS = frozenset({"ResourceSlice", "DeviceClass"})
_SELECTING = frozenset({SERVICE, *CONTROLLERS})


class Notice(Protocol):
    def __call__(self, event: Event, job: str = "", *, urgent: bool = True, freed: Requests | None = None) -> None:
        """Something happened, to this job or to everyone. `urgent`: a cycle should see to it. `freed`: what a pod held that
        ended, () if it only asked for something; None: no telling what there is room for now."""


class ClusterCache(AssumedObjects):
    """`pods` is the pod informer's store; of pods that have a node it holds no more than who they are (see `handlers`)."""

    def __init__(self, settings: Settings, assumed: AssumedPods, notice: Notice) -> None:
        self.assumed = assumed
        self.pods: Mapping[tuple[str, str], Pod] = {}
        self.on_volume: Callable[[], None] = lambda: None
        """Told when a volume, a claim on one or anything else about storage changed."""
        self.on_gone: Callable[[str], None] = lambda job: None
        """Told of a job that lost its group, or its last pod if it has none: another of its name is not the same."""
        self.on_wish: Callable[[str], object] = lambda job: None
        """Told of a job whose waiting pods ask for something else than before, or are more, whether that is worth a cycle or not."""
        self.owners_come: Callable[[str], bool] = lambda kind: False
        """Asked of a kind of owners whether those that exist are shown to us (see `Owners.comes`)."""
        self._notice = notice
        super().__init__()
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Start from nothing under these settings but for what is assumed; every object has to be put again."""
        self.settings = settings
        self.begin_anew()
        self.reader = PodReader(settings)
        self.shadows = ShadowGroups(settings, self.cluster.namespaces, self.cluster.priority_classes)
        self.shadows.owners.comes = lambda kind: self.owners_come(kind)
        self._groups: Contested[tuple[JobSpec, int]] = Contested()
        self._queues: Contested[QueueSpec] = Contested()
        self._implied: set[str] = set()
        self.foreign_groups: set[str] = set()
        """Groups of other pools, and of other schedulers' Jobs that have no pods: whoever they belong to decides for them."""
        self.empty_groups = EmptyGroups(settings.scheduler_names)
        self.unreadable = UnreadablePods(lambda task: self._put_task(task, ""), self._put_node)
        """Pods of which nothing is known but their node."""
        self._api_tasks: dict[str, TaskSpec] = {}
        """uid -> the pod as the API shows it, where the cluster holds something else."""
        self._imply_queues()

    # pods

    def put_pod(self, pod: Pod, old: Pod | None = None) -> None:
        """Raises ObjectError for a pod that cannot be read; what was known of it then stands. `old` is the version of it
        that was put last."""
        uid = pod.metadata.uid or pod.key
        before = self.api_task(uid) if old is not None else None
        task = self.reader.reread(pod, old, before) if old is not None and before is not None else None
        queue = ""
        if task is None:
            task, queue = self.reader.read(pod), queue_of(pod)
        if task is None:
            self.remove_pod(uid)
            return
        self.take(task, queue)

    def api_task(self, uid: str) -> TaskSpec | None:
        """What was read of this pod last."""
        return self._api_tasks.get(uid) or self.cluster.task(uid)

    def take(self, task: TaskSpec, queue: str) -> None:
        """The task as the API shows it."""
        self.assumed.observe(task)
        if IS_TERMINAL[task.status] and not task.job:
            self.remove_pod(task.uid)
            return
        self._put_api_task(task, queue)
        if self.unreadable:
            self.unreadable.remove(task.uid)

    def put_unreadable(self, pod: Pod) -> None:
        """A pod of which nothing can be read but its node."""
        row = self.cluster.nodes.rows.of.get(pod.spec.node_name or "")
        self.unreadable.put(pod, self.cluster.nodes.specs[row] if row is not None else None)

    def remove_pod(self, uid: str) -> None:
        self.assumed.gone(uid)
        self._api_tasks.pop(uid, None)
        before = self.cluster.task(uid)
        if before is None:
            return
        self.cluster.remove_task(uid)
        self._leave_shadow(before)
        if self.unreadable:
            self.unreadable.remove(uid)
        if before.node:
            self._notice(Event.POD_REMOVED, freed=footprint(before.shape))
        elif before.job:
            # It leaves what it was promised; and where queues share by what they ask for, others may be due more now.
            self._notice(Event.POD_REMOVED, urgent=False, freed=footprint(before.shape) if before.nominated_node else ())
        if before.job:  # one that lost a pod stands otherwise than those it slept with
            self._notice(Event.POD_CHANGED, before.job, urgent=bool(before.node) or self._may_start(before.job))

    def refresh(self, uid: str) -> None:
        """What is assumed of this pod has changed: lay it anew over what the API shows."""
        truth = self.api_task(uid)
        if truth is not None:
            self._put_api_task(truth, "")

    def _put_api_task(self, truth: TaskSpec, queue: str) -> None:
        """The task as the API shows it, under what was decided or asked of a binder. The truth is kept only while it differs."""
        task = truth
        requests = self.cluster.objects.get("BindRequest")
        if requests:
            request = requests.get((truth.namespace, truth.name))
            if isinstance(request, BindRequestSpec):
                bind = self.assumed.binds.get(truth.uid)
                if bind is not None and bind.delegated:
                    del self.assumed.binds[truth.uid]  # the request itself tells from now on
                before = self.cluster.task(truth.uid)
                if request.phase == "Succeeded" and before is not None and before.node == request.node:
                    # Carried out: the pod is on that node, even if its own watch has not shown it yet.
                    request = replace(request, phase="")
                task = bound_by(truth, request)
        task = self.assumed.over(task)
        if task is truth:
            self._api_tasks.pop(truth.uid, None)
        else:
            self._api_tasks[truth.uid] = truth
        self._put_task(task, queue)

    def _put_task(self, task: TaskSpec, queue: str) -> None:
        before = self.cluster.task(task.uid)
        if before == task:
            return
        if before is not None and before.job != task.job:
            self._leave_shadow(before)
        self.cluster.put_task(task)
        if task.job in self.foreign_groups:
            self.refresh_group(task.job)
        if is_shadow(task.job) and (before is None or not same_member(before, task)):
            job = self.shadows.put(task, queue)
            if job is not None:
                self.cluster.put_job(job)
        self._tell(before, task)

    def _tell(self, before: TaskSpec | None, task: TaskSpec) -> None:
        if before is not None and (freed := given_up(before, task)):
            self._notice(Event.POD_REMOVED, urgent=False, freed=freed)
        if task.status == TaskStatus.PENDING:
            changed = before is None or before.status != task.status or not same_wish(before, task)
            if changed:
                self.on_wish(task.job)
            self._notice(Event.POD_CHANGED, task.job, urgent=changed and self._may_start(task.job))
        elif IS_TERMINAL[task.status] and (before is None or not IS_TERMINAL[before.status]):
            self._notice(Event.POD_REMOVED, task.job, freed=footprint(task.shape))
        elif task.status == TaskStatus.RELEASING and before is not None and before.status != task.status and before.node:
            # Its queue has room from now on, and others can be promised its place: they do not wait until it is gone.
            self._notice(Event.POD_REMOVED, urgent=False, freed=footprint(task.shape))
            self._notice(Event.POD_CHANGED, task.job, urgent=False)
        elif before is None or before.node != task.node or before.labels != task.labels:
            self._notice(Event.POD_CHANGED, urgent=False)
        else:
            self._notice(Event.POD_CHANGED, task.job, urgent=False)

    def _may_start(self, job: str) -> bool:
        """Whether the job has its group and pods enough: the pods of a gang arrive one by one, and only the last of them is
        worth a cycle of its own."""
        jobs = self.cluster.jobs
        row = jobs.rows.of.get(job)
        spec = jobs.specs[row] if row is not None else None
        return row is not None and spec is not None and len(jobs.tasks[row]) >= spec.min_member

    def _leave_shadow(self, task: TaskSpec) -> None:
        if not is_shadow(task.job):
            return
        job, gone = self.shadows.remove(task.job, task.uid)
        if gone:
            self.cluster.remove_job(task.job)
            self.on_gone(task.job)
        elif job is not None:
            self.cluster.put_job(job)

    # everything else

    def put(self, spec: Spec, version: int = 0) -> None:
        """Take in what a dialect read; `version` is the object's resourceVersion."""
        if isinstance(spec, NodeSpec | QueueSpec | JobSpec) and not self.settings.is_in_pool(spec.labels):
            self.remove(spec)
            if isinstance(spec, JobSpec):
                self.foreign_groups.add(spec.key)
            return
        match spec:
            case NodeSpec():
                self._put_node(spec)
            case JobSpec():
                holder = self._groups.put(spec.key, spec.dialect, spec.api_version, (spec, version))
                self._put_job(*holder)
            case QueueSpec():
                self._put_queue(self._queues.put(spec.name, spec.dialect, spec.api_version, spec))
            case PriorityClassSpec():
                self.cluster.put_priority_class(spec)
                self._classes_changed()
            case NamespaceSpec():
                before = self.cluster.namespaces.get(spec.name)
                self.cluster.put_namespace(spec)
                if (before.annotations.get(NAMESPACE_QUEUE) if before else None) != spec.annotations.get(NAMESPACE_QUEUE):
                    self._complete_jobs(spec.name)
                    self._put_jobs(self.shadows.namespace_changed(spec.name))
                if (before.labels if before else {}) != spec.labels and selects_namespaces(self.cluster.shapes.social.values()):
                    # It may be that nobody is kept away any more, or that somebody is near.
                    self._notice(Event.POD_REMOVED, urgent=False, freed=(UNCOUNTED,))
                    self._notice(Event.POD_CHANGED, urgent=False)
                if before is None and self._imply_queues():
                    self._notice(Event.QUEUE_CHANGED, urgent=False)
            case DisruptionBudgetSpec():
                self.cluster.put_budget(spec)
                self._put_jobs([self.shadows.put_budget(spec)])
            case QuotaSpec():
                quota = self.cluster.quotas.get((spec.namespace, spec.name))
                self.cluster.put_quota(spec)
                if quota is not None and permits_more(quota, spec):
                    self._notice(Event.QUOTA_CHANGED)
            case ObjectSpec():
                self._tell_object(spec, *self.put_object(spec))
            case WorkloadSpec():
                self._put_jobs(self.shadows.put_workload(spec))
            case PodMaker():
                for key in sorted(self.empty_groups.put(spec)):
                    self.refresh_group(key)

    def remove(self, spec: Spec) -> None:
        match spec:
            case NodeSpec():
                row = self.cluster.nodes.rows.of.get(spec.name)
                if row is not None and self.cluster.nodes.alive[row]:  # else it is another pool's, of which each heartbeat comes here
                    self.unreadable.node_gone(spec.name)
                    self.cluster.remove_node(spec.name)
                    self._notice(Event.NODE_CHANGED, urgent=False)
            case JobSpec():
                self.foreign_groups.discard(spec.key)
                self.empty_groups.forget(spec)
                self.assumed.statuses.pop(spec.key, None)
                holder = self._groups.remove(spec.key, spec.dialect, spec.api_version)
                if holder is not None:
                    self._put_job(*holder)
                else:
                    self._remove_job(spec.key)
            case QueueSpec():
                known = self._queues.get(spec.name) is not None
                queue = self._queues.remove(spec.name, spec.dialect, spec.api_version)
                if queue is not None:
                    self._put_queue(queue)
                elif known:
                    self.cluster.remove_queue(spec.name)
                    self._imply_queues()
                    self._notice(Event.QUEUE_CHANGED)
            case PriorityClassSpec():
                self.cluster.remove_priority_class(spec.name)
                self._classes_changed()
            case NamespaceSpec():
                self.cluster.remove_namespace(spec.name)
                self._imply_queues()
            case DisruptionBudgetSpec():
                self.cluster.remove_budget(spec.namespace, spec.name)
                self._put_jobs(self.shadows.remove_budget(spec.namespace, spec.name))
            case QuotaSpec():
                self.cluster.remove_quota(spec.namespace, spec.name)
                self._notice(Event.QUOTA_CHANGED)
            case ObjectSpec():
                self._tell_object(spec, self.remove_object(spec), None)
            case WorkloadSpec():
                self.shadows.owners.remove(spec)
            case PodMaker():
                self.empty_groups.remove(spec)

    def group(self, key: str) -> JobSpec | None:
        """The group's own object as read, without what other objects or we add to it."""
        holder = self._groups.get(key)
        return holder[0] if holder else None

    def group_version(self, key: str) -> int:
        """The resourceVersion of what `group` gives; 0: none is known."""
        holder = self._groups.get(key)
        return holder[1] if holder else 0

    def groups(self) -> list[str]:
        """Keys of all groups that have an object."""
        return self._groups.names()

    def put_status(self, job: JobSpec) -> None:
        """A job whose phase or conditions were decided anew."""
        self.cluster.put_job(job)

    def refresh_group(self, key: str) -> None:
        """Take the group as the informer shows it, with what is assumed now."""
        holder = self._groups.get(key)
        if holder is not None:
            self._put_job(*holder)

    def _put_node(self, spec: NodeSpec) -> None:
        if self.unreadable:
            spec = self.unreadable.over(spec)
        table = self.cluster.nodes
        row = table.rows.of.get(spec.name)
        before = table.specs[row] if row is not None else None
        if before == spec:
            return
        self.cluster.put_node(spec)
        if before is None or replace(before, images=spec.images) != spec:  # which images it holds keeps nobody waiting
            self._notice(Event.NODE_ADDED if before is None else Event.NODE_CHANGED)

    def _put_job(self, spec: JobSpec, version: int) -> None:
        spec = completed(spec, self.settings, self.cluster.namespaces, self.cluster.priority_classes)
        spec = self.assumed.observe_group(spec, version)
        jobs = self.cluster.jobs
        row = jobs.rows.of.get(spec.key)
        if (row is None or not jobs.tasks[row]) and self.empty_groups.is_theirs(spec):
            self.foreign_groups.add(spec.key)
            self._remove_job(spec.key)
            return
        self.foreign_groups.discard(spec.key)
        before = jobs.specs[row] if row is not None else None
        if before == spec:
            return
        self.cluster.put_job(spec)
        status_only = before is not None and spec == replace(before, phase=spec.phase, conditions=spec.conditions, counts=spec.counts)
        self._notice(Event.JOB_CHANGED, spec.key, urgent=not status_only)
        if before is not None and not same_standing(before, spec):
            self._notice(Event.POD_REMOVED, urgent=False, freed=())  # the queue that it leaves has room, or others may take from it

    def _remove_job(self, key: str) -> None:
        jobs = self.cluster.jobs
        row = jobs.rows.of.get(key)
        before = jobs.specs[row] if row is not None else None
        if before is None:
            return
        counts = bool(jobs.pending[:, row].any() or jobs.allocated[:, row].any())
        self.cluster.remove_job(key)
        self.on_gone(key)
        self._notice(Event.JOB_CHANGED, key, urgent=False)  # no cycle has anything to decide about it
        # Others may be admitted for what it was admitted for, as if a pod that held it had ended, or be due more than before.
        admitted = before.phase == "Inqueue" and before.min_resources is not None
        if admitted or counts:
            self._notice(Event.POD_REMOVED, urgent=False, freed=before.min_resources if admitted else ())

    def _put_queue(self, spec: QueueSpec) -> None:
        self._implied.discard(spec.name)
        if self.cluster.queues.get(spec.name) == spec:
            return
        self.cluster.put_queue(spec)
        self._imply_queues()
        self._notice(Event.QUEUE_CHANGED)

    # objects that only some plugins read

    def _tell_object(self, spec: ObjectSpec, before: Any, now: Any) -> None:
        changed = not same_object(before, now)  # else it was only written anew
        if spec.kind == "BindRequest":
            pod = self.pods.get((spec.namespace, spec.name))
            if pod is not None:
                self.refresh(pod.metadata.uid or "")
        elif spec.kind in _VOLUME_KINDS:
            self.on_volume()
            if changed:
                self._notice(Event.VOLUME_CHANGED)
        elif not changed:
            return
        elif spec.kind == claim_signatures.KIND:
            for uid in claim_signatures.owner_uids(now):
                task = self.cluster.task(uid)
                if task is not None and task.status == TaskStatus.PENDING and task.job:
                    self._notice(Event.POD_CHANGED, task.job)
            # One of each family looks, and those that wait for a claim of their own are one; for its devices wait more.
            self._notice(Event.CLAIM_CHANGED, freed=(UNCOUNTED,) if claim_signatures.releases_devices(before, now) else ())
        elif spec.kind in _CLAIM_KINDS:
            self._notice(Event.CLAIM_CHANGED)
        elif spec.kind in _SELECTING:
            # Whose like a pod is: that keeps away as a pod does, and such objects come with each roll-out.
            self._notice(Event.POD_REMOVED, urgent=False, freed=(UNCOUNTED,))
        else:
            self._notice(Event.NODE_CHANGED, urgent=False)

    def _put_jobs(self, specs: Iterable[JobSpec | None]) -> None:
        for spec in specs:
            if spec is not None:
                self.cluster.put_job(spec)
                self._notice(Event.JOB_CHANGED, spec.key)

    def _classes_changed(self) -> None:
        self._complete_jobs()
        self._put_jobs(self.shadows.classes_changed())

    def _complete_jobs(self, namespace: str = "") -> None:
        """What other objects say about groups has changed."""
        for key in self._groups.names():
            if not namespace or key.startswith(f"{namespace}/"):
                self.refresh_group(key)

    def _imply_queues(self) -> bool:
        """Queues that exist without an object (see `Settings`); they go as soon as an object of the name comes. Whether they are
        others than before."""
        settings, wanted = self.settings, []
        if settings.imply_queues or not len(self._queues):
            wanted += ["root", settings.default_queue]
        elif any(queue.dialect == "volcano" for queue in self.cluster.queues.values()):
            wanted += ["root"]
        if settings.namespace_as_queue:
            wanted += self.cluster.namespaces
        missing = {name for name in wanted if self._queues.get(name) is None}
        for name in sorted(self._implied - missing):
            if self._queues.get(name) is None:
                self.cluster.remove_queue(name)
        for name in sorted(missing - self._implied):
            self.cluster.put_queue(QueueSpec(name=name, uid=name, reclaimable=name != "root", state="Open"))
        before, self._implied = self._implied, missing
        return before != missing
