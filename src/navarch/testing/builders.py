"""Builders of Kubernetes objects for tests: `pod("a").gpu(1).in_group("g")` is the manifest that a user would write.

A builder is the manifest itself, a mapping, so it can be used as a decoded manifest: `navarch.plan([node("n"), pod("a")])`.
Each call changes the builder and returns it.

>>> pod("a").cpu("500m").gpu(1).in_group("train")["metadata"]["annotations"]
{'scheduling.k8s.io/group-name': 'train'}
"""

from __future__ import annotations

from typing import Any, TypeVar

Quantity = str | int | float
VOLCANO = "scheduling.volcano.sh/v1beta1"
GROUP_NAME = "scheduling.k8s.io/group-name"
GPU = "nvidia.com/gpu"
B = TypeVar("B", bound="Builder")


class Builder(dict[str, Any]):
    """A manifest that is being built."""

    def __init__(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> None:
        metadata: dict[str, Any] = {"name": name}
        if namespace is not None:
            metadata["namespace"] = namespace
        super().__init__(apiVersion=api_version, kind=kind, metadata=metadata)

    def child(self, *path: str) -> dict[str, Any]:
        """The mapping at this path, created if absent."""
        found: dict[str, Any] = self
        for step in path:
            found = found.setdefault(step, {})
        return found

    def label(self: B, key: str, value: str) -> B:
        self.child("metadata", "labels")[key] = value
        return self

    def annotate(self: B, key: str, value: str) -> B:
        self.child("metadata", "annotations")[key] = value
        return self

    def uid(self: B, uid: str) -> B:
        self["metadata"]["uid"] = uid
        return self

    def created(self: B, when: str) -> B:
        """RFC 3339, such as 2026-01-01T00:00:00Z."""
        self["metadata"]["creationTimestamp"] = when
        return self

    def owned_by(self: B, kind: str, name: str, uid: str = "") -> B:
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid or f"{kind}-{name}", "controller": True}
        self["metadata"].setdefault("ownerReferences", []).append(owner)
        return self


class PodBuilder(Builder):
    """By default pending, with one container without requests."""

    def __init__(self, name: str, namespace: str = "default") -> None:
        super().__init__("v1", "Pod", name, namespace)
        self["spec"] = {"containers": [{"name": "main", "image": "busybox"}]}
        self["status"] = {"phase": "Pending"}

    def request(self, resource: str, amount: Quantity) -> PodBuilder:
        container = self["spec"]["containers"][0]
        container.setdefault("resources", {}).setdefault("requests", {})[resource] = amount
        return self

    def limit(self, resource: str, amount: Quantity) -> PodBuilder:
        container = self["spec"]["containers"][0]
        container.setdefault("resources", {}).setdefault("limits", {})[resource] = amount
        return self

    def cpu(self, amount: Quantity) -> PodBuilder:
        return self.request("cpu", amount)

    def memory(self, amount: Quantity) -> PodBuilder:
        return self.request("memory", amount)

    def gpu(self, count: Quantity) -> PodBuilder:
        return self.request(GPU, count)

    def in_group(self, group: str) -> PodBuilder:
        return self.annotate(GROUP_NAME, group)

    def role(self, role: str) -> PodBuilder:
        return self.annotate("volcano.sh/task-spec", role)

    def priority(self, value: int) -> PodBuilder:
        self["spec"]["priority"] = value
        return self

    def priority_class(self, name: str) -> PodBuilder:
        self["spec"]["priorityClassName"] = name
        return self

    def scheduler(self, name: str) -> PodBuilder:
        self["spec"]["schedulerName"] = name
        return self

    def on(self, node: str) -> PodBuilder:
        """Running on this node."""
        self["spec"]["nodeName"] = node
        self["status"]["phase"] = "Running"
        return self

    def bound_to(self, node: str) -> PodBuilder:
        """On this node, not started yet."""
        self["spec"]["nodeName"] = node
        return self

    def phase(self, phase: str) -> PodBuilder:
        self["status"]["phase"] = phase
        return self

    def deleting(self, when: str = "2026-01-01T00:00:00Z") -> PodBuilder:
        self["metadata"]["deletionTimestamp"] = when
        return self

    def gate(self, name: str) -> PodBuilder:
        self["spec"].setdefault("schedulingGates", []).append({"name": name})
        return self

    def select(self, key: str, value: str) -> PodBuilder:
        self.child("spec", "nodeSelector")[key] = value
        return self

    def tolerate(self, key: str, value: str | None = None, effect: str = "") -> PodBuilder:
        entry = {"key": key, "operator": "Exists" if value is None else "Equal"}
        if value is not None:
            entry["value"] = value
        if effect:
            entry["effect"] = effect
        self["spec"].setdefault("tolerations", []).append(entry)
        return self

    def host_port(self, port: int, protocol: str = "TCP") -> PodBuilder:
        entry = {"containerPort": port, "hostPort": port, "protocol": protocol}
        self["spec"]["containers"][0].setdefault("ports", []).append(entry)
        return self

    def affinity(self, **parts: Any) -> PodBuilder:
        """`nodeAffinity`, `podAffinity`, `podAntiAffinity` as the API has them."""
        self.child("spec", "affinity").update(parts)
        return self

    def spread(self, key: str, selector: dict[str, Any] | None, max_skew: int = 1, hard: bool = True) -> PodBuilder:
        constraint: dict[str, Any] = {
            "maxSkew": max_skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }
        if selector is not None:
            constraint["labelSelector"] = selector
        self["spec"].setdefault("topologySpreadConstraints", []).append(constraint)
        return self

    def preemptable(self, value: bool) -> PodBuilder:
        return self.annotate("volcano.sh/preemptable", "true" if value else "false")


class NodeBuilder(Builder):
    """By default ready, with room for 110 pods."""

    def __init__(self, name: str) -> None:
        super().__init__("v1", "Node", name)
        self.label("kubernetes.io/hostname", name)
        self["spec"] = {}
        self["status"] = {
            "allocatable": {"pods": "110"},
            "capacity": {"pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }

    def has(self, resource: str, amount: Quantity) -> NodeBuilder:
        self["status"]["allocatable"][resource] = amount
        self["status"]["capacity"][resource] = amount
        return self

    def cpu(self, amount: Quantity) -> NodeBuilder:
        return self.has("cpu", amount)

    def memory(self, amount: Quantity) -> NodeBuilder:
        return self.has("memory", amount)

    def gpu(self, count: Quantity) -> NodeBuilder:
        return self.has(GPU, count)

    def pods(self, count: int) -> NodeBuilder:
        return self.has("pods", count)

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> NodeBuilder:
        self["spec"].setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def cordoned(self) -> NodeBuilder:
        self["spec"]["unschedulable"] = True
        return self


class PodGroupBuilder(Builder):
    """Volcano's PodGroup; `api_version` makes it kube-batch's."""

    def __init__(self, name: str, min_member: int = 1, namespace: str = "default", api_version: str = VOLCANO) -> None:
        super().__init__(api_version, "PodGroup", name, namespace)
        self["spec"] = {"minMember": min_member}

    def queue(self, name: str) -> PodGroupBuilder:
        self["spec"]["queue"] = name
        return self

    def priority_class(self, name: str) -> PodGroupBuilder:
        self["spec"]["priorityClassName"] = name
        return self

    def min_resources(self, **amounts: Quantity) -> PodGroupBuilder:
        self["spec"]["minResources"] = dict(amounts)
        return self

    def role(self, role: str, minimum: int) -> PodGroupBuilder:
        self.child("spec", "minTaskMember")[role] = minimum
        return self

    def phase(self, phase: str) -> PodGroupBuilder:
        self.child("status")["phase"] = phase
        return self


class QueueBuilder(Builder):
    """Volcano's Queue, open; `api_version` makes it kube-batch's."""

    def __init__(self, name: str, weight: int = 1, api_version: str = VOLCANO) -> None:
        super().__init__(api_version, "Queue", name)
        self["spec"] = {"weight": weight}
        self["status"] = {"state": "Open"}

    def capability(self, **amounts: Quantity) -> QueueBuilder:
        self["spec"]["capability"] = dict(amounts)
        return self

    def deserved(self, **amounts: Quantity) -> QueueBuilder:
        self["spec"]["deserved"] = dict(amounts)
        return self

    def guarantee(self, **amounts: Quantity) -> QueueBuilder:
        self["spec"]["guarantee"] = {"resource": dict(amounts)}
        return self

    def parent(self, name: str) -> QueueBuilder:
        self["spec"]["parent"] = name
        return self

    def reclaimable(self, value: bool) -> QueueBuilder:
        self["spec"]["reclaimable"] = value
        return self

    def state(self, state: str) -> QueueBuilder:
        self["status"]["state"] = state
        return self


def pod(name: str, namespace: str = "default") -> PodBuilder:
    return PodBuilder(name, namespace)


def node(name: str) -> NodeBuilder:
    return NodeBuilder(name)


def pod_group(name: str, min_member: int = 1, namespace: str = "default", api_version: str = VOLCANO) -> PodGroupBuilder:
    return PodGroupBuilder(name, min_member, namespace, api_version)


def queue(name: str, weight: int = 1, api_version: str = VOLCANO) -> QueueBuilder:
    return QueueBuilder(name, weight, api_version)


def priority_class(name: str, value: int, *, default: bool = False) -> Builder:
    found = Builder("scheduling.k8s.io/v1", "PriorityClass", name)
    found["value"] = value
    if default:
        found["globalDefault"] = True
    return found


def namespace(name: str) -> Builder:
    return Builder("v1", "Namespace", name)


def budget(name: str, selector: dict[str, str], allowed: int, namespace: str = "default") -> Builder:
    """A PodDisruptionBudget under which this many more pods may be disrupted."""
    found = Builder("policy/v1", "PodDisruptionBudget", name, namespace)
    found["spec"] = {"selector": {"matchLabels": selector}}
    found["status"] = {"disruptionsAllowed": allowed}
    return found
