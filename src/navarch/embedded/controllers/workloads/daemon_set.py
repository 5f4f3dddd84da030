"""DaemonSet: a pod on every node that its template may run on. The pods are pinned by affinity; the scheduler places them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from navarch.apis.core.daemon_nodes import daemon_pods
from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.workloads.controller import Controller, portion
from navarch.embedded.controllers.workloads.ownership import Child, OwnerIndex
from navarch.embedded.controllers.workloads.revisions import HASH, RevisionsOf
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest


class DaemonSets(Controller):
    resource: ClassVar[str] = "daemonsets.apps"
    kind: ClassVar[str] = "DaemonSet"

    def __init__(self, operations: Operations, timers: Timers, owner_indexes: Mapping[str, OwnerIndex]) -> None:
        super().__init__(operations, timers, owner_indexes)
        self._revisions = RevisionsOf(self)

    def on_node(self, event: Event) -> None:
        """A node came, went, or changed what daemons look at."""
        if event.previous is not None and event.type == "MODIFIED":
            before, after = event.previous.obj, event.record.obj
            if (before["metadata"].get("labels"), before.get("spec")) == (after["metadata"].get("labels"), after.get("spec")):
                return
        for record in self.store.list(self.resource):
            self.queue.add((record.namespace, record.name))

    def sync(self, owner: Record) -> None:
        pods = self.children(owner)
        revision = self._revisions.current(owner)
        wanted = dict(daemon_pods(owner.obj["spec"]["template"], [record.obj for record in self.store.list("nodes")]))
        if not owner.obj["metadata"].get("deletionTimestamp"):
            by_node: dict[str, list[Child]] = {}
            for pod in pods:
                by_node.setdefault(node_of(pod.obj), []).append(pod)
            self._match(owner, by_node, wanted, revision.labels[HASH])
            self._update(owner, by_node, wanted, revision.labels[HASH])
            pods = self.owner_index.of(owner)
        self._report(owner, pods, set(wanted), revision.labels[HASH])
        self._revisions.forget(owner, {revision.name, *(f"{owner.name}-{pod.labels.get(HASH)}" for pod in pods)})

    def _match(self, owner: Record, by_node: dict[str, list[Child]], wanted: Mapping[str, Manifest], digest: str) -> None:
        for node, pods in sorted(by_node.items()):
            ended = [pod for pod in pods if pod.has_ended]
            living = sorted((pod for pod in pods if pod.is_active), key=lambda pod: (not pod.is_ready, pod.name))
            for pod in ended + (living[1:] if node in wanted else living):
                self.remove(pod)
        for node, spec in wanted.items():
            if not any(pod.is_active for pod in by_node.get(node, ())):
                self.create(owner, owner.obj["spec"]["template"], labels={HASH: digest}, spec=spec)

    def _update(self, owner: Record, by_node: dict[str, list[Child]], wanted: Mapping[str, Manifest], digest: str) -> None:
        """Replace pods of older templates, so that no more than `maxUnavailable` nodes are without one that is ready."""
        strategy = owner.obj["spec"].get("updateStrategy") or {}
        if strategy.get("type") != "RollingUpdate":
            return
        most = max(1, portion((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(wanted), round_up=True))
        living = {node: next((p for p in by_node.get(node, ()) if p.is_active), None) for node in sorted(wanted)}
        spare = most - sum(pod is None or not pod.is_ready for pod in living.values())
        for pod in living.values():
            if pod is None or pod.labels.get(HASH) == digest:
                continue
            if not pod.is_ready:
                self.remove(pod)
            elif spare > 0:
                self.remove(pod)
                spare -= 1

    def _report(self, owner: Record, pods: list[Child], wanted: set[str], digest: str) -> None:
        living = [pod for pod in pods if pod.is_active]
        placed = [pod for pod in living if node_of(pod.obj) in wanted]
        ready = sum(pod.is_ready for pod in placed)
        updated = sum(pod.labels.get(HASH) == digest for pod in placed)
        status: Manifest = {
            "currentNumberScheduled": len({node_of(pod.obj) for pod in placed}),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": len(living) - len(placed),
            "numberReady": ready,
            "observedGeneration": owner.obj["metadata"].get("generation", 1),
        }
        figures = {"numberAvailable": ready, "numberUnavailable": len(wanted) - ready, "updatedNumberScheduled": updated}
        self.write_status(owner, {**status, **{name: count for name, count in figures.items() if count > 0}})


def node_of(pod: Manifest) -> str:
    """The node a daemon is on, or is pinned to."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    near = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    for term in (near or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""
