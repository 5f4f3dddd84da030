"""What a hollow node has room for, by the kubelet's own count. A pod that does not fit is refused, whichever scheduler placed it.

The refusal makes a scheduler's mistake visible: the pod fails with `OutOfcpu`, `OutOfnvidia.com/gpu`, `OutOfpods`, or with the
predicate that it does not satisfy on this node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.core.requests import pod_requests, rounded
from navarch.model.resources import parse_amount
from navarch.model.selectors import first_untolerated, node_selector_matches, read_node_selector, read_taint, read_toleration
from navarch.model.spec import Requests
from navarch.object_types import Manifest

Port = tuple[str, str, int]
"""Protocol, address, port on the host."""
ANY_ADDRESS = "0.0.0.0"


@dataclass(frozen=True)
class Refusal:
    reason: str
    message: str


@dataclass(frozen=True)
class Held:
    """What an admitted pod takes."""

    requests: Requests
    ports: tuple[Port, ...]


@dataclass(slots=True)
class Room:
    """One node's allocatable and what its admitted pods take of it."""

    allocatable: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    pods: dict[str, Held] = field(default_factory=dict)
    ports: dict[Port, int] = field(default_factory=dict)

    def resize(self, quantities: Manifest) -> None:
        self.allocatable = {name: parse_amount(name, quantity) for name, quantity in quantities.items()}

    def admit(self, uid: str, pod: Manifest, node: Manifest) -> Refusal | None:
        """Take a pod in, or say why not."""
        held = held_by(pod)
        refusal = self._lacking(held.requests) or self._taken(held.ports) or _unsuited(pod, node)
        if refusal is None:
            self.hold(uid, held)
        return refusal

    def hold(self, uid: str, held: Held) -> None:
        if uid in self.pods:
            return
        self.pods[uid] = held
        for name, amount in held.requests:
            self.used[name] = self.used.get(name, 0) + amount
        for port in held.ports:
            self.ports[port] = self.ports.get(port, 0) + 1

    def release(self, uid: str) -> bool:
        held = self.pods.pop(uid, None)
        if held is None:
            return False
        for name, amount in held.requests:
            self.used[name] -= amount
        for port in held.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        return True

    def _lacking(self, requests: Requests) -> Refusal | None:
        limit = self.allocatable.get("pods", 0)
        if len(self.pods) + 1 > limit:
            return _out_of("pods", 1, len(self.pods), limit)
        for name, amount in requests:
            used, limit = self.used.get(name, 0), self.allocatable.get(name, 0)
            if amount > 0 and used + amount > limit:
                return _out_of(name, amount, used, limit)
        return None

    def _taken(self, wanted: Iterable[Port]) -> Refusal | None:
        for protocol, address, port in wanted:
            for other_protocol, other, taken in self.ports:
                same_address = address == other or ANY_ADDRESS in (address, other)
                if taken == port and other_protocol == protocol and same_address:
                    return _predicate("NodePorts")
        return None


def held_by(pod: Manifest) -> Held:
    """The requests of a pod by the scheduler's rules, and its ports on the host."""
    read = from_manifest(pod, Pod)
    ports = tuple(
        (port.get("protocol") or "TCP", port.get("hostIP") or ANY_ADDRESS, port["hostPort"])
        for container in pod["spec"].get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )
    return Held(rounded(pod_requests(read)), ports)


def _out_of(name: str, requested: int, used: int, capacity: int) -> Refusal:
    figures = f"requested: {requested}, used: {used}, capacity: {capacity}"
    return Refusal(f"OutOf{name}", f"Pod was rejected: Node didn't have enough resource: {name}, {figures}")


def _predicate(name: str) -> Refusal:
    return Refusal(name, f"Pod was rejected: Predicate {name} failed")


def _unsuited(pod: Manifest, node: Manifest) -> Refusal | None:
    """Node selector, required node affinity, and taints that would throw the pod out at once."""
    spec = pod["spec"]
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return _predicate("NodeAffinity")
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = read_node_selector(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    if required is not None and not node_selector_matches(required, labels, name):
        return _predicate("NodeAffinity")
    taints = [read_taint(each) for each in (node.get("spec") or {}).get("taints") or () if each.get("effect") == "NoExecute"]
    if taints:
        tolerations = [read_toleration(each) for each in spec.get("tolerations") or ()]
        if first_untolerated(taints, tolerations) is not None:
            return _predicate("TaintToleration")
    return None
