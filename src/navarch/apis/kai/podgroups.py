"""KAI's API: PodGroup v2alpha2, Queue v2, and the labels and annotations its users write on pods.

KAI gives a queue's memory in millions of bytes, its cpu in millicores and its GPUs in devices; the specs have the units of the
model. Numbers that a queue omits are zero, and minus one is unlimited, as in KAI.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Final

import msgspec

from navarch.apis.core.objects import Int32, KubeObject, Part, seconds
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Dialect, Kind, Settings
from navarch.apis.errors import ObjectError, shown
from navarch.apis.kai.objects import KINDS as OBJECT_KINDS
from navarch.apis.kai.objects import NUMA_OBSERVED, NUMA_PREDICTED, numa_placement
from navarch.apis.kai.sub_groups import QUEUE_LABEL, SCHEDULER_NAME, is_grouped, part_of
from navarch.apis.operators.readers import KINDS as WORKLOAD_KINDS
from navarch.apis.operators.sub_group_minimums import fewest_pods, marked
from navarch.engine.arguments import WrongKind, duration
from navarch.model.label_syntax import parse_count
from navarch.model.spec import (
    Condition,
    DeviceRequest,
    JobSpec,
    Labels,
    QueueShare,
    QueueSpec,
    Requests,
    SubGroupSpec,
    TopologyDemand,
)

GROUP_NAME: Final = "pod-group-name"
SUB_GROUP_LABEL: Final = "kai.scheduler/subgroup-name"
GPU_GROUP_LABEL: Final = "runai-gpu-group"
_GPU_GROUPS: Final = f"{GPU_GROUP_LABEL}/"
RESERVATION_APP: Final = "kai-resource-reservation"
"""Label `app` of the pods by which KAI's binder reserves shared GPUs."""
RESERVATION_NAMESPACE: Final = "kai-resource-reservation"
"""Where the binder makes them."""
FRACTION: Final = "gpu-fraction"
GPU_MEMORY: Final = "gpu-memory"
DEVICES: Final = "gpu-fraction-num-devices"
MIG_PREFIX: Final = "nvidia.com/mig-"
LAST_START: Final = "kai.scheduler/last-start-timestamp"
LAST_EVICTION: Final = "kai.scheduler/last-eviction-timestamp"
STALE_SINCE: Final = "kai.scheduler/stale-podgroup-timestamp"
UNSCHEDULABLE_CONDITION: Final = "UnschedulableOnNodePool"
"""The condition that KAI sets on a PodGroup that it could not place."""

DEFAULT_PRIORITY: Final = 50
PREEMPTIBLE_BELOW: Final = 100
DEFAULT_QUEUE_PRIORITY: Final = 100
_MEGABYTE: Final = 10**6
_DEEPEST: Final = 50
"""The most levels of sub-groups: functions recurse once for each level."""
_PREEMPTIBILITY: Final[Mapping[str, bool]] = {"preemptible": True, "non-preemptible": False}


class TopologyConstraint(Part, frozen=True):
    topology: str = ""
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class SubGroup(Part, frozen=True):
    name: str = ""
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    parent: str | None = None
    topology_constraint: TopologyConstraint | None = None


class PodGroupPart(Part, frozen=True):
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    preemptibility: str | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: Int32 | None = None
    topology_constraint: TopologyConstraint | None = None
    sub_groups: tuple[SubGroup, ...] | None = None
    preemption_delay: str | None = None
    staleness_grace_period: str | None = None


class SchedulingCondition(Part, frozen=True):
    type: str = ""
    node_pool: str | None = None
    reason: str | None = None
    message: str | None = None
    transition_id: str | None = msgspec.field(default=None, name="transitionID")
    last_transition_time: datetime.datetime | None = None
    status: str | None = None


class PodGroupStatus(Part, frozen=True):
    scheduling_conditions: tuple[SchedulingCondition, ...] | None = None


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupPart = PodGroupPart()
    status: PodGroupStatus = PodGroupStatus()


class QueueResource(Part, frozen=True):
    quota: float = 0.0
    over_quota_weight: float = 0.0
    limit: float = 0.0


class QueueResources(Part, frozen=True):
    gpu: QueueResource = QueueResource()
    cpu: QueueResource = QueueResource()
    memory: QueueResource = QueueResource()


class QueuePart(Part, frozen=True):
    display_name: str | None = None
    parent_queue: str | None = None
    resources: QueueResources | None = None
    priority: Int32 | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class Queue(KubeObject, frozen=True):
    spec: QueuePart = QueuePart()


def read_pod_group(group: PodGroup, settings: Settings) -> JobSpec:
    meta, spec = group.metadata, group.spec
    namespace = meta.namespace or "default"
    key = f"{namespace}/{meta.name}"
    for field, number in (("minMember", spec.min_member), ("minSubGroup", spec.min_sub_group)):
        if number is not None and number < 0:
            raise ObjectError("PodGroup", key, f"spec.{field}", str(number), "0 or more")
    annotations = meta.annotation_map
    preemptibility = spec.preemptibility or ""
    if preemptibility and preemptibility not in _PREEMPTIBILITY:
        expected = "preemptible or non-preemptible"
        raise ObjectError("PodGroup", key, "spec.preemptibility", repr(preemptibility), expected)
    grace = spec.staleness_grace_period
    parts = _sub_groups(spec.sub_groups or (), key)
    least = 1 if spec.min_member is None else spec.min_member
    return JobSpec(
        key=key,
        queue=spec.queue or "",
        # A group with sub-groups needs what its sub-groups need; its own minMember is ignored.
        min_member=fewest_pods(parts, spec.min_sub_group) if parts else least,
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or key,
        dialect="kai",
        api_version=group.api_version or GROUP_VERSIONS[0],
        priority_class=spec.priority_class_name or "",
        default_priority=DEFAULT_PRIORITY,
        preemptable=_PREEMPTIBILITY.get(preemptibility, True),
        preemptible_below=None if preemptibility else PREEMPTIBLE_BELOW,
        created=meta.created,
        # KAI has no admission step: every group is in its queue from the start.
        phase="Inqueue",
        conditions=_conditions(group.status),
        sub_groups=marked(parts, spec.min_sub_group),
        min_sub_groups=spec.min_sub_group,
        topology=_topology(spec.topology_constraint),
        preemption_delay=_seconds(spec.preemption_delay, "PodGroup", key, "spec.preemptionDelay") or 0.0,
        staleness_grace=_seconds(grace, "PodGroup", key, "spec.stalenessGracePeriod"),
        last_started=_moment(annotations, LAST_START, key),
        last_evicted=_moment(annotations, LAST_EVICTION, key),
        stale_since=_moment(annotations, STALE_SINCE, key),
        mark_unschedulable=spec.mark_unschedulable is not False,
        tried_once=spec.scheduling_backoff == 1,
        labels=meta.label_map,
        annotations=annotations,
        owner=meta.controller,
    )


def read_queue(queue: Queue, settings: Settings) -> QueueSpec:
    meta, spec = queue.metadata, queue.spec
    if spec.resources is None:
        raise ObjectError("Queue", meta.name, "spec.resources", "nothing", "gpu, cpu and memory with quota and limit")
    shares = {
        "gpu": _share(spec.resources.gpu, 1),
        "cpu": _share(spec.resources.cpu, 1),
        "memory": _share(spec.resources.memory, _MEGABYTE),
    }
    preempt, reclaim = spec.preempt_min_runtime, spec.reclaim_min_runtime
    return QueueSpec(
        name=meta.name,
        uid=meta.uid or meta.name,
        dialect="kai",
        api_version=queue.api_version or QUEUE_VERSIONS[0],
        parent=spec.parent_queue or "",
        display_name=spec.display_name or "",
        priority=DEFAULT_QUEUE_PRIORITY if spec.priority is None else spec.priority,
        state="Open",
        created=meta.created,
        shares=shares,
        preempt_min_runtime=_seconds(preempt, "Queue", meta.name, "spec.preemptMinRuntime"),
        reclaim_min_runtime=_seconds(reclaim, "Queue", meta.name, "spec.reclaimMinRuntime"),
        labels=meta.label_map,
        annotations=meta.annotation_map,
    )


def _share(part: QueueResource, unit: int) -> QueueShare:
    def scaled(bound: float) -> float:
        return -1.0 if bound < 0 else bound * unit

    return QueueShare(scaled(part.quota), scaled(part.limit), part.over_quota_weight)


def _sub_groups(parts: tuple[SubGroup, ...], key: str) -> tuple[SubGroupSpec, ...]:
    """Names must differ, every parent must exist, and parents must not form a cycle. Parents are compared in lower case."""
    parents: dict[str, str] = {}
    for i, part in enumerate(parts):
        if not part.name or part.name in parents:
            expected = "a name that no other sub-group has"
            raise ObjectError("PodGroup", key, f"spec.subGroups[{i}].name", repr(part.name), expected)
        parents[part.name] = (part.parent or "").lower()
    for i, part in enumerate(parts):
        path = f"spec.subGroups[{i}].parent"
        if parents[part.name] and parents[part.name] not in parents:
            raise ObjectError("PodGroup", key, path, repr(part.parent), "the name of a sub-group")
        above, steps = parents[part.name], 0
        while above:
            above, steps = parents.get(above, ""), steps + 1
            if steps > len(parts):
                raise ObjectError("PodGroup", key, path, repr(part.parent), "a parent that is not its own descendant")
            if steps > _DEEPEST:
                raise ObjectError("PodGroup", key, path, repr(part.parent), f"sub-groups that are nested at most {_DEEPEST} deep")
    return tuple(
        SubGroupSpec(
            name=part.name,
            min_member=part.min_member or 0,
            parent=parents[part.name],
            min_sub_groups=part.min_sub_group,
            topology=_topology(part.topology_constraint),
        )
        for part in parts
    )


def _topology(part: TopologyConstraint | None) -> TopologyDemand | None:
    if part is None or part == TopologyConstraint():
        return None
    return TopologyDemand(
        topology=part.topology,
        required=part.required_topology_level or "",
        preferred=part.preferred_topology_level or "",
        hard=bool(part.required_topology_level),
    )


def _conditions(status: PodGroupStatus) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=each.type,
            status=each.status or "",
            reason=each.reason or "",
            message=each.message or "",
            transition_id=each.transition_id or "",
            last_transition=seconds(each.last_transition_time),
            node_pool=each.node_pool or "",
        )
        for each in status.scheduling_conditions or ()
    )


def _seconds(text: str | None, kind: str, name: str, path: str) -> float | None:
    if not text:
        return None
    try:
        return duration(text)
    except WrongKind:
        raise ObjectError(kind, name, path, repr(text), 'a duration such as "90s" or "1h30m"') from None


def _moment(annotations: Labels, name: str, key: str) -> float | None:
    text = annotations.get(name)
    if not text:
        return None
    try:
        return seconds(datetime.datetime.fromisoformat(text))
    except ValueError:
        path = f"metadata.annotations[{name}]"
        raise ObjectError("PodGroup", key, path, repr(text), "a time such as 2026-01-01T00:00:00Z") from None


def is_ours(pod: Pod) -> bool:
    """Whether KAI's annotations on this pod are meant for KAI. Their names are so general that other software may use them."""
    annotations, labels = pod.metadata.annotation_map, pod.metadata.label_map
    return GROUP_NAME in annotations or pod.spec.scheduler_name == SCHEDULER_NAME or GPU_GROUP_LABEL in labels


def group_of(pod: Pod) -> str:
    annotations = pod.metadata.annotations
    return annotations.get(GROUP_NAME, "") if annotations else ""


def queue_of(pod: Pod) -> str:
    return pod.metadata.label_map.get(QUEUE_LABEL, "")


def sub_group_of(pod: Pod) -> str:
    """The sub-group that its label names; otherwise its sub-group in the shadow job."""
    meta = pod.metadata
    labels = meta.labels
    if not labels:
        return ""
    if (named := labels.get(SUB_GROUP_LABEL)) is not None:
        return named
    if not is_grouped(pod.spec.scheduler_name or "", labels):
        return ""
    return part_of(meta.controller, labels, meta.annotation_map)


def holds_shared_gpu(pod: Pod) -> bool:
    """Whether KAI's binder made the pod to reserve a GPU for the pods of a GPU group. The label alone does not count: tenants can set
    it on pods of their own namespaces."""
    labels = pod.metadata.labels
    if labels is None or pod.metadata.namespace != RESERVATION_NAMESPACE:
        return False
    return labels.get("app") == RESERVATION_APP and GPU_GROUP_LABEL in labels


def gpu_groups_of(pod: Pod) -> tuple[str, ...]:
    """The GPU groups of a pod. One group is in one label, several groups have a label each. The annotation of that name lists all of
    them: it remains if the API server does not copy labels from a binding."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    found = {value for name, value in labels.items() if name.startswith(_GPU_GROUPS)} if labels else set()
    if labels and (single := labels.get(GPU_GROUP_LABEL)):
        found.add(single)
    if not found and annotations and (written := annotations.get(GPU_GROUP_LABEL)):
        found.update(written.split(","))
    return tuple(sorted(found))


def devices_of(pod: Pod, decided: bool = False) -> DeviceRequest | None:
    """A fraction of a GPU, an amount of its memory, or MIG slices; None if the pod requests none of these.

    `decided`: we decide for the pod, so the annotations are meant for us even if nothing else of the pod is in KAI's words."""
    annotations = pod.metadata.annotation_map
    profiles = _profiles(pod)
    if not (decided or is_ours(pod)) or not (FRACTION in annotations or GPU_MEMORY in annotations):
        return DeviceRequest(profiles=profiles) if profiles else None
    fraction, memory = annotations.get(FRACTION), annotations.get(GPU_MEMORY)
    if fraction and memory:
        raise _wrong(pod, GPU_MEMORY, memory, f"either this or {FRACTION}, not both")
    count = _whole(pod, DEVICES, annotations.get(DEVICES) or "1")
    if memory:
        return DeviceRequest(memory=_whole(pod, GPU_MEMORY, memory), count=count, profiles=profiles)
    return DeviceRequest(fraction=_fraction(pod, fraction or ""), count=count, profiles=profiles)


def _profiles(pod: Pod) -> Requests:
    total: dict[str, int] = {}
    for container in pod.spec.containers or ():
        resources = container.resources
        given = {**(resources.limits or {}), **(resources.requests or {})} if resources else {}
        for name, quantity in given.items():
            if name.startswith(MIG_PREFIX):
                total[name] = total.get(name, 0) + _whole(pod, name, str(quantity))
    return tuple(sorted(total.items()))


def _fraction(pod: Pod, text: str) -> int:
    try:
        portion = float(text)
    except ValueError:
        portion = math.nan
    if not 0 < portion <= 1:
        raise _wrong(pod, FRACTION, text, "a part of one device: more than 0, at most 1")
    return max(1, round(portion * 1000))


def _whole(pod: Pod, name: str, text: str) -> int:
    number = parse_count(text)
    if not number:
        raise _wrong(pod, name, text, "a whole number from 1 to 2147483647")
    return number


def _wrong(pod: Pod, name: str, found: str, expected: str) -> ObjectError:
    return ObjectError("Pod", pod.key, f"metadata.annotations[{name}]", shown(found), expected)


def hints_of(pod: Pod) -> tuple[tuple[str, str], ...]:
    """MIG slices requested by annotation (an old form that no node serves), and the QoS class by which the kubelet aligns NUMA
    zones, if the pod's status has it."""
    if not is_ours(pod):
        return ()
    annotations = pod.metadata.annotation_map
    found = [(name, annotations[name]) for name in annotations if name.startswith(MIG_PREFIX)]
    if pod.status.qos_class:
        found.append(("qosClass", pod.status.qos_class))
    return tuple(sorted(found))


def numa_placement_of(pod: Pod) -> tuple[tuple[str, Requests], ...]:
    """The NUMA zones that the node reported, otherwise those that the scheduler predicted."""
    annotations = pod.metadata.annotation_map
    for name in (NUMA_OBSERVED, NUMA_PREDICTED):
        if text := annotations.get(name):
            return numa_placement(text, "Pod", pod.key, f"metadata.annotations[{name}]")
    return ()


GROUP_VERSIONS: Final = ("scheduling.run.ai/v2alpha2",)
QUEUE_VERSIONS: Final = ("scheduling.run.ai/v2",)

DIALECT: Final = Dialect(
    name="kai",
    kinds=(
        Kind(GROUP_VERSIONS, "PodGroup", "podgroups", PodGroup, read_pod_group),
        Kind(QUEUE_VERSIONS, "Queue", "queues", Queue, read_queue, namespaced=False),
        *OBJECT_KINDS,
        *WORKLOAD_KINDS,
    ),
    group_of=group_of,
    queue_of=queue_of,
    sub_group_of=sub_group_of,
    devices_of=devices_of,
    gpu_groups_of=gpu_groups_of,
    holds_shared_gpu=holds_shared_gpu,
    hints_of=hints_of,
    numa_placement_of=numa_placement_of,
)
