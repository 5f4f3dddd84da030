"""A pod as a task: its status and node, its job, its priority, and the shape that it shares with equal pods."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from navarch.apis.admission.admission import SYSTEM_PRIORITY_CLASSES, AdmissionContext
from navarch.apis.core.objects import Metadata, seconds
from navarch.apis.core.pod_objects import Pod, PodSpec, PodStatus
from navarch.apis.core.shape import shape_reader
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.apis.kai.pod_grouper import is_grouped, key_of
from navarch.apis.registry import DIALECTS
from navarch.ingest.groups import is_shadow, owner_key, same_own_labels
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.label_syntax import parse_int64
from navarch.model.spec import DeviceRequest, PriorityClassSpec, TaskSpec
from navarch.model.status import TaskStatus

DEFAULT_SCHEDULER = "default-scheduler"
PREEMPTED = "PreemptionByScheduler"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_GROUPS = tuple(d.group_of for d in DIALECTS if d.group_of)
_SUB_GROUPS = tuple(d.sub_group_of for d in DIALECTS if d.sub_group_of)
_DEVICES = tuple(d.devices_of for d in DIALECTS if d.devices_of)
_GPU_GROUPS = tuple(d.gpu_groups_of for d in DIALECTS if d.gpu_groups_of)
_GPU_HOLDERS = tuple(d.holds_shared_gpu for d in DIALECTS if d.holds_shared_gpu)
_QUEUES = tuple(d.queue_of for d in DIALECTS if d.queue_of)
_NUMA = tuple(d.numa_placement_of for d in DIALECTS if d.numa_placement_of)
_HINTS = tuple(d.hints_of for d in DIALECTS if d.hints_of)


def group_of(pod: Pod) -> str:
    """Name of the group that the pod names, in any dialect; empty if none."""
    for read in _GROUPS:
        if name := read(pod):
            return name
    return ""


def queue_of(pod: Pod) -> str:
    """The queue that a pod without a group names; empty if none."""
    for read in _QUEUES:
        if name := read(pod):
            return name
    return ""


def status_of(pod: Pod) -> TaskStatus:
    """From phase, node and deletion. A pod on a node is Bound until it starts; a pod that is being deleted is Releasing."""
    phase = pod.status.phase
    if phase == "Succeeded":
        return TaskStatus.SUCCEEDED
    if phase == "Failed":
        return TaskStatus.FAILED
    if phase == "Unknown":
        return TaskStatus.UNKNOWN
    if pod.metadata.deletion_timestamp is not None:
        return TaskStatus.RELEASING
    if phase == "Running":
        return TaskStatus.RUNNING
    return TaskStatus.BOUND if pod.spec.node_name else TaskStatus.PENDING


class Sibling(msgspec.Struct, frozen=True):
    """A pod that was read. Other pods of its controller are read by comparison with it (`PodReader.read_like`)."""

    metadata: Metadata
    status: PodStatus
    template: PodSpec
    """What its template decides."""
    placed: bool
    grouped: bool
    """It is in a shadow job of KAI's."""
    task: TaskSpec
    queue: str
    """The queue that it names."""

    @classmethod
    def of(cls, pod: Pod, task: TaskSpec) -> Sibling | None:
        """None if no other pod can be read by comparison: the pod is being resized, or has claims or volumes of its own."""
        template = template_of(pod.spec)
        if template is None or _resize_pending(pod.status):
            return None
        grouped = is_shadow(task.job) and is_grouped(pod.spec.scheduler_name or "", pod.metadata.label_map)
        return cls(pod.metadata, pod.status, template, bool(pod.spec.node_name), grouped, task, queue_of(pod))


def template_of(spec: PodSpec) -> PodSpec | None:
    """The spec without the node, and without volumes that scheduling does not read, which have generated names. None if it has claims,
    or volumes that scheduling reads."""
    if spec.resource_claims:
        return None
    for volume in spec.volumes or ():
        if volume.matters:
            return None
    return replace(spec, node_name=None, volumes=None)


class PodReader:
    """Pods to tasks under one set of settings.

    `admission`: pods come from files, so the defaults of an API server are applied and priority classes are looked up."""

    def __init__(
        self,
        settings: Settings,
        admission: AdmissionContext | None = None,
        priority_classes: Mapping[str, PriorityClassSpec] | None = None,
    ) -> None:
        self.settings = settings
        self._shapes = shape_reader(admission)
        self._resolve = admission is not None
        self._classes = dict(priority_classes or {})
        defaults = [each for each in self._classes.values() if each.global_default]
        self._default_class = min(defaults, key=lambda each: (each.value, each.name), default=None)

    def is_ours(self, pod: Pod) -> bool:
        """Whether we decide for this pod while it is pending. Its scheduler name must be ours. A pod without a group that KAI
        would group must also be in our node pool, by its own label."""
        names, settings, labels = self.settings.scheduler_names, self.settings, pod.metadata.label_map
        if names is not None and (pod.spec.scheduler_name or DEFAULT_SCHEDULER) not in names:
            return False
        if not settings.node_pool_key or settings.is_in_pool(labels) or not is_grouped(pod.spec.scheduler_name or "", labels):
            return True
        return bool(group_of(pod))

    def read(self, pod: Pod) -> TaskSpec | None:
        """The pod's task; None for a pod that waits for another scheduler.

        A pod without a group is in the shadow job of its owner if it is ours. Otherwise it is in no job and only occupies its node."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        task_status = status_of(pod)
        holds_gpu = any(holds(pod) for holds in _GPU_HOLDERS)
        ours = not holds_gpu and self.is_ours(pod)
        node = spec.node_name or ""
        if not ours and not node:
            return None
        namespace = meta.namespace or "default"
        if not meta.name:
            raise ObjectError("Pod", f"{namespace}/?", "metadata.name", "nothing", "a name")
        owner = meta.controller
        group = group_of(pod)
        if group:
            job = f"{namespace}/{group}"
        elif ours:
            job = _shadow_key(pod, namespace, owner)
        else:
            job = ""
        annotations, labels = meta.annotation_map, meta.label_map
        priority, class_name, policy = self._priority(pod, spec)
        shape = self._shapes.read(
            pod,
            placed=bool(node),
            hints=_hints(pod),
            devices=_devices(pod, ours),
        )
        if holds_gpu:
            shape = replace(shape, requests=tuple((name, amount) for name, amount in shape.requests if name not in GPU_RESOURCES))
        return TaskSpec(
            uid=meta.uid or f"{namespace}/{meta.name}",
            namespace=namespace,
            name=meta.name,
            shape=shape,
            job=job,
            node=node,
            status=task_status,
            priority=_task_priority(pod, priority or 0),
            pod_priority=priority or 0,
            has_priority=priority is not None,
            created=seconds(meta.creation_timestamp),
            started=seconds(status.start_time) if status.start_time else None,
            role=annotations.get("volcano.sh/task-spec") or labels.get("volcano.sh/task-spec") or "",
            sub_group=next((name for read in _SUB_GROUPS if (name := read(pod))), "") if _SUB_GROUPS else "",
            preemptable=_flag(
                annotations.get("volcano.sh/preemptable"),
                labels.get("volcano.sh/preemptable"),
            ),
            preemption_policy=policy,
            gates=tuple(gate.name for gate in spec.scheduling_gates) if spec.scheduling_gates else (),
            labels=labels,
            annotations=annotations,
            nominated_node=status.nominated_node_name or "",
            scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
            priority_class=class_name,
            owner=owner,
            conditions=_conditions(status),
            deleting=meta.deletion_timestamp is not None,
            deleted=seconds(meta.deletion_timestamp) if meta.deletion_timestamp else None,
            phase=status.phase or "",
            disruption_target=_is_disruption_target(status),
            gpu_groups=() if holds_gpu else next((found for read in _GPU_GROUPS if (found := read(pod))), ()),
            numa_placement=next((zones for read in _NUMA if (zones := read(pod))), ()) if annotations else (),
            active_deadline=None if spec.active_deadline_seconds is None else float(spec.active_deadline_seconds),
        )

    def read_like(self, pod: Pod, sibling: Sibling) -> TaskSpec | None:
        """The task of a pod that differs from its sibling only in name, node, status and age. None if it differs in more.

        Most pods of a list have a sibling from the same template before them. Comparing the two costs less than reading the pod."""
        meta, spec, status, task = pod.metadata, pod.spec, pod.status, sibling.task
        other, held = sibling.metadata, sibling.status
        if (
            meta.labels != other.labels
            or meta.annotations != other.annotations
            or meta.namespace != other.namespace
            or meta.owner_references != other.owner_references
            or bool(spec.node_name) != sibling.placed
            or status.container_statuses != held.container_statuses
            or status.init_container_statuses != held.init_container_statuses
            or status.resources != held.resources
            or status.allocated_resources != held.allocated_resources
            or status.resource_claim_statuses != held.resource_claim_statuses
            or template_of(spec) != sibling.template
            or not meta.name
        ):
            return None
        conditions, disrupted = task.conditions, task.disruption_target
        if status.conditions != held.conditions:
            if _resize_pending(status):
                return None
            conditions, disrupted = _conditions(status), _is_disruption_target(status)
        job = task.job
        if sibling.grouped:  # KAI groups some pods one by one
            job = _shadow_key(pod, task.namespace, task.owner)
        return replace(
            task,
            uid=meta.uid or f"{task.namespace}/{meta.name}",
            name=meta.name,
            job=job,
            node=spec.node_name or "",
            status=status_of(pod),
            created=seconds(meta.creation_timestamp),
            started=seconds(status.start_time) if status.start_time else None,
            nominated_node=status.nominated_node_name or "",
            conditions=conditions,
            deleting=meta.deletion_timestamp is not None,
            deleted=seconds(meta.deletion_timestamp) if meta.deletion_timestamp else None,
            phase=status.phase or "",
            disruption_target=disrupted,
        )

    def reread(self, pod: Pod, old: Pod, before: TaskSpec) -> TaskSpec | None:
        """The task of a changed pod, made from the task `before` that was read from the version `old`. None if more than node, status,
        conditions and copied labels changed.

        Most changes of a pod are its binding, start and end. Comparing two versions costs a tenth of reading the pod again."""
        meta, was, status = pod.metadata, old.metadata, pod.status
        node = pod.spec.node_name
        if (
            meta.annotations != was.annotations
            or meta.owner_references != was.owner_references
            or meta.creation_timestamp != was.creation_timestamp
            or msgspec.structs.replace(old.spec, node_name=node) != pod.spec
            or status.resource_claim_statuses != old.status.resource_claim_statuses
            or _may_be_resized(status)
            or _may_be_resized(old.status)
            or (old.spec.node_name and not node)  # a restored backup: without a node the pod may be another scheduler's
        ):
            return None
        labels = before.labels
        if meta.labels != was.labels:
            # Selectors of affinity and spread constraints may contain labels of the pod.
            if before.shape.pod_affinity or before.shape.spread or not same_own_labels(meta.label_map, was.label_map):
                return None
            if self.settings.is_in_pool(meta.label_map) != self.settings.is_in_pool(was.label_map):
                return None
            labels = meta.label_map
        return replace(
            before,
            node=node or "",
            status=status_of(pod),
            started=seconds(status.start_time) if status.start_time else None,
            labels=labels,
            nominated_node=status.nominated_node_name or "",
            conditions=_conditions(status),
            deleting=meta.deletion_timestamp is not None,
            deleted=seconds(meta.deletion_timestamp) if meta.deletion_timestamp else None,
            phase=status.phase or "",
            disruption_target=_is_disruption_target(status),
        )

    def _priority(self, pod: Pod, spec: PodSpec) -> tuple[int | None, str, str]:
        """Priority, class and preemption policy, resolved as admission does for pods from files."""
        name, policy = spec.priority_class_name or "", spec.preemption_policy or ""
        if not self._resolve or spec.priority is not None:
            return spec.priority, name, policy
        found = self._classes.get(name) if name else self._default_class
        if found is not None:
            return found.value, found.name, policy or found.preemption_policy
        if not name:
            return None, "", policy
        if name in SYSTEM_PRIORITY_CLASSES:
            return SYSTEM_PRIORITY_CLASSES[name], name, policy
        raise ObjectError("Pod", pod.key, "spec.priorityClassName", repr(name), "the name of a PriorityClass that is in the input")


def _shadow_key(pod: Pod, namespace: str, owner: tuple[str, str, str] | None) -> str:
    meta = pod.metadata
    if is_grouped(pod.spec.scheduler_name or "", meta.label_map):
        return key_of(namespace, meta.name, owner, meta.label_map, meta.annotation_map)
    return owner_key(namespace, meta.name, owner)


def _task_priority(pod: Pod, otherwise: int) -> int:
    text = pod.metadata.annotations.get("volcano.sh/task-priority") if pod.metadata.annotations else None
    number = parse_int64(text) if text else None
    return otherwise if number is None else number


def _flag(*texts: str | None) -> bool:
    """The first given text decides, and True if none is given. A text that is not a boolean is false."""
    return next((text in _TRUE for text in texts if text is not None), True)


def _hints(pod: Pod) -> tuple[tuple[str, str], ...]:
    found: tuple[tuple[str, str], ...] = ()
    for read in _HINTS:
        found += read(pod)
    return tuple(sorted(found)) if len(found) > 1 else found


def _devices(pod: Pod, ours: bool) -> DeviceRequest | None:
    for read in _DEVICES:
        if (found := read(pod, ours)) is not None:
            return found
    return None


def _conditions(status: PodStatus) -> tuple[tuple[str, str, str, float], ...]:
    if not status.conditions:
        return ()
    return tuple([(c.type, c.status, c.reason or "", seconds(c.last_transition_time)) for c in status.conditions])


def _resize_pending(status: PodStatus) -> bool:
    return any(condition.type == "PodResizePending" for condition in status.conditions or ())


def _may_be_resized(status: PodStatus) -> bool:
    """Whether the pod may hold other amounts than its spec requests."""
    return (
        status.container_statuses is not None
        or status.init_container_statuses is not None
        or status.resources is not None
        or status.allocated_resources is not None
    )


def _is_disruption_target(status: PodStatus) -> bool:
    """Whether a preemption marked the pod. The first condition of that type decides."""
    for condition in status.conditions or ():
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == PREEMPTED
    return False
