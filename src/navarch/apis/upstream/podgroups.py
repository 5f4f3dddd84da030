"""The groups of Kubernetes itself (scheduling.k8s.io): PodGroup since 1.36, and the Workload of 1.35.

A PodGroup with the policy `gang` needs `minCount` pods at once; one with `basic` starts pod by pod. It has no queue, so its queue is
found as for groups of coscheduling. If it has no priority, the priority of its pods counts.

Its status is one condition: `PodGroupScheduled` in v1alpha2, `PodGroupInitiallyScheduled` in later versions. Once True it stays True.
Cycles read it as `Scheduled` if True and as `Unschedulable` otherwise, so a cycle reads what the cycle before wrote.

A topology constraint keeps the group on nodes with one value of a label. A disruption mode says whether its pods are preempted one by
one or together. A group may belong to a CompositePodGroup (`model/objects/composite_groups.py`), which only kube-scheduler's rules
start as a whole. Under other policies such a group is invalid and its pods wait: ignoring the field could start what the author does
not allow.
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
from navarch.model.spec import Condition, JobSpec, TopologyDemand

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
    observed_generation: int | None = None


class GroupStatus(Part, frozen=True):
    conditions: tuple[GroupCondition, ...] | None = None


class TopologyConstraint(Part, frozen=True):
    key: str = ""


class Constraints(Part, frozen=True):
    topology: tuple[TopologyConstraint, ...] | None = None


class PodGroupPart(Part, frozen=True):
    scheduling_policy: Policy = Policy()
    scheduling_constraints: Constraints | None = None
    resource_claims: tuple[dict[str, Any], ...] | None = None
    parent_composite_pod_group_name: str | None = None
    priority_class_name: str | None = None
    priority: Int32 | None = None
    disruption_mode: str | dict[str, Any] | None = None
    preemption_policy: str | None = None


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
    if spec.parent_composite_pod_group_name and not settings.composite_groups:
        why = "nothing: only kube-scheduler's rules start groups of groups together"
        raise ObjectError("PodGroup", key, "spec.parentCompositePodGroupName", shown(spec.parent_composite_pod_group_name), why)
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
        priority_of_tasks=not spec.priority and not spec.priority_class_name,  # admission writes 0 where none is named
        created=meta.created,
        phase="Running" if told is not None and told.status == "True" else "Inqueue",
        conditions=tuple(_condition(each, each is told) for each in group.status.conditions or ()),
        labels=meta.label_map,
        annotations=meta.annotation_map,
        owner=meta.controller,
        topology=topology_of(spec.scheduling_constraints, "PodGroup", key),
        composite=spec.parent_composite_pod_group_name or "",
        disrupted_together=is_disrupted_together(spec.disruption_mode, "PodGroup", key),
        preemption_policy=spec.preemption_policy or "",
        generation=meta.generation or 0,
    )


def topology_of(constraints: Constraints | None, kind: str, key: str) -> TopologyDemand | None:
    """The label that all nodes of the group have the same value of. The API allows one."""
    found = (constraints.topology if constraints is not None else None) or ()
    if not found:
        return None
    path = "spec.schedulingConstraints.topology"
    if len(found) > 1:
        raise ObjectError(kind, key, path, f"{len(found)} constraints", "one at most")
    if not found[0].key:
        raise ObjectError(kind, key, f"{path}[0].key", "nothing", "the key of a node label")
    return TopologyDemand(label=found[0].key)


def is_disrupted_together(mode: str | dict[str, Any] | None, kind: str, key: str) -> bool:
    """`PodGroup` or `Pod` in v1alpha2, `{all: {}}` or `{single: {}}` in later versions.

    >>> is_disrupted_together("PodGroup", "PodGroup", "ns/g"), is_disrupted_together({"single": {}}, "PodGroup", "ns/g")
    (True, False)
    """
    if isinstance(mode, dict):
        named = sorted(name for name, value in mode.items() if value is not None)
        if named in (["all"], ["single"]):
            return named == ["all"]
    elif mode in (None, "", "Pod", "PodGroup"):
        return mode == "PodGroup"
    raise ObjectError(kind, key, "spec.disruptionMode", shown(mode), "single or all (v1alpha2: Pod or PodGroup)")


def _condition(found: GroupCondition, ours: bool) -> Condition:
    since, generation = seconds(found.last_transition_time), found.observed_generation or 0
    kind, status, reason = found.type, found.status, found.reason
    if ours:
        kind, status = "Scheduled" if found.status == "True" else "Unschedulable", "True"
        reason = found.reason if found.status == "True" else "NotEnoughResources"
    return Condition(kind, status, reason, found.message, last_transition=since, observed_generation=generation)


def group_of(pod: Pod) -> str:
    group = pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return group.pod_group_name
    return member_of(pod.spec.workload_ref) if pod.spec.workload_ref is not None else ""


DIALECT = Dialect(
    name="upstream",
    kinds=(Kind(VERSIONS, "PodGroup", "podgroups", PodGroup, read_pod_group), *WORKLOAD_KINDS),
    kept=("CompositePodGroup",),
    group_of=group_of,
)
