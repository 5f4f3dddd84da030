"""Volcano's API (scheduling.volcano.sh/v1beta1): PodGroup, Queue, and what its users write on pods.

The field names and their meaning are Volcano's. `engine.semantics` decides how a queue without a state is treated, and a role
minimum above the minimum of the gang.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.apis.core.amounts import optional_amounts
from navarch.apis.core.objects import Int32, KubeObject, LabelSelectorPart, Part, ResourceList
from navarch.apis.core.pod_objects import Pod
from navarch.apis.core.selection import label_selector
from navarch.apis.dialect import Dialect, Kind, Settings
from navarch.apis.errors import ObjectError
from navarch.apis.kube_batch import GroupStatus, conditions_of, counts_of, queue_weight
from navarch.apis.volcano.hyper_nodes import KINDS as TOPOLOGY_KINDS
from navarch.apis.volcano.numa_topologies import NUMA_KINDS
from navarch.model.spec import JobSpec, QueueSpec, SubGroupSpec, TopologyDemand

VERSIONS = ("scheduling.volcano.sh/v1beta1",)
GROUP_NAME = "scheduling.volcano.sh/group-name"
QUEUE_NAMES = ("scheduling.volcano.sh/queue-name", "volcano.sh/queue-name")
PREEMPTABLE = "volcano.sh/preemptable"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
_HINTS = (
    "volcano.sh/numa-topology-policy",
    "volcano.sh/resource-strategy-scoring-type",
    "volcano.sh/resource-strategy-weight",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "volcano.sh/vgpu-use-gpuuuid",
    "volcano.sh/vgpu-nouse-gpuuuid",
    "volcano.sh/vgpu-mode",
    "volcano.sh/vgpu-podgroup-policy",
)


class NetworkTopology(Part, frozen=True):
    mode: str | None = None
    highest_tier_allowed: Int32 | None = None
    highest_tier_name: str | None = None


class SubGroupPolicy(Part, frozen=True):
    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: Int32 | None = None
    min_sub_groups: Int32 | None = None
    label_selector: LabelSelectorPart | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodGroupPart(Part, frozen=True):
    min_member: Int32 = 0
    min_task_member: dict[str, Int32] | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] | None = None


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupPart = PodGroupPart()
    status: GroupStatus = GroupStatus()


class Guarantee(Part, frozen=True):
    resource: ResourceList | None = None


class NodeGroupTerms(Part, frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[str, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[str, ...] | None = None


class QueueAffinity(Part, frozen=True):
    node_group_affinity: NodeGroupTerms | None = None
    node_group_anti_affinity: NodeGroupTerms | None = None


class QueuePart(Part, frozen=True):
    weight: Int32 | None = None
    capability: ResourceList | None = None
    deserved: ResourceList | None = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    parent: str | None = None
    priority: Int32 | None = None
    affinity: QueueAffinity | None = None


class QueueStatus(Part, frozen=True):
    state: str | None = None


class Queue(KubeObject, frozen=True):
    spec: QueuePart = QueuePart()
    status: QueueStatus = QueueStatus()


def read_pod_group(group: PodGroup, settings: Settings) -> JobSpec:
    meta, spec = group.metadata, group.spec
    namespace = meta.namespace or "default"
    key = f"{namespace}/{meta.name}"
    roles = spec.min_task_member or {}
    for path, minimum in (("minMember", spec.min_member), *((f"minTaskMember[{r}]", n) for r, n in roles.items())):
        if minimum < 0:
            raise ObjectError("PodGroup", key, f"spec.{path}", str(minimum), "0 or more")
    annotations = meta.annotation_map
    return JobSpec(
        key=key,
        queue=spec.queue or "",
        min_member=spec.min_member,
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or key,
        dialect="volcano",
        api_version=group.api_version or VERSIONS[0],
        roles=tuple(sorted(roles.items())),
        min_resources=optional_amounts(spec.min_resources, "PodGroup", key, "spec.minResources"),
        priority_class=spec.priority_class_name or "",
        preemptable=(annotations.get(PREEMPTABLE) or meta.label_map.get(PREEMPTABLE)) == "true",
        never_preempted=annotations.get(PREEMPTABLE, meta.label_map.get(PREEMPTABLE, "true")) != "true",
        created=meta.created,
        phase=group.status.phase or "Pending",
        conditions=conditions_of(group.status),
        counts=counts_of(group.status),
        sub_groups=tuple(_sub_group(policy) for policy in spec.sub_group_policy or ()),
        topology=_topology(spec.network_topology),
        labels=meta.label_map,
        annotations=annotations,
        owner=meta.controller,
    )


def read_queue(queue: Queue, settings: Settings) -> QueueSpec:
    meta, spec = queue.metadata, queue.spec
    name = meta.name
    guarantee = spec.guarantee.resource if spec.guarantee else None
    return QueueSpec(
        name=name,
        uid=meta.uid or name,
        dialect="volcano",
        api_version=queue.api_version or VERSIONS[0],
        parent=spec.parent or "",
        weight=queue_weight(meta, spec.weight),
        priority=spec.priority or 0,
        capability=optional_amounts(spec.capability, "Queue", name, "spec.capability"),
        deserved=optional_amounts(spec.deserved, "Queue", name, "spec.deserved"),
        guarantee=optional_amounts(guarantee, "Queue", name, "spec.guarantee.resource"),
        reclaimable=spec.reclaimable is not False,
        state=queue.status.state or "",
        created=meta.created,
        node_groups=_node_groups(spec.affinity),
        labels=meta.label_map,
        annotations=meta.annotation_map,
    )


def _sub_group(policy: SubGroupPolicy) -> SubGroupSpec:
    return SubGroupSpec(
        name=policy.name,
        min_member=1 if policy.sub_group_size is None else policy.sub_group_size,
        min_groups=policy.min_sub_groups or 0,
        selector=label_selector(policy.label_selector),
        match_label_keys=policy.match_label_keys or (),
        topology=_topology(policy.network_topology),
    )


def _topology(part: NetworkTopology | None) -> TopologyDemand | None:
    if part is None:
        return None
    return TopologyDemand(
        hard=(part.mode or "hard") == "hard",
        highest_tier=part.highest_tier_allowed,
        tier_name=part.highest_tier_name or "",
    )


def _node_groups(affinity: QueueAffinity | None) -> Mapping[str, tuple[str, ...]] | None:
    if affinity is None:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for side, terms in (("affinity", affinity.node_group_affinity), ("anti", affinity.node_group_anti_affinity)):
        if terms is not None:
            found[f"{side}.required"] = terms.required_during_scheduling_ignored_during_execution or ()
            found[f"{side}.preferred"] = terms.preferred_during_scheduling_ignored_during_execution or ()
    return found


def group_of(pod: Pod) -> str:
    annotations = pod.metadata.annotations
    return annotations.get(GROUP_NAME, "") if annotations else ""


def queue_of(pod: Pod) -> str:
    annotations = pod.metadata.annotation_map
    return next((annotations[name] for name in QUEUE_NAMES if annotations.get(name)), "")


def hints_of(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Annotations that node functions read. A pod marked preemptable may use any revocable zone."""
    annotations, labels = pod.metadata.annotation_map, pod.metadata.label_map
    if not annotations and not labels:
        return ()
    found = [(name, annotations[name]) for name in _HINTS if name in annotations]
    zone = annotations.get(REVOCABLE_ZONE)
    if zone is None and (annotations.get(PREEMPTABLE) or labels.get(PREEMPTABLE)) == "true":
        zone = "*"
    if zone == "*":
        found.append((REVOCABLE_ZONE, zone))
    return tuple(found)


DIALECT = Dialect(
    name="volcano",
    kinds=(
        Kind(VERSIONS, "PodGroup", "podgroups", PodGroup, read_pod_group),
        Kind(VERSIONS, "Queue", "queues", Queue, read_queue, namespaced=False),
        *TOPOLOGY_KINDS,
        *NUMA_KINDS,
    ),
    kept=("NodeShard",),
    group_of=group_of,
    queue_of=queue_of,
    hints_of=hints_of,
)
