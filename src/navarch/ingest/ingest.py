"""Objects into the model, one change at a time: the only way in, for files and for the live watch.

Each put replaces what the model knows of the object and touches only the rows that it concerns. The result depends on the objects,
not on the order in which they arrive. The rules are in the modules beside this one: which queue wins a name and which queues exist
without an object (`queues`), which groups become jobs (`pod_groups`), which job a pod without a group is in (`groups`), how a pod
that cannot be read counts (`unreadable_pods`).

`Overlay` and `Changes` connect the live scheduler; `offline.inventory` uses neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from navarch.apis.core.partial_pod import PartialPod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.errors import ObjectError
from navarch.apis.kai.awaited_groups import AwaitedGroups
from navarch.apis.kai.objects import with_bind_request
from navarch.apis.operators.owners import Owners
from navarch.apis.operators.workload import PodMaker, WorkloadSpec
from navarch.ingest.changes import Changes, NoChanges, NoOverlay, Overlay
from navarch.ingest.groups import NAMESPACE_QUEUE, ShadowGroups, is_shadow, same_member
from navarch.ingest.pod_groups import PodGroups
from navarch.ingest.pod_reader import PodReader, Sibling, queue_of, status_of
from navarch.ingest.queues import Queues
from navarch.ingest.unreadable_pods import UnreadablePods
from navarch.model.cluster import Cluster
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.spec import (
    DisruptionBudgetSpec,
    JobSpec,
    NamespaceSpec,
    NodeSpec,
    ObjectSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    TaskSpec,
)
from navarch.model.status import IS_TERMINAL


class Ingest:
    """Fills `cluster`. `reader` reads pods; the default is for pods that an API server has admitted. `awaited`: which pods wait for
    KAI's pod grouper; None: none does."""

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster | None = None,
        *,
        reader: PodReader | None = None,
        owners: Owners | None = None,
        overlay: Overlay | None = None,
        changes: Changes | None = None,
        awaited: AwaitedGroups | None = None,
    ) -> None:
        self.settings = settings
        self.cluster = Cluster() if cluster is None else cluster
        self.reader = PodReader(settings) if reader is None else reader
        self._overlay = NoOverlay() if overlay is None else overlay
        self._changes = NoChanges() if changes is None else changes
        self._queues = Queues(settings, self.cluster)
        self.groups = PodGroups(settings, self.cluster, self._queues, self._overlay, self._changes)
        self._for_others = self.groups.for_others
        self.shadows = ShadowGroups(settings, self.cluster.namespaces, self.cluster.priority_classes, owners, awaited)
        self._awaited = awaited
        self.unreadable = UnreadablePods(lambda task: self._put_task(task, ""), self._put_node)
        self._shown: dict[str, TaskSpec] = {}
        """uid -> the pod as the API shows it, where the model holds something else."""

    # pods

    def put_pod(self, pod: Pod, old: Pod | None = None) -> None:
        """Raises ObjectError for a pod that cannot be read; the model then keeps what it knew of it. `old` is the version of the pod
        that was put last."""
        uid = pod.metadata.uid or pod.key
        before = self.api_task(uid) if old is not None else None
        task = self.reader.reread(pod, old, before) if old is not None and before is not None else None
        queue = ""
        if task is None:
            task, queue = self.reader.read(pod), queue_of(pod)
        if task is None:
            self.remove_pod(uid)
        else:
            self.put_task(task, queue)

    def put_new_pods(self, pods: Iterable[Pod]) -> list[tuple[Pod, ObjectError]]:
        """Put pods of a list that the model does not have: the result is that of `put_pod` for each, at less cost. Returns
        the pods that cannot be read, with what is wrong with them."""
        unread: list[tuple[Pod, ObjectError]] = []
        self.put_new_tasks(self._read_all(pods, unread))
        return unread

    def _read_all(self, pods: Iterable[Pod], unread: list[tuple[Pod, ObjectError]]) -> Iterator[tuple[TaskSpec, str]]:
        """Each pod as a task, with the queue that it names."""
        siblings: dict[tuple[str, str, str], Sibling] = {}
        """Controller -> the last pod of it that was read."""
        for pod in pods:
            controller = pod.metadata.controller
            sibling = siblings.get(controller) if controller is not None else None
            task = self.reader.read_like(pod, sibling) if sibling is not None else None
            if sibling is not None and task is not None:
                yield task, sibling.queue
                continue
            try:
                task, queue = self.reader.read(pod), queue_of(pod)
            except ObjectError as error:
                unread.append((pod, error))
                continue
            if task is None:
                continue
            if controller is not None and (sibling := Sibling.of(pod, task)) is not None:
                siblings[controller] = sibling
            yield task, queue

    def put_new_tasks(self, tasks: Iterable[tuple[TaskSpec, str]]) -> None:
        """Put pods as the API shows them, each with the queue that it names, that the model does not have: the result is that of
        `put_task` for each, at less cost."""
        added: dict[str, TaskSpec] = {}
        queues: list[str] = []
        known, requested = self.cluster.tasks.rows.of, bool(self.cluster.objects.get("BindRequest"))
        for task, queue in tasks:
            uid = task.uid
            plain = uid not in added and uid not in known and not requested and (task.job or not IS_TERMINAL[task.status])
            if not plain or not self._overlay.has_no_decision(task):
                self.put_task(task, queue)
                continue
            added[uid] = task
            queues.append(queue)
        if added:
            self._add_tasks(list(added.values()), queues)

    def _add_tasks(self, tasks: list[TaskSpec], queues: list[str]) -> None:
        self.cluster.add_tasks(tasks)
        if self._for_others:
            for job in dict.fromkeys(task.job for task in tasks):
                if job in self._for_others:
                    self.groups.refresh(job)
        shadows = [(task, queue) for task, queue in zip(tasks, queues) if is_shadow(task.job)]
        for spec in self.shadows.put_all(shadows):
            self._put_shadow_job(spec)
        if self.unreadable:
            for task in tasks:
                self.unreadable.remove(task.uid)
        self._changes.tasks_added(tasks)

    def put_task(self, task: TaskSpec, queue: str) -> None:
        """A pod as the API shows it. `queue` is the queue that it names (`pod_reader.queue_of`)."""
        self._overlay.task_shown(task)
        if IS_TERMINAL[task.status] and not task.job:
            self.remove_pod(task.uid)
            return
        self._put_shown(task, queue)
        if self.unreadable:
            self.unreadable.remove(task.uid)

    def put_partial(self, pod: PartialPod) -> str:
        """A pod that holds a node and can be read only in part; returns what follows from it, for messages. Of a pod that the model
        knows, only its node and whether it has ended are taken."""
        uid, node = pod.metadata.uid or pod.key, pod.spec.node_name or ""
        status, task = status_of(pod), self.api_task(uid)
        if task is not None and uid not in self.unreadable:
            leaving = pod.metadata.deletion_timestamp is not None
            task, what = replace(task, node=node, status=status, deleting=leaving), "what was known of it stands"
        else:
            task, what = self._read_partial(pod), f"it counts on {node} by what could be read of it"
        if task is not None:
            self.put_task(task, queue_of(pod))
        elif IS_TERMINAL[status]:
            self.remove_pod(uid)
        else:
            row = self.cluster.nodes.rows.of.get(node)
            self.unreadable.put(pod, self.cluster.nodes.specs[row] if row is not None else None)
            what = f"what it asks for is not known, so {node} takes no more pods until it is gone or can be read"
        return "it has ended and holds nothing" if IS_TERMINAL[status] else what

    def _read_partial(self, pod: PartialPod) -> TaskSpec | None:
        """None: what it holds is not known."""
        try:
            return None if pod.unknown else self.reader.read(pod)
        except ObjectError:
            return None

    def remove_pod(self, uid: str) -> None:
        self._overlay.task_gone(uid)
        self._shown.pop(uid, None)
        before = self.cluster.task(uid)
        if before is None:
            return
        self.cluster.remove_task(uid)
        self._leave_job(before)
        if self.unreadable:
            self.unreadable.remove(uid)
        self._changes.task_removed(before)

    def api_task(self, uid: str) -> TaskSpec | None:
        """The pod as it was last read, without bind requests and overlay."""
        return self._shown.get(uid) or self.cluster.task(uid)

    def refresh_task(self, uid: str) -> None:
        """The overlay or the bind request of this pod changed."""
        shown = self.api_task(uid)
        if shown is not None:
            self._put_shown(shown, "")

    def _put_shown(self, shown: TaskSpec, queue: str) -> None:
        """The task under its bind request and the overlay. What the API shows is kept beside it only while it differs."""
        task = shown
        requests = self.cluster.objects.get("BindRequest")
        if requests:
            request = requests.get((shown.namespace, shown.name))
            if isinstance(request, BindRequestSpec):
                self._overlay.bind_requested(shown.uid)
                before = self.cluster.task(shown.uid)
                if request.phase == "Succeeded" and before is not None and before.node == request.node:
                    # Carried out: the pod is on that node, although the watch has not shown it yet.
                    request = replace(request, phase="")
                task = with_bind_request(shown, request)
        task = self._overlay.task(task)
        if task is shown:
            self._shown.pop(shown.uid, None)
        else:
            self._shown[shown.uid] = shown
        self._put_task(task, queue)

    def _put_task(self, task: TaskSpec, queue: str) -> None:
        before = self.cluster.task(task.uid)
        if before == task:
            return
        if before is not None and before.job != task.job:
            self.cluster.remove_task(task.uid)
            self._leave_job(before)
        self.cluster.put_task(task)
        if task.job in self._for_others:
            self.groups.refresh(task.job)
        if is_shadow(task.job) and (before is None or not same_member(before, task)):
            job = self.shadows.put(task, queue)
            if job is not None:
                self._put_shadow_job(job)
        self._changes.task_changed(before, task)

    def _leave_job(self, task: TaskSpec) -> None:
        """Called after the task left the model."""
        if not is_shadow(task.job):
            if task.job:
                self.groups.pod_left(task.job)
            return
        job, gone = self.shadows.remove(task.job, task.uid)
        if gone:
            self._remove_shadow_job(task.job)
        elif job is not None:
            self._put_shadow_job(job)

    # jobs that ingest makes for pods without a group

    def _put_shadow_job(self, job: JobSpec) -> JobSpec | None:
        """The job as it was before."""
        jobs = self.cluster.jobs
        row = jobs.rows.of.get(job.key)
        before = jobs.specs[row] if row is not None else None
        self.cluster.put_job(job)
        if before is None and self._queues.job_added(job.namespace):
            self._changes.queues_changed(implied=True)
        return before

    def _remove_shadow_job(self, key: str) -> None:
        jobs = self.cluster.jobs
        row = jobs.rows.of.get(key)
        before = jobs.specs[row] if row is not None else None
        if before is None:
            return
        self.cluster.remove_job(key)
        if self._queues.job_removed(before.namespace):
            self._changes.queues_changed(implied=True)
        self._changes.job_removed(before, held=False)

    def _remove_if_unmade(self, key: str) -> None:
        """A disruption budget that made this job is gone."""
        if key and not self.shadows.is_made(key):
            self._remove_shadow_job(key)

    def end_waits(self) -> None:
        """Let pods that waited long enough for KAI's pod grouper go on without it."""
        if self.shadows.awaiting:
            self._change_shadow_jobs(self.shadows.no_longer_awaited())

    def _change_shadow_jobs(self, jobs: Iterable[JobSpec]) -> None:
        """Another object than their pods changed these jobs."""
        for job in jobs:
            self._changes.job_changed(self._put_shadow_job(job), job)

    # everything else

    def put(self, spec: Spec, version: int = 0) -> None:
        """What a reader of `apis` made of an object; `version` is the object's resourceVersion."""
        match spec:
            case NodeSpec():
                if self.settings.takes_node(spec.labels):
                    self._put_node(spec)
                else:
                    self._remove_node(spec.name)
            case JobSpec():
                if self._awaited is not None:
                    self._awaited.group_seen(spec)
                self.groups.put(spec, version)
            case QueueSpec():
                changed = self._queues.put(spec) if self.settings.is_in_pool(spec.labels) else self._queues.remove(spec)
                if changed:
                    self._changes.queues_changed(implied=False)
            case PriorityClassSpec():
                self.cluster.put_priority_class(spec)
                self._priority_classes_changed()
            case NamespaceSpec():
                before = self.cluster.namespaces.get(spec.name)
                self.cluster.put_namespace(spec)
                self._namespace_changed(before, spec)
            case DisruptionBudgetSpec():
                before_job = self.shadows.budget_job(spec.namespace, spec.name)
                self.cluster.put_budget(spec)
                self._change_shadow_jobs(self.shadows.put_budget(spec))
                self._remove_if_unmade(before_job)
            case QuotaSpec():
                quota = self.cluster.quotas.get((spec.namespace, spec.name))
                self.cluster.put_quota(spec)
                self._changes.quota_changed(quota, spec)
            case ObjectSpec():
                self._put_object(spec)
            case WorkloadSpec():
                self._change_shadow_jobs(self.shadows.put_workload(spec))
                self.groups.put_workload(spec)
            case PodMaker():
                self.groups.put_pod_maker(spec)

    def remove(self, spec: Spec) -> None:
        """The object of this spec is gone."""
        match spec:
            case NodeSpec():
                self._remove_node(spec.name)
            case JobSpec():
                self.groups.remove(spec)
            case QueueSpec():
                if self._queues.remove(spec):
                    self._changes.queues_changed(implied=False)
            case PriorityClassSpec():
                self.cluster.remove_priority_class(spec.name)
                self._priority_classes_changed()
            case NamespaceSpec():
                before = self.cluster.namespaces.get(spec.name)
                self.cluster.remove_namespace(spec.name)
                self._namespace_changed(before, None)
            case DisruptionBudgetSpec():
                before_job = self.shadows.budget_job(spec.namespace, spec.name)
                self.cluster.remove_budget(spec.namespace, spec.name)
                self._change_shadow_jobs(self.shadows.remove_budget(spec.namespace, spec.name))
                self._remove_if_unmade(before_job)
            case QuotaSpec():
                quota = self.cluster.quotas.get((spec.namespace, spec.name))
                self.cluster.remove_quota(spec.namespace, spec.name)
                self._changes.quota_changed(quota, None)
            case ObjectSpec():
                self._remove_object(spec)
            case WorkloadSpec():
                self.shadows.owners.remove(spec)
                self.groups.remove_workload(spec)
            case PodMaker():
                self.groups.remove_pod_maker(spec)

    def _put_node(self, node: NodeSpec) -> None:
        if self.unreadable:
            node = self.unreadable.node(node)
        table = self.cluster.nodes
        row = table.rows.of.get(node.name)
        before = table.specs[row] if row is not None else None
        if before == node:
            return
        self.cluster.put_node(node)
        self._changes.node_changed(before, node)

    def _remove_node(self, name: str) -> None:
        row = self.cluster.nodes.rows.of.get(name)
        if row is not None and self.cluster.nodes.alive[row]:  # else it is in another pool, and each of its heartbeats comes here
            self.cluster.remove_node(name)
            self.unreadable.node_gone(name)
            self._changes.node_removed(name)

    def _priority_classes_changed(self) -> None:
        self.groups.refresh_all()
        self._change_shadow_jobs(self.shadows.classes_changed())

    def _namespace_changed(self, before: NamespaceSpec | None, now: NamespaceSpec | None) -> None:
        name = now.name if now is not None else before.name if before is not None else ""
        if _queue_in(before) != _queue_in(now):
            self.groups.refresh_all(name)
            self._change_shadow_jobs(self.shadows.namespace_changed(name))
        self._changes.namespace_changed(before, now)
        if (before is None) != (now is None) and self._queues.namespace_changed(name):
            self._changes.queues_changed(implied=True)

    # objects that only some plugins read

    def _put_object(self, spec: ObjectSpec) -> None:
        before, now = self._object(spec), self._overlay.object(spec)
        if now is not before:
            self.cluster.put_object(spec.kind, spec.namespace, spec.name, now)
        self._object_changed(spec, before, now)

    def _remove_object(self, spec: ObjectSpec) -> None:
        self._overlay.object_gone(spec)
        before = self._object(spec)
        self.cluster.remove_object(spec.kind, spec.namespace, spec.name)
        self._object_changed(spec, before, None)

    def _object(self, spec: ObjectSpec) -> object:
        return self.cluster.objects.get(spec.kind, {}).get((spec.namespace, spec.name))

    def _object_changed(self, spec: ObjectSpec, before: object, now: object) -> None:
        if spec.kind == "BindRequest":
            uid = self._overlay.uid_of(spec.namespace, spec.name)
            if uid:
                self.refresh_task(uid)
        self._changes.object_changed(spec, before, now)


def _queue_in(namespace: NamespaceSpec | None) -> str | None:
    return None if namespace is None else namespace.annotations.get(NAMESPACE_QUEUE)
