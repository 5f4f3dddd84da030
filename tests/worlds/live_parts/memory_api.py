"""An API server in memory, as far as a scheduler sees it: objects with versions, watches that lag, and bindings.

Each object has its own queue of versions that the watch has not shown yet. A test delivers them when it likes: in order for one
object, in any order between objects, and with versions left out, as informers do after a relist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from navarch.apis.core.nodes import Node, read_node
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.volcano.podgroups import PodGroup, read_pod_group
from navarch.live.core import LiveCore
from navarch.model.timestamps import rfc3339

EPOCH = 1_700_000_000.0
Key = tuple[str, str]
"""(kind, name)."""


class ApiPod(Struct, frozen=True):
    name: str
    uid: str
    cpu: int
    group: str
    created: float
    node: str = ""
    bound_at: float = 0.0
    phase: str = "Pending"

    @property
    def holds(self) -> bool:
        """Whether the pod occupies its node."""
        return bool(self.node) and self.phase in ("Pending", "Running")


class ApiGroup(Struct, frozen=True):
    name: str
    min_member: int


class ApiNode(Struct, frozen=True):
    name: str
    cpu: int


Object = ApiPod | ApiGroup | ApiNode


class MemoryApi:
    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._serial = 0
        self.nodes: dict[str, ApiNode] = {}
        self.groups: dict[str, ApiGroup] = {}
        self.pods: dict[str, ApiPod] = {}
        self.unseen: dict[Key, list[Object | None]] = {}
        """Versions that the watch has not shown, oldest first; None: the object is deleted."""
        self._shown: dict[Key, Object] = {}

    # writes by users, controllers and kubelets

    def add_node(self, name: str, cpu: int) -> None:
        self.nodes[name] = ApiNode(name, cpu)
        self._changed(("Node", name), self.nodes[name])

    def add_group(self, name: str, min_member: int) -> None:
        self.groups[name] = ApiGroup(name, min_member)
        self._changed(("PodGroup", name), self.groups[name])

    def add_pod(self, name: str, cpu: int, group: str = "") -> None:
        self._serial += 1
        self._put(ApiPod(name, f"{name}-{self._serial}", cpu, group, self._clock()))

    def delete_pod(self, name: str) -> None:
        if self.pods.pop(name, None) is not None:
            self._changed(("Pod", name), None)

    def set_phase(self, name: str, phase: str) -> None:
        self._put(replace(self.pods[name], phase=phase))

    def _put(self, pod: ApiPod) -> None:
        self.pods[pod.name] = pod
        self._changed(("Pod", pod.name), pod)

    def _changed(self, key: Key, version: Object | None) -> None:
        self.unseen.setdefault(key, []).append(version)

    # bindings

    def bind(self, name: str, uid: str, node: str) -> str:
        """Returns "ok", or why the API server refuses: "missing" or "conflict"."""
        pod = self.pods.get(name)
        if pod is None:
            return "missing"
        if pod.uid != uid or pod.node:
            return "conflict"
        self._put(replace(pod, node=node, bound_at=self._clock()))
        return "ok"

    def used(self, node: str) -> int:
        return sum(pod.cpu for pod in self.pods.values() if pod.node == node and pod.holds)

    def get(self, name: str) -> Pod | None:
        """The pod as a GET shows it: the newest version."""
        pod = self.pods.get(name)
        return _pod(pod) if pod is not None else None

    # watches

    def deliver(self, core: LiveCore, key: Key, *, latest: bool = False) -> None:
        """Show the next version of the object to the core; `latest`: the newest, without those between."""
        versions = self.unseen[key]
        version = versions[-1] if latest else versions[0]
        del versions[: len(versions) if latest else 1]
        if not versions:
            del self.unseen[key]
        self._show(core, key, version)

    def deliver_all(self, core: LiveCore) -> None:
        for key in sorted(self.unseen):
            while key in self.unseen:
                self.deliver(core, key)

    def list_all(self, core: LiveCore) -> None:
        """What informers show to a scheduler that has just started."""
        self.unseen.clear()
        self._shown.clear()
        listed: tuple[tuple[str, Mapping[str, Object]], ...] = (("Node", self.nodes), ("PodGroup", self.groups), ("Pod", self.pods))
        for kind, objects in listed:
            for name, version in sorted(objects.items()):
                self._show(core, (kind, name), version)

    def _show(self, core: LiveCore, key: Key, version: Object | None) -> None:
        before = self._shown.pop(key, None)
        if isinstance(before, ApiPod) and (version is None or (isinstance(version, ApiPod) and version.uid != before.uid)):
            core.cache.remove_pod(before.uid)
        if version is None:
            return
        self._shown[key] = version
        match version:
            case ApiPod():
                core.cache.put_pod(_pod(version))
            case ApiGroup():
                core.cache.put(read_pod_group(_group(version), self._settings))
            case ApiNode():
                core.cache.put(read_node(_node(version), self._settings))


def _pod(pod: ApiPod) -> Pod:
    metadata: dict[str, Any] = {"name": pod.name, "namespace": "ns", "uid": pod.uid, "creationTimestamp": _moment(pod.created)}
    if pod.group:
        metadata["annotations"] = {"scheduling.k8s.io/group-name": pod.group}
    container = {"name": "c", "resources": {"requests": {"cpu": str(pod.cpu)}}}
    spec: dict[str, Any] = {"schedulerName": "navarch", "containers": [container], "nodeName": pod.node}
    status: dict[str, Any] = {"phase": pod.phase}
    if pod.node:
        moment = _moment(pod.bound_at)
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}]
    return from_manifest({"metadata": metadata, "spec": spec, "status": status}, Pod)


def _group(group: ApiGroup) -> PodGroup:
    metadata = {"name": group.name, "namespace": "ns", "uid": group.name}
    manifest = {"metadata": metadata, "spec": {"minMember": group.min_member, "queue": "default"}}
    return from_manifest(manifest, PodGroup)


def _node(node: ApiNode) -> Node:
    manifest = {"metadata": {"name": node.name}, "status": {"allocatable": {"cpu": str(node.cpu), "pods": "20"}}}
    return from_manifest(manifest, Node)


def _moment(now: float) -> str:
    return rfc3339(EPOCH + now)
