"""A cluster as a plugin sees it: nodes, the pods on them, other objects. Pods may be taken off and put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Object = dict[str, Any]
Port = tuple[str, str, int]


def name_of(thing: Object) -> str:
    return str(thing["metadata"].get("name", ""))


def namespace_of(thing: Object) -> str:
    return str(thing["metadata"].get("namespace") or "")


def labels_of(thing: Object) -> dict[str, str]:
    return thing["metadata"].get("labels") or {}


def annotations_of(thing: Object) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


def key_of(thing: Object) -> str:
    return f"{namespace_of(thing)}/{name_of(thing)}"


def terminating(thing: Object) -> bool:
    return thing["metadata"].get("deletionTimestamp") is not None


def priority_of(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def sidecar(container: Object) -> bool:
    return container.get("restartPolicy") == "Always"


def host_ports(pod: Object) -> set[Port]:
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(c for c in spec.get("initContainers") or () if sidecar(c))]
    return {
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in containers
        for port in container.get("ports") or ()
        if (port.get("hostPort") or 0) > 0
    }


class Cluster:
    def __init__(
        self,
        nodes: Iterable[Object],
        pods: Iterable[Object] = (),
        objects: Iterable[Object] = (),
        nominated: Iterable[Object] = (),
    ) -> None:
        self.nodes = {name_of(node): node for node in sorted(nodes, key=name_of)}
        self.objects = list(objects)
        self.nominated = list(nominated)
        self._pods: dict[str, list[Object]] = {}
        self._ports: dict[str, set[Port]] = {}
        for pod in sorted(pods, key=key_of):
            self.add(pod, pod["spec"]["nodeName"])

    def copy(self) -> Cluster:
        twin = Cluster(self.nodes.values(), (), self.objects, self.nominated)
        twin._pods = {node: list(pods) for node, pods in self._pods.items()}
        twin._ports = {node: set(ports) for node, ports in self._ports.items()}
        return twin

    def add(self, pod: Object, node: str) -> None:
        self._pods.setdefault(node, []).append(pod)
        self._ports.setdefault(node, set()).update(host_ports(pod))

    def remove(self, pod: Object, node: str) -> None:
        self._pods[node].remove(pod)
        # A set, not a count: a port that two pods held is free once one of them goes.
        self._ports[node] -= host_ports(pod)

    def restore_ports(self, node: str, ports: set[Port]) -> None:
        self._ports[node] = ports

    def pods_on(self, node: str) -> list[Object]:
        return self._pods.get(node, [])

    def ports_on(self, node: str) -> set[Port]:
        return self._ports.get(node, set())

    def placed(self) -> Iterator[tuple[Object, Object]]:
        """(pod, node) for every pod whose node exists."""
        for name, node in self.nodes.items():
            for pod in self.pods_on(name):
                yield pod, node

    def all_placed(self) -> Iterator[Object]:
        """Every pod that names a node, known or not."""
        for pods in self._pods.values():
            yield from pods

    def of_kind(self, kind: str) -> list[Object]:
        return [thing for thing in self.objects if thing["kind"] == kind]

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        for thing in self.of_kind(kind):
            if name_of(thing) == name and namespace_of(thing) == namespace:
                return thing
        return None
