"""The life of nodes that stop reporting, and of the pods on them, as in kube-controller-manager.

A node becomes Unknown if its lease was not renewed for forty seconds. A node that is not ready or unreachable gets a NoExecute
taint. Pods that do not tolerate the taint are deleted, at once or after their toleration ends (five minutes by default). Pods of a
deleted node, and terminating pods on a node that is declared out of service, are removed by force, because no kubelet will do it.
"""

from __future__ import annotations

import asyncio

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.work_queue import WorkQueue
from navarch.embedded.kubelets.node_status import LEASE_NAMESPACE, LEASE_SECONDS, LEASES, conditions
from navarch.embedded.storage.feeds import Watch
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import timestamp
from navarch.embedded.timers import Timers
from navarch.model.selectors import read_taint, read_toleration, tolerates
from navarch.object_types import Manifest, ObjectKey

CHECK_SECONDS = 5.0
ORPHAN_SECONDS = 40.0
"""How long a pod may name a node that does not exist before it is removed."""
PREFIX = "node.kubernetes.io/"
BY_STATE = {"False": PREFIX + "not-ready", "Unknown": PREFIX + "unreachable"}
OUT_OF_SERVICE = PREFIX + "out-of-service"
SILENT = "Kubelet stopped posting node status."
UNKNOWN = tuple((name, "Unknown", "NodeStatusUnknown", SILENT) for name in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready"))


class NodeLifecycle:
    """Follows nodes, their leases and their pods."""

    def __init__(self, operations: Operations, timers: Timers) -> None:
        self._operations = operations
        self._store = operations.store
        self._timers = timers
        self._queue: WorkQueue[ObjectKey] = WorkQueue("node-lifecycle", self._look, timers)
        self._heard: dict[str, float] = {}
        self._pods: dict[str, dict[str, ObjectKey]] = {}
        """node -> uid -> pod."""
        self._checked = 0.0
        self._watches: list[Watch] = []

    def start(self) -> None:
        self._watches = [
            self._store.subscribe(LEASES, self._on_lease),
            self._store.subscribe("nodes", self._on_node),
            self._store.subscribe("pods", self._on_pod),
        ]
        self._checked = asyncio.get_running_loop().time()
        self._timers.after_real("node-lifecycle", CHECK_SECONDS, self._check)

    def stop(self) -> None:
        for watch in self._watches:
            watch.close()
        self._queue.stop()

    # ------------------------------------------------------------------ events

    def _on_lease(self, event: Event) -> None:
        if event.record.namespace == LEASE_NAMESPACE and event.type != "DELETED":
            self._heard[event.record.name] = asyncio.get_running_loop().time()

    def _on_node(self, event: Event) -> None:
        name = event.record.name
        if event.type == "DELETED":
            self._heard.pop(name, None)
        else:
            self._heard.setdefault(name, asyncio.get_running_loop().time())
        self._queue.add(("", name))

    def _on_pod(self, event: Event) -> None:
        record = event.record
        node = (record.obj.get("spec") or {}).get("nodeName")
        if not node:
            return
        if event.type == "DELETED":
            pods = self._pods.get(node, {})
            pods.pop(record.uid, None)
            if not pods:
                self._pods.pop(node, None)
            self._timers.cancel(("taint", record.uid))
            return
        pods = self._pods.setdefault(node, {})
        if record.uid not in pods or record.obj["metadata"].get("deletionTimestamp"):
            pods[record.uid] = (record.namespace, record.name)
            self._queue.add((record.namespace, record.name))

    # ------------------------------------------------------------------ work

    def _check(self) -> None:
        """Look for nodes that were not heard of for too long."""
        self._timers.after_real("node-lifecycle", CHECK_SECONDS, self._check)
        now = asyncio.get_running_loop().time()
        asleep = now - self._checked > 2 * CHECK_SECONDS
        self._checked = now
        if asleep:  # this process itself was stopped, so the nodes did not fail
            self._heard = dict.fromkeys(self._heard, now)
            return
        for name, heard in self._heard.items():
            if now - heard > LEASE_SECONDS:
                self._queue.add(("", name))

    def _look(self, key: ObjectKey) -> None:
        namespace, name = key
        if not namespace:
            self._look_at_node(name)
            return
        pod = self._store.find("pods", namespace, name)
        if pod is not None:
            self._look_at_pod(pod, self._store.find("nodes", "", pod.obj["spec"].get("nodeName") or ""))

    def _look_at_node(self, name: str) -> None:
        node = self._store.find("nodes", "", name)
        if node is not None:
            node = self._silence(node)
            node = self._taint(node)
        for key in list(self._pods.get(name, {}).values()):
            pod = self._store.find("pods", *key)
            if pod is not None:
                self._look_at_pod(pod, node)

    def _silence(self, node: Record) -> Record:
        heard = self._heard.get(node.name, 0.0)
        ready = _ready(node.obj)
        if ready in ("", "Unknown") or asyncio.get_running_loop().time() - heard <= LEASE_SECONDS:
            return node
        now = timestamp(self._store.clock())

        def change(obj: Manifest) -> Manifest:
            beats = {each["type"]: each.get("lastHeartbeatTime") for each in obj["status"].get("conditions") or ()}
            obj["status"]["conditions"] = conditions(obj["status"], UNKNOWN, now)
            for each in obj["status"]["conditions"]:
                each["lastHeartbeatTime"] = beats.get(each["type"]) or now
            return obj

        return self._store.modify("nodes", "", node.name, change)

    def _taint(self, node: Record) -> Record:
        wanted = BY_STATE.get(_ready(node.obj), "")
        taints = (node.obj.get("spec") or {}).get("taints") or []
        held = {each["key"] for each in taints if each["key"] in BY_STATE.values() and each.get("effect") == "NoExecute"}
        if held == ({wanted} if wanted else set()):
            return node
        now = timestamp(self._store.clock())
        kept = [each for each in taints if each["key"] not in held or each.get("effect") != "NoExecute"]
        more = [{"key": wanted, "effect": "NoExecute", "timeAdded": now}] if wanted else []

        def change(obj: Manifest) -> Manifest:
            obj.setdefault("spec", {})["taints"] = kept + more
            if not kept + more:
                del obj["spec"]["taints"]
            return obj

        return self._store.modify("nodes", "", node.name, change)

    def _look_at_pod(self, pod: Record, node: Record | None) -> None:
        if node is None:
            self._orphan(pod)
            return
        self._timers.cancel(("orphan", pod.uid))
        taints = (node.obj.get("spec") or {}).get("taints") or ()
        if pod.obj["metadata"].get("deletionTimestamp"):
            if any(each["key"] == OUT_OF_SERVICE for each in taints) and _ready(node.obj) != "True":
                self._remove(pod)
            return
        wait = tolerated_for(pod.obj, [each for each in taints if each.get("effect") == "NoExecute"])
        if wait is None:
            self._timers.cancel(("taint", pod.uid))
        elif wait <= 0:
            self._evict(pod.namespace, pod.name, pod.uid)
        elif not self._timers.has(("taint", pod.uid)):
            self._timers.after(("taint", pod.uid), wait, lambda: self._evict(pod.namespace, pod.name, pod.uid))

    def _orphan(self, pod: Record) -> None:
        """Its node does not exist; perhaps it is only late."""
        if not self._timers.has(("orphan", pod.uid)):
            self._timers.after_real(("orphan", pod.uid), ORPHAN_SECONDS, lambda: self._still_orphan(pod))

    def _still_orphan(self, pod: Record) -> None:
        current = self._store.find("pods", pod.namespace, pod.name)
        if current is not None and current.uid == pod.uid:
            if self._store.find("nodes", "", current.obj["spec"]["nodeName"]) is None:
                self._remove(current)

    def _remove(self, pod: Record) -> None:
        if (pod.obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            condition = ("DeletionByPodGC", "PodGC: node no longer exists")
            self._store.modify("pods", pod.namespace, pod.name, lambda obj: self._disrupted(obj, *condition, failed=True))
        self._operations.delete(self._operations.kind("pods"), pod.namespace, pod.name, DeleteOptions(grace=0, uid=pod.uid))

    def _evict(self, namespace: str, name: str, uid: str) -> None:
        pod = self._store.find("pods", namespace, name)
        if pod is None or pod.uid != uid or pod.obj["metadata"].get("deletionTimestamp"):
            return
        condition = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        self._store.modify("pods", namespace, name, lambda obj: self._disrupted(obj, *condition))
        self._operations.delete(self._operations.kind("pods"), namespace, name, DeleteOptions(uid=uid))

    def _disrupted(self, pod: Manifest, reason: str, message: str, failed: bool = False) -> Manifest:
        status = pod.setdefault("status", {})
        if failed:
            status["phase"] = "Failed"
        status["conditions"] = [
            *(each for each in status.get("conditions") or () if each["type"] != "DisruptionTarget"),
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": reason,
                "message": message,
                "lastProbeTime": None,
                "lastTransitionTime": timestamp(self._store.clock()),
            },
        ]
        return pod


def tolerated_for(pod: Manifest, taints: list[Manifest]) -> float | None:
    """For how many seconds a pod bears these NoExecute taints: None for ever, 0 not at all."""
    shortest: float | None = None
    for each in taints:
        taint = read_taint(each)
        matching = [t for t in pod["spec"].get("tolerations") or () if tolerates(read_toleration(t), taint)]
        if not matching:
            return 0.0
        for toleration in matching:
            seconds = toleration.get("tolerationSeconds")
            if seconds is not None and (shortest is None or seconds < shortest):
                shortest = max(0.0, float(seconds))
    return shortest


def _ready(node: Manifest) -> str:
    for each in (node.get("status") or {}).get("conditions") or ():
        if each.get("type") == "Ready":
            return str(each.get("status") or "")
    return ""
