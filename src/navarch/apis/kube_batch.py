"""kube-batch's API, in both API groups that served it: PodGroup and Queue, and the annotation that names a pod's group."""

from __future__ import annotations

import datetime

import msgspec

from navarch.apis.core.amounts import optional_amounts
from navarch.apis.core.objects import Int32, KubeObject, Metadata, Part, ResourceList, seconds
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Dialect, Kind, Settings
from navarch.apis.errors import ObjectError
from navarch.model.spec import Condition, JobSpec, QueueSpec

VERSIONS = ("scheduling.incubator.k8s.io/v1alpha1", "scheduling.sigs.dev/v1alpha2")
GROUP_NAME = "scheduling.k8s.io/group-name"


class GroupCondition(Part, frozen=True):
    type: str = ""
    status: str = ""
    transition_id: str | None = msgspec.field(default=None, name="transitionID")
    last_transition_time: datetime.datetime | None = None
    reason: str | None = None
    message: str | None = None


class GroupStatus(Part, frozen=True):
    """The same in kube-batch and Volcano."""

    phase: str | None = None
    conditions: tuple[GroupCondition, ...] | None = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None


class PodGroupPart(Part, frozen=True):
    min_member: Int32 = 0
    queue: str | None = None
    priority_class_name: str | None = None


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupPart = PodGroupPart()
    status: GroupStatus = GroupStatus()


class QueuePart(Part, frozen=True):
    weight: Int32 | None = None
    capability: ResourceList | None = None


class Queue(KubeObject, frozen=True):
    spec: QueuePart = QueuePart()


def read_pod_group(group: PodGroup, settings: Settings) -> JobSpec:
    meta, spec = group.metadata, group.spec
    namespace = meta.namespace or "default"
    key = f"{namespace}/{meta.name}"
    if spec.min_member < 0:
        raise ObjectError("PodGroup", key, "spec.minMember", str(spec.min_member), "0 or more")
    return JobSpec(
        key=key,
        queue=spec.queue or "",
        min_member=spec.min_member,
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or key,
        dialect="kube-batch",
        api_version=group.api_version or VERSIONS[0],
        priority_class=spec.priority_class_name or "",
        created=meta.created,
        phase=group.status.phase or "Pending",
        conditions=conditions_of(group.status),
        counts=counts_of(group.status),
        labels=meta.label_map,
        annotations=meta.annotation_map,
        owner=meta.controller,
    )


def read_queue(queue: Queue, settings: Settings) -> QueueSpec:
    """kube-batch declares `capability` and never reads it. Its queues have no state, so every queue is open."""
    meta = queue.metadata
    return QueueSpec(
        name=meta.name,
        uid=meta.uid or meta.name,
        dialect="kube-batch",
        api_version=queue.api_version or VERSIONS[0],
        weight=queue_weight(meta, queue.spec.weight),
        capability=optional_amounts(queue.spec.capability, "Queue", meta.name, "spec.capability"),
        state="Open",
        created=meta.created,
        labels=meta.label_map,
        annotations=meta.annotation_map,
    )


def queue_weight(meta: Metadata, weight: int | None) -> int:
    if weight is not None and weight < 0:
        raise ObjectError("Queue", meta.name, "spec.weight", str(weight), "1 or more")
    return weight or 1


def conditions_of(status: GroupStatus) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=each.type,
            status=each.status,
            reason=each.reason or "",
            message=each.message or "",
            transition_id=each.transition_id or "",
            last_transition=seconds(each.last_transition_time),
        )
        for each in status.conditions or ()
    )


def counts_of(status: GroupStatus) -> dict[str, int]:
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    return {name: count for name, count in counts.items() if count is not None}


def group_of(pod: Pod) -> str:
    annotations = pod.metadata.annotations
    return annotations.get(GROUP_NAME, "") if annotations else ""


DIALECT = Dialect(
    name="kube-batch",
    kinds=(
        Kind(VERSIONS, "PodGroup", "podgroups", PodGroup, read_pod_group),
        Kind(VERSIONS, "Queue", "queues", Queue, read_queue, namespaced=False),
    ),
    group_of=group_of,
)
