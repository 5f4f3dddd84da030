"""The API of scheduler-plugins' coscheduling (scheduling.x-k8s.io/v1alpha1): PodGroup, and the label that names a pod's group.

The API has no queues and no priorities of groups. An annotation or label of the group names its queue, as on pods without a group;
otherwise the group is in the queue of its namespace or in the default queue. Its priority is the priority of its pods.
`scheduleTimeoutSeconds` limits how long placed members hold their nodes while the other members wait. Navarch places a gang at once or
not at all, so nothing times out.

Its phases describe pods, not admission. When they are read back they only say whether the group has started before. Policies with an
admission step decide again whether the group is admitted.
"""

from __future__ import annotations

import datetime

from navarch.apis.core.amounts import optional_amounts
from navarch.apis.core.objects import Int32, KubeObject, Metadata, Part, ResourceList, seconds
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Dialect, Kind, Settings
from navarch.apis.errors import ObjectError
from navarch.apis.kai.sub_groups import QUEUE_LABEL
from navarch.apis.volcano.podgroups import QUEUE_NAMES
from navarch.model.spec import Condition, JobSpec

VERSIONS = ("scheduling.x-k8s.io/v1alpha1",)
GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
"""Pods carried the second label before the API group was renamed."""
STARTED = {"Running": "Running", "Finished": "Completed", "Failed": "Completed"}
"""Phase of a group that had enough pods on nodes -> the phase that a cycle uses."""


class GroupStatus(Part, frozen=True):
    phase: str | None = None
    occupied_by: str | None = None
    scheduled: int | None = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    schedule_start_time: datetime.datetime | None = None


class PodGroupPart(Part, frozen=True):
    min_member: Int32 = 0
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: Int32 | None = None


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupPart = PodGroupPart()
    status: GroupStatus = GroupStatus()


def queue_named(meta: Metadata) -> str:
    """The queue that a group names by Volcano's annotation or KAI's label, for APIs without queues; empty: none."""
    annotations = meta.annotation_map
    named = next((annotations[name] for name in QUEUE_NAMES if annotations.get(name)), "")
    return named or meta.label_map.get(QUEUE_LABEL, "")


def read_pod_group(group: PodGroup, settings: Settings) -> JobSpec:
    meta, spec, status = group.metadata, group.spec, group.status
    namespace = meta.namespace or "default"
    key = f"{namespace}/{meta.name}"
    if spec.min_member < 0:
        raise ObjectError("PodGroup", key, "spec.minMember", str(spec.min_member), "0 or more")
    started = STARTED.get(status.phase or "")
    start = status.schedule_start_time
    return JobSpec(
        key=key,
        queue=queue_named(meta),
        min_member=spec.min_member,
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or key,
        dialect="coscheduling",
        api_version=group.api_version or VERSIONS[0],
        min_resources=optional_amounts(spec.min_resources, "PodGroup", key, "spec.minResources"),
        priority_of_tasks=True,
        created=meta.created,
        phase=started or "Pending",
        conditions=(Condition("Scheduled", "True", status.phase or ""),) if started else (),
        counts=_counts(status),
        reported=(("occupiedBy", status.occupied_by or ""), ("phase", status.phase or "")),
        last_started=seconds(start) if start else None,
        labels=meta.label_map,
        annotations=meta.annotation_map,
        owner=meta.controller,
    )


def _counts(status: GroupStatus) -> dict[str, int]:
    counts = {
        "scheduled": status.scheduled,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
    }
    return {name: count for name, count in counts.items() if count is not None}


def group_of(pod: Pod) -> str:
    labels = pod.metadata.labels
    if not labels:
        return ""
    return labels.get(GROUP_LABELS[0]) or labels.get(GROUP_LABELS[1]) or ""


DIALECT = Dialect(
    name="coscheduling",
    kinds=(Kind(VERSIONS, "PodGroup", "podgroups", PodGroup, read_pod_group),),
    group_of=group_of,
)
