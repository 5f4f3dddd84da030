"""Hollow kubelets: every node of the embedded cluster runs its pods as a real one would, without running anything.

They act on the store in process. A node that is created is registered (figures, conditions, lease); a pod that is bound to it
is admitted by the node's own count (`node_capacity`), runs and ends as its annotations say (`pod_behaviour`), and goes
when it is deleted, after its grace.

Faults on demand: `kubectl annotate node N navarch.io/fail=silent` makes a kubelet fall silent (its node becomes unreachable
when its lease runs out), `=not-ready` makes it say so at once; taking the annotation away brings it back. A node annotated
`navarch.io/hollow: "false"` is left alone.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.event_recorder import Recorder
from navarch.embedded.controllers.work_queue import WorkQueue
from navarch.embedded.kubelets import pod_status as kubelet_status
from navarch.embedded.kubelets.node_capacity import Room, held_by
from navarch.embedded.kubelets.node_status import NOT_READY, Heartbeat, conditions, registered
from navarch.embedded.kubelets.pod_behaviour import PREFIX, KubeletOptions, PodBehaviour, behaviour_of
from navarch.embedded.kubelets.staged_pods import PodStages
from navarch.embedded.storage.feeds import Watch
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import timestamp
from navarch.embedded.timers import Timers, seconds_of
from navarch.model.quantity import QuantityError
from navarch.object_types import Manifest, ObjectKey

log = logging.getLogger(__name__)
FAIL, HOLLOW = PREFIX + "fail", PREFIX + "hollow"
SILENT, NOT_READY_FAULT = "silent", "not-ready"
TERMINAL = ("Succeeded", "Failed")
FIRST_BACKOFF, LONGEST_BACKOFF, FORGIVEN = 10.0, 300.0, 600.0
TERMINATED = 143
"""The exit code of a container that was terminated: 128 + SIGTERM."""


@dataclass(slots=True)
class HollowNode:
    """A kubelet's own memory."""

    name: str
    number: int
    uid: str = ""
    room: Room = field(default_factory=Room)
    bound: dict[str, ObjectKey] = field(default_factory=dict)
    """Pods that are on this node as far as the API says: uid -> where."""
    fault: str = ""
    next_ip: int = 1

    def pod_ip(self) -> str:
        self.next_ip = self.next_ip % 250 + 1
        return f"10.{128 + self.number // 256 % 128}.{self.number % 256}.{self.next_ip + 1}"


class HollowKubelets:
    """All kubelets of a cluster."""

    def __init__(self, operations: Operations, timers: Timers, options: KubeletOptions | None = None) -> None:
        self.options = options or KubeletOptions()
        self.nodes: dict[str, HollowNode] = {}
        self._operations = operations
        self._store = operations.store
        self._pods = operations.kind("pods")
        self._timers = timers
        self._heartbeat = Heartbeat(operations, timers)
        self._recorder = Recorder(operations, "kubelet")
        self._stages = PodStages(operations, timers, self._recorder, self.options.seed)
        self._queue: WorkQueue[ObjectKey] = WorkQueue("kubelet", self._look, timers)
        self._numbers = 0
        self._watches: list[Watch] = []

    def start(self) -> None:
        """Take charge of all nodes and pods there are and will be; call it on the loop."""
        self._heartbeat.start()
        self._stages.start()
        self._watches = [
            self._store.subscribe("nodes", self._on_node),
            self._store.subscribe("pods", self._on_pod),
        ]

    def stop(self) -> None:
        for watch in self._watches:
            watch.close()
        self._stages.stop()
        self._queue.stop()

    @property
    def is_idle(self) -> bool:
        """Whether every pod has been looked at since it changed (timers may still run)."""
        return self._queue.is_idle

    # ------------------------------------------------------------------ events: tables only

    def _on_node(self, event: Event) -> None:
        record = event.record
        if event.type == "DELETED":
            node = self.nodes.get(record.name)
            if node is not None and node.uid == record.uid:
                del self.nodes[record.name]
                self._heartbeat.remove(record.name)
                for uid in node.bound:
                    self._forget_timers(uid)
            return
        self._queue.add(("", record.name))

    def _on_pod(self, event: Event) -> None:
        record = event.record
        name = (record.obj.get("spec") or {}).get("nodeName")
        if not name:
            return
        if event.type == "DELETED":
            self._forget_timers(record.uid)
            home = self.nodes.get(name)
            if home is not None:
                home.bound.pop(record.uid, None)
                home.room.release(record.uid)
            return
        node = self._node(name)
        node.bound[record.uid] = (record.namespace, record.name)
        self._queue.add((record.namespace, record.name))

    def _node(self, name: str) -> HollowNode:
        found = self.nodes.get(name)
        if found is None:
            found = self.nodes[name] = HollowNode(name, self._numbers)
            self._numbers += 1
        return found

    def _forget_timers(self, uid: str) -> None:
        for step in ("start", "run", "stop", "deadline"):
            self._timers.cancel((step, uid))
        self._stages.forget(uid)

    # ------------------------------------------------------------------ work

    def _look(self, key: ObjectKey) -> None:
        namespace, name = key
        if namespace:
            record = self._store.find("pods", namespace, name)
            if record is not None:
                self._look_at_pod(record)
            return
        record = self._store.find("nodes", "", name)
        if record is not None:
            self._look_at_node(record)

    def _look_at_node(self, record: Record) -> None:
        obj = record.obj
        annotations = obj["metadata"].get("annotations") or {}
        node = self._node(record.name)
        if annotations.get(HOLLOW) == "false":
            self._heartbeat.remove(record.name)
            node.uid, node.fault = "", "not hollow"
            return
        fault = annotations.get(FAIL, "")
        came_up = node.uid != record.uid or (node.fault and not fault)
        node.uid, node.fault = record.uid, fault
        if fault:
            self._fail(record, node)
            return
        if came_up or not _is_ready(obj):
            record = self._register(record, node)
        self._heartbeat.add(record)
        try:
            node.room.resize(record.obj["status"].get("allocatable") or {})
        except QuantityError as error:
            log.warning("node %s: status.allocatable: %s", record.name, error)
        if came_up:
            for key in node.bound.values():
                self._queue.add(key)

    def _register(self, record: Record, node: HollowNode) -> Record:
        now = timestamp(self._store.clock())

        def change(obj: Manifest) -> Manifest:
            labels = obj["metadata"].setdefault("labels", {})
            labels.setdefault("kubernetes.io/hostname", record.name)
            obj["status"] = registered(obj, node.number, now)
            return obj

        return self._store.modify("nodes", "", record.name, change)

    def _fail(self, record: Record, node: HollowNode) -> None:
        self._heartbeat.remove(record.name)
        for uid in node.bound:
            self._forget_timers(uid)
        if node.fault != NOT_READY_FAULT:
            if node.fault != SILENT:
                log.warning("node %s: %s: found %r, taken as %r", record.name, FAIL, node.fault, SILENT)
            return
        now = timestamp(self._store.clock())
        if _is_ready(record.obj):

            def change(obj: Manifest) -> Manifest:
                obj["status"]["conditions"] = conditions(obj["status"], NOT_READY, now)
                return obj

            self._store.modify("nodes", "", record.name, change)

    def _look_at_pod(self, record: Record) -> None:
        pod = record.obj
        node = self.nodes.get((pod.get("spec") or {}).get("nodeName") or "")
        if node is None or not node.uid or node.fault:
            return
        uid, phase = record.uid, (pod.get("status") or {}).get("phase")
        if self._stages and (uid in node.room.pods or phase in TERMINAL) and self._staged(record, node):
            if phase in TERMINAL:
                node.room.release(uid)
        elif pod["metadata"].get("deletionTimestamp"):
            self._stop(record, node)
        elif phase in TERMINAL:
            node.room.release(uid)
            self._forget_timers(uid)
        elif uid not in node.room.pods:
            if phase == "Running":  # it ran before this process did
                node.room.hold(uid, held_by(pod))
                self._run_on(record)
            else:
                self._admit(record, node)
        elif phase == "Running" and not self._timers.has(("run", uid)):
            self._run_on(record)
        elif phase != "Running" and not self._timers.has(("start", uid)):
            self._admitted(record, node)

    def _admit(self, record: Record, node: HollowNode) -> None:
        home = self._store.find("nodes", "", node.name)
        if home is None:
            return
        refusal = node.room.admit(record.uid, record.obj, home.obj)
        if refusal is None:
            if not self._staged(record, node):
                self._admitted(record, node)
            return
        now = timestamp(self._store.clock())
        refused = kubelet_status.refused(record.obj, now, refusal.reason, refusal.message)
        self._recorder.warning(record, refusal.reason, refusal.message, node.name)
        self._write(record, refused)

    def _staged(self, record: Record, node: HollowNode) -> bool:
        """Whether a user's Stage drives this pod."""
        if not self._stages:
            return False
        if not self._stages.follow(record, _address(self._store.find("nodes", "", node.name)), node.pod_ip()):
            return False
        for step in ("start", "run", "deadline"):
            self._timers.cancel((step, record.uid))
        return True

    def _admitted(self, record: Record, node: HollowNode) -> None:
        behaviour = self._behaviour(record)
        for mistake in behaviour.mistakes:
            self._recorder.warning(record, "InvalidAnnotation", mistake, node.name)
        if behaviour.start_after <= 0:
            self._start(record.namespace, record.name, record.uid)
            return
        now = timestamp(self._store.clock())
        home = _address(self._store.find("nodes", "", node.name))
        self._timers.after(
            ("start", record.uid), behaviour.start_after, lambda: self._start(record.namespace, record.name, record.uid)
        )
        self._write(record, kubelet_status.starting(record.obj, now, home))

    def _start(self, namespace: str, name: str, uid: str) -> None:
        record, node = self._current(namespace, name, uid)
        if record is None or node is None:
            return
        now = timestamp(self._store.clock())
        home = _address(self._store.find("nodes", "", node.name))
        ip = home if record.obj["spec"].get("hostNetwork") else node.pod_ip()
        record = self._write(record, kubelet_status.running(record.obj, now, home, ip))
        if self.options.events:
            self._recorder.normal(record, "Started", "Started containers", node.name)
        self._run_on(record, 0.0)

    def _run_on(self, record: Record, elapsed: float | None = None) -> None:
        """Set the end of a pod that runs, counted from when its containers started."""
        behaviour = self._behaviour(record)
        key = (record.namespace, record.name, record.uid)
        deadline = record.obj["spec"].get("activeDeadlineSeconds")
        if behaviour.run_for is None and deadline is None:
            return
        if elapsed is None:
            elapsed = self._elapsed(record.obj)
        if behaviour.run_for is not None:
            self._timers.after(("run", record.uid), behaviour.run_for - elapsed, lambda: self._end(*key, behaviour.exit_code))
        if deadline is not None and not self._timers.has(("deadline", record.uid)):
            self._timers.after(("deadline", record.uid), deadline - elapsed, lambda: self._overdue(*key))

    def _elapsed(self, pod: Manifest) -> float:
        """The cluster's seconds since the containers' last start."""
        started = [
            ((each.get("state") or {}).get("running") or {}).get("startedAt")
            for each in (pod.get("status") or {}).get("containerStatuses") or ()
        ]
        moments = [each for each in started if each]
        if not moments:
            return 0.0
        return max(0.0, self._store.clock() - seconds_of(max(moments))) * self._timers.speed

    def _end(self, namespace: str, name: str, uid: str, exit_code: int) -> None:
        record, node = self._current(namespace, name, uid)
        if record is None or node is None:
            return
        now = timestamp(self._store.clock())
        policy = record.obj["spec"].get("restartPolicy") or "Always"
        if policy == "Never" or (policy == "OnFailure" and exit_code == 0):
            self._write(record, kubelet_status.finished(record.obj, now, exit_code))
            return
        restarts = kubelet_status.restarts_of(record.obj)
        if restarts == 0 or self._elapsed(record.obj) >= FORGIVEN:
            self._restart(namespace, name, uid, exit_code)
            return
        wait = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(restarts - 1, 10))
        self._timers.after(("run", uid), wait, lambda: self._restart(namespace, name, uid, exit_code))
        self._write(record, kubelet_status.crashed(record.obj, now, exit_code, wait))

    def _restart(self, namespace: str, name: str, uid: str, exit_code: int) -> None:
        record, _ = self._current(namespace, name, uid)
        if record is not None:
            now = timestamp(self._store.clock())
            self._run_on(self._write(record, kubelet_status.restarted(record.obj, now, exit_code)), 0.0)

    def _overdue(self, namespace: str, name: str, uid: str) -> None:
        record, _ = self._current(namespace, name, uid)
        if record is not None:
            message = "Pod was active on the node longer than the specified deadline"
            now = timestamp(self._store.clock())
            self._write(record, kubelet_status.finished(record.obj, now, TERMINATED, "DeadlineExceeded", message))

    def _stop(self, record: Record, node: HollowNode) -> None:
        """A deleted pod gets its grace, or as much of it as it needs."""
        for step in ("start", "run", "deadline"):
            self._timers.cancel((step, record.uid))
        grace = record.obj["metadata"].get("deletionGracePeriodSeconds") or 0
        phase = (record.obj.get("status") or {}).get("phase")
        wait = 0.0 if phase in TERMINAL or phase == "Pending" else min(float(grace), self._behaviour(record).stop_after)
        if wait <= 0:
            self._gone(record.namespace, record.name, record.uid)
        elif not self._timers.has(("stop", record.uid)):
            if self.options.events:
                self._recorder.normal(record, "Killing", "Stopping containers", node.name)
            key = (record.namespace, record.name, record.uid)
            self._timers.after(("stop", record.uid), wait, lambda: self._gone(*key))

    def _gone(self, namespace: str, name: str, uid: str) -> None:
        record, node = self._current(namespace, name, uid)
        if record is None or node is None:
            return
        status = record.obj.get("status") or {}
        if record.obj["metadata"].get("finalizers") and status.get("phase") not in TERMINAL:
            # A finalizer waits to count the pod: write how it ended.
            record = self._write(record, kubelet_status.finished(record.obj, timestamp(self._store.clock()), TERMINATED))
        if record.obj["metadata"].get("deletionGracePeriodSeconds") != 0 or not record.obj["metadata"].get("finalizers"):
            self._operations.delete(self._pods, namespace, name, DeleteOptions(grace=0, uid=uid))
        node.room.release(uid)

    # ------------------------------------------------------------------ small things

    def _current(self, namespace: str, name: str, uid: str) -> tuple[Record | None, HollowNode | None]:
        """The pod and its node, if both still are what they were when a timer was set."""
        record = self._store.find("pods", namespace, name)
        if record is None or record.uid != uid:
            return None, None
        node = self.nodes.get((record.obj.get("spec") or {}).get("nodeName") or "")
        if node is None or node.fault:
            return None, None
        return record, node

    def _behaviour(self, record: Record) -> PodBehaviour:
        return behaviour_of(record.obj, self.options, kubelet_status.restarts_of(record.obj))

    def _write(self, record: Record, status: Manifest) -> Record:
        def change(pod: Manifest) -> Manifest:
            pod["status"] = status
            return pod

        return self._store.modify("pods", record.namespace, record.name, change)


def _is_ready(node: Manifest) -> bool:
    return any(x["type"] == "Ready" and x["status"] == "True" for x in (node.get("status") or {}).get("conditions") or ())


def _address(node: Record | None) -> str:
    addresses = ((node.obj.get("status") or {}).get("addresses") or ()) if node is not None else ()
    return next((str(each["address"]) for each in addresses if each.get("type") == "InternalIP"), "127.0.0.1")
