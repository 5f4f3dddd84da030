"""The groups of Kubernetes itself (scheduling.k8s.io): PodGroup since 1.36, and the Workload of 1.35.

A PodGroup with the policy `gang` needs `minCount` pods at once; one with `basic` starts pod by pod. It has no queue, so its queue is
found as for groups of coscheduling. If it has no priority, the priority of its pods counts.

Its status is one condition: `PodGroupScheduled` in v1alpha2, `PodGroupInitiallyScheduled` in later versions. Once True it stays True.
Cycles read it as `Scheduled` if True and as `Unschedulable` otherwise, so a cycle reads what the cycle before wrote.

A group with a constraint that Navarch does not implement is invalid, and its pods wait. Ignoring the constraint could place pods where
the author of the group does not allow them.
"""

from __future__ import annotations

import datetime
from typing import Any

from navarch.apis.core.objects import Int32, KubeObject, Part, seconds
from navarch.apis.core.pod_objects import Pod
from navarch.apis.coscheduling import queue_named
from navarch.apis.dialect import Dialect, Kind, Settings
from navarch.apis.errors import ObjectError, shown
from navarch.apis.upstream.workloads import KINDS as WORKLOAD_KINDS
from navarch.apis.upstream.workloads import Policy, member_of, minimum
from navarch.model.spec import Condition, JobSpec

VERSIONS = ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2")
"""Newest first. The first version that is served is watched."""
SCHEDULED = {"scheduling.k8s.io/v1alpha2": "PodGroupScheduled"}
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"


class GroupCondition(Part, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: datetime.datetime | None = None
    reason: str = ""
    message: str = ""


class GroupStatus(Part, frozen=True):
    conditions: tuple[GroupCondition, ...] | None = None


class Constraints(Part, frozen=True):
    topology: tuple[dict[str, Any], ...] | None = None


class PodGroupPart(Part, frozen=True):
    scheduling_policy: Policy = Policy()
    scheduling_constraints: Constraints | None = None
    resource_claims: tuple[dict[str, Any], ...] | None = None
    parent_composite_pod_group_name: str | None = None
    priority_class_name: str | None = None
    priority: Int32 | None = None


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupPart = PodGroupPart()
    status: GroupStatus = GroupStatus()


def condition_type(api_version: str) -> str:
    """
    >>> condition_type("scheduling.k8s.io/v1alpha2"), condition_type("scheduling.k8s.io/v1beta1")
    ('PodGroupScheduled', 'PodGroupInitiallyScheduled')
    """
    return SCHEDULED.get(api_version, INITIALLY_SCHEDULED)


def read_pod_group(group: PodGroup, settings: Settings) -> JobSpec:
    meta, spec = group.metadata, group.spec
    namespace = meta.namespace or "default"
    key = f"{namespace}/{meta.name}"
    version = group.api_version or VERSIONS[0]
    _refuse_what_is_not_followed(key, spec)
    told = next((c for c in group.status.conditions or () if c.type == condition_type(version)), None)
    return JobSpec(
        key=key,
        queue=queue_named(meta),
        min_member=minimum(spec.scheduling_policy, "PodGroup", key, "spec.schedulingPolicy"),
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or key,
        dialect="upstream",
        api_version=version,
        priority_class=spec.priority_class_name or "",
        default_priority=spec.priority or 0,
        priority_of_tasks=spec.priority is None and not spec.priority_class_name,
        created=meta.created,
        phase="Running" if told is not None and told.status == "True" else "Inqueue",
        conditions=tuple(_condition(each, each is told) for each in group.status.conditions or ()),
        labels=meta.label_map,
        annotations=meta.annotation_map,
        owner=meta.controller,
    )


def _condition(found: GroupCondition, ours: bool) -> Condition:
    since = seconds(found.last_transition_time)
    if not ours:
        return Condition(found.type, found.status, found.reason, found.message, last_transition=since)
    if found.status == "True":
        return Condition("Scheduled", "True", found.reason, found.message, last_transition=since)
    return Condition("Unschedulable", "True", "NotEnoughResources", found.message, last_transition=since)


def _refuse_what_is_not_followed(key: str, spec: PodGroupPart) -> None:
    topology = spec.scheduling_constraints.topology if spec.scheduling_constraints else None
    for path, value, why in (
        ("schedulingConstraints.topology", topology, "groups of this API are not kept within a topology"),
        ("resourceClaims", spec.resource_claims, "claims that a group shares are not allocated"),
        ("parentCompositePodGroupName", spec.parent_composite_pod_group_name, "groups of groups are not started together"),
    ):
        if value:
            said = shown(value if isinstance(value, str) else list(value))
            raise ObjectError("PodGroup", key, f"spec.{path}", said, f"nothing: {why}")


def group_of(pod: Pod) -> str:
    group = pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return group.pod_group_name
    return member_of(pod.spec.workload_ref) if pod.spec.workload_ref is not None else ""


DIALECT = Dialect(
    name="upstream",
    kinds=(Kind(VERSIONS, "PodGroup", "podgroups", PodGroup, read_pod_group), *WORKLOAD_KINDS),
    group_of=group_of,
)
