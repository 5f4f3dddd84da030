"""What a kubelet says of its node: figures and conditions when it registers, and the Lease by which it lives.

`heartbeat` renews every node's lease in turn (ten seconds each, spread evenly, so that five thousand nodes are five hundred small
writes a second and no burst), and repeats the status every five minutes, as kubelets do.
"""

from __future__ import annotations

from navarch.embedded.api.operations import Operations
from navarch.embedded.node_sets import NodeSet, allocatable_of
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import micro_timestamp, timestamp
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest

LEASES, LEASE_NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
LEASE_SECONDS = 40
RENEW_SECONDS = 10
STATUS_SECONDS = 300
READY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
NOT_READY = (*READY[:3], ("Ready", "False", "KubeletNotReady", "the node was told to fail"))
NODE_INFO = {
    "architecture": "amd64",
    "bootID": "00000000-0000-4000-8000-000000000000",
    "containerRuntimeVersion": "hollow://1.0.0",
    "kernelVersion": "6.8.0-hollow",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.36.0-navarch",
    "operatingSystem": "linux",
    "osImage": "Hollow Linux",
}
_USUAL = next(NodeSet(count=1).manifests())["status"]["capacity"]
_FILLED = ("cpu", "ephemeral-storage", "memory", "pods")


def address(number: int) -> str:
    """The internal IP of the n-th node."""
    return f"10.{number // 65025 % 100}.{number // 255 % 255}.{number % 255 + 1}"


def registered(node: Manifest, number: int, now: str) -> Manifest:
    """The status of a node whose kubelet has just started. Values that the node declares are kept; the rest is filled in."""
    status = dict(node.get("status") or {})
    capacity = dict(status.get("capacity") or {})
    if not status.get("allocatable") or not capacity:
        capacity = {**{name: _USUAL[name] for name in _FILLED}, **(status.get("allocatable") or {}), **capacity}
        status["allocatable"] = {**allocatable_of(capacity), **(status.get("allocatable") or {})}
    status["capacity"] = capacity
    name = node["metadata"]["name"]
    if not status.get("addresses"):
        status["addresses"] = [{"type": "InternalIP", "address": address(number)}, {"type": "Hostname", "address": name}]
    status["nodeInfo"] = {
        **NODE_INFO,
        "machineID": node["metadata"].get("uid", "").replace("-", ""),
        "systemUUID": node["metadata"].get("uid", ""),
        **{key: value for key, value in (status.get("nodeInfo") or {}).items() if value},
    }
    status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
    status["conditions"] = conditions(status, READY, now)
    return status


def conditions(status: Manifest, wanted: tuple[tuple[str, str, str, str], ...], now: str) -> list[Manifest]:
    """A node's conditions with a fresh heartbeat. Conditions of other authors are kept."""
    before: dict[str, Manifest] = {each["type"]: each for each in status.get("conditions") or ()}
    found = []
    for name, state, reason, message in wanted:
        old = before.pop(name, {})
        since = old.get("lastTransitionTime") if old.get("status") == state else None
        found.append(
            {
                "type": name,
                "status": state,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since or now,
            }
        )
    return [*before.values(), *found]


class Heartbeat:
    """Renews leases of the nodes it is given, until they are taken away."""

    def __init__(self, operations: Operations, timers: Timers) -> None:
        self._operations = operations
        self._store = operations.store
        self._timers = timers
        self._slots: list[dict[str, None]] = [{} for _ in range(RENEW_SECONDS)]
        self._slot_of: dict[str, int] = {}
        self._turn = 0

    def start(self) -> None:
        self._timers.after_real("heartbeat", 1.0, self._beat)

    def add(self, node: Record) -> None:
        """Begin to renew this node's lease; the first time now."""
        if node.name in self._slot_of:
            return
        slot = min(range(RENEW_SECONDS), key=lambda each: (len(self._slots[each]), each))
        self._slots[slot][node.name] = None
        self._slot_of[node.name] = slot
        self._renew(node.name)

    def remove(self, name: str) -> None:
        slot = self._slot_of.pop(name, None)
        if slot is not None:
            del self._slots[slot][name]

    def _beat(self) -> None:
        self._timers.after_real("heartbeat", 1.0, self._beat)
        self._turn += 1
        for name in list(self._slots[self._turn % RENEW_SECONDS]):
            self._renew(name)
            if self._turn // RENEW_SECONDS % (STATUS_SECONDS // RENEW_SECONDS) == STATUS_SECONDS // RENEW_SECONDS - 1:
                self._repeat(name)

    def _renew(self, name: str) -> None:
        now = micro_timestamp(self._store.clock())
        if self._store.find(LEASES, LEASE_NAMESPACE, name) is None:
            node = self._store.find("nodes", "", name)
            if node is not None:
                self._operations.create(self._operations.kind(LEASES), LEASE_NAMESPACE, _lease(node, now))
            return

        def renewed(lease: Manifest) -> Manifest:
            lease.setdefault("spec", {}).update(renewTime=now, holderIdentity=name)
            return lease

        self._store.modify(LEASES, LEASE_NAMESPACE, name, renewed)

    def _repeat(self, name: str) -> None:
        node = self._store.find("nodes", "", name)
        if node is None:
            return
        now = timestamp(self._store.clock())

        def heard(obj: Manifest) -> Manifest:
            for each in (obj.get("status") or {}).get("conditions") or ():
                each["lastHeartbeatTime"] = now
            return obj

        self._store.modify("nodes", "", name, heard)


def _lease(node: Record, now: str) -> Manifest:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
    return {
        "metadata": {"name": node.name, "ownerReferences": [owner]},
        "spec": {"holderIdentity": node.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
    }
