"""Nodes, and the core objects that every dialect uses: priority classes, disruption budgets, quotas, namespaces."""

from __future__ import annotations

from navarch.apis.core.amounts import amounts
from navarch.apis.core.disruption_budgets import BudgetPart, BudgetStatus
from navarch.apis.core.objects import Int32, Int64, KubeObject, Part, ResourceList
from navarch.apis.core.selection import label_selector
from navarch.apis.dialect import Kind, Settings
from navarch.apis.errors import ObjectError, shown
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.label_syntax import parse_count
from navarch.model.spec import (
    DisruptionBudgetSpec,
    NamespaceSpec,
    NodeSpec,
    PriorityClassSpec,
    QuotaSpec,
    Requests,
    Taint,
)

OVERSUBSCRIPTION = (("cpu", "volcano.sh/oversubscription-cpu"), ("memory", "volcano.sh/oversubscription-memory"))

MOST_OVERSUBSCRIBED = 1 << 56
"""The largest amount that a node may add by annotation; sums with what it has fit into 64 bits."""
MOST_DEVICES = 4096
"""The most GPUs that a node may report. Each GPU has a column, and no machine has so many."""


class TaintPart(Part, frozen=True):
    key: str = ""
    value: str | None = None
    effect: str = ""


class NodePart(Part, frozen=True):
    unschedulable: bool | None = None
    taints: tuple[TaintPart, ...] | None = None


class NodeCondition(Part, frozen=True):
    type: str = ""
    status: str = ""


class ContainerImage(Part, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: Int64 | None = None


class NodeStatus(Part, frozen=True):
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(KubeObject, frozen=True):
    spec: NodePart = NodePart()
    status: NodeStatus = NodeStatus()


class PriorityClass(KubeObject, frozen=True):
    value: Int32 = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


class PodDisruptionBudget(KubeObject, frozen=True):
    spec: BudgetPart = BudgetPart()
    status: BudgetStatus | None = None


class QuotaPart(Part, frozen=True):
    hard: ResourceList | None = None


class QuotaStatus(Part, frozen=True):
    hard: ResourceList | None = None
    used: ResourceList | None = None


class ResourceQuota(KubeObject, frozen=True):
    spec: QuotaPart = QuotaPart()
    status: QuotaStatus = QuotaStatus()


class Namespace(KubeObject, frozen=True):
    pass


def read_node(node: Node, settings: Settings) -> NodeSpec:
    """Allocatable is the capacity if a node reports no allocatable. Oversubscription that Volcano's agent reports is added."""
    meta, status = node.metadata, node.status
    name = meta.name
    capacity = amounts(status.capacity, "Node", name, "status.capacity")
    allocatable = capacity if status.allocatable is None else amounts(status.allocatable, "Node", name, "status.allocatable")
    for resource, amount in allocatable:
        if resource in GPU_RESOURCES and amount > MOST_DEVICES * 1000:
            found = (status.allocatable or status.capacity or {})[resource]
            raise ObjectError("Node", name, f"status.allocatable[{resource}]", repr(found), f"at most {MOST_DEVICES} devices")
    extra = _oversubscribed(node)
    if extra:
        capacity, allocatable = _sum(capacity, extra), _sum(allocatable, extra)
    conditions = tuple((each.type, each.status) for each in status.conditions or ())
    return NodeSpec(
        name=name,
        uid=meta.uid or name,
        allocatable=allocatable,
        capacity=capacity,
        labels=meta.label_map,
        annotations=meta.annotation_map,
        taints=tuple(Taint(taint.key, taint.value or "", taint.effect) for taint in node.spec.taints or ()),
        unschedulable=bool(node.spec.unschedulable),
        ready=dict(conditions).get("Ready", "True") == "True",
        conditions=conditions,
        images=tuple((image.names or (), image.size_bytes or 0) for image in status.images or ()),
        declared_features=status.declared_features or (),
        created=meta.created,
    )


def read_priority_class(found: PriorityClass, settings: Settings) -> PriorityClassSpec:
    return PriorityClassSpec(found.metadata.name, found.value, bool(found.global_default), found.preemption_policy or "")


def read_budget(budget: PodDisruptionBudget, settings: Settings) -> DisruptionBudgetSpec:
    """The allowed disruptions come from the status. A minimum given as a whole number is kept for the jobs of kube-batch that a
    budget defines."""
    meta, least, status = budget.metadata, budget.spec.min_available, budget.status or BudgetStatus()
    if isinstance(least, str):
        least = parse_count(least)
    return DisruptionBudgetSpec(
        namespace=meta.namespace or "default",
        name=meta.name,
        selector=label_selector(budget.spec.selector),
        allowed=status.disruptions_allowed,
        disrupted_pods=frozenset(status.disrupted_pods or ()),
        min_available=least,
        owner=meta.controller,
    )


def read_quota(quota: ResourceQuota, settings: Settings) -> QuotaSpec:
    """Limits and use of the resources that pods request. The API server enforces the counts of objects."""
    meta = quota.metadata
    namespace = meta.namespace or "default"
    name = f"{namespace}/{meta.name}"
    hard = quota.status.hard if quota.status.hard is not None else quota.spec.hard
    return QuotaSpec(
        namespace=namespace,
        name=meta.name,
        hard=amounts(_requested(hard), "ResourceQuota", name, "spec.hard"),
        used=amounts(_requested(quota.status.used), "ResourceQuota", name, "status.used"),
    )


def read_namespace(namespace: Namespace, settings: Settings) -> NamespaceSpec:
    return NamespaceSpec(namespace.metadata.name, namespace.metadata.label_map, namespace.metadata.annotation_map)


def _requested(resources: ResourceList | None) -> ResourceList:
    """Quotas name requests with a prefix: `requests.cpu` and `requests.nvidia.com/gpu` are limits like plain `cpu`."""
    found: ResourceList = {}
    for name, quantity in (resources or {}).items():
        if not name.startswith("count/"):
            found[name.removeprefix("requests.")] = quantity
    return found


def _oversubscribed(node: Node) -> dict[str, int]:
    """Thousandths of a core and bytes, as plain numbers in annotations."""
    extra = {}
    for resource, annotation in OVERSUBSCRIPTION:
        text = node.metadata.annotation_map.get(annotation)
        if text:
            try:
                extra[resource] = int(float(text))
            except (OverflowError, ValueError):
                extra[resource] = MOST_OVERSUBSCRIBED + 1
            if abs(extra[resource]) > MOST_OVERSUBSCRIBED:
                path = f"metadata.annotations[{annotation}]"
                raise ObjectError("Node", node.metadata.name, path, shown(text), "a plain number")
    return extra


def _sum(requests: Requests, extra: dict[str, int]) -> Requests:
    total = dict(requests)
    for name, amount in extra.items():
        total[name] = total.get(name, 0) + amount
    return tuple(sorted(total.items()))


KINDS = (
    Kind(("v1",), "Node", "nodes", Node, read_node, namespaced=False),
    Kind(("v1",), "Namespace", "namespaces", Namespace, read_namespace, namespaced=False),
    Kind(("v1",), "ResourceQuota", "resourcequotas", ResourceQuota, read_quota),
    Kind(
        ("scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1"),
        "PriorityClass",
        "priorityclasses",
        PriorityClass,
        read_priority_class,
        namespaced=False,
    ),
    Kind(
        ("policy/v1", "policy/v1beta1"),
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        PodDisruptionBudget,
        read_budget,
    ),
)
