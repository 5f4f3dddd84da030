"""StatefulSet: pods by ordinal, each with its own name and claims, started and stopped in order (or all at once)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.workloads.controller import Controller
from navarch.embedded.controllers.workloads.ownership import Child, OwnerIndex
from navarch.embedded.controllers.workloads.revisions import HASH, RevisionsOf
from navarch.embedded.storage.record import Record
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest

POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


class StatefulSets(Controller):
    resource: ClassVar[str] = "statefulsets.apps"
    kind: ClassVar[str] = "StatefulSet"

    def __init__(self, operations: Operations, timers: Timers, owner_indexes: Mapping[str, OwnerIndex]) -> None:
        super().__init__(operations, timers, owner_indexes)
        self._revisions = RevisionsOf(self)

    def sync(self, owner: Record) -> None:
        pods = {ordinal: pod for pod in self.children(owner) if (ordinal := _ordinal(owner, pod)) is not None}
        update = self._revisions.current(owner)
        status = owner.obj.get("status") or {}
        current = status.get("currentRevision") or update.name
        if not owner.obj["metadata"].get("deletionTimestamp"):
            self._move(owner, pods, update.name, current)
            pods = {ordinal: pod for pod in self.owner_index.of(owner) if (ordinal := _ordinal(owner, pod)) is not None}
        self._report(owner, pods, update.name, current)
        self._revisions.forget(owner, {update.name, current})

    def _move(self, owner: Record, pods: dict[int, Child], update: str, current: str) -> None:
        spec = owner.obj["spec"]
        start = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + spec.get("replicas", 1))
        in_order = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is not None and pod.has_ended:
                self.remove(pod)  # it comes back under the same name
                if self.store.find("pods", owner.namespace, pod.name) is not None:
                    if in_order:
                        return
                    continue
                pod = None
            if pod is None:
                self._create(owner, ordinal, self._revision_for(owner, ordinal, update, current))
                if in_order:
                    return
            elif in_order and (not pod.is_ready or not pod.is_active):
                return
        for ordinal in sorted((each for each in pods if each not in wanted), reverse=True):
            self.remove(pods[ordinal])
            if in_order:
                return
        self._update(owner, pods, wanted, update)

    def _revision_for(self, owner: Record, ordinal: int, update: str, current: str) -> str:
        """Ordinals below the partition keep the old template."""
        strategy = owner.obj["spec"].get("updateStrategy") or {}
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        start = (owner.obj["spec"].get("ordinals") or {}).get("start", 0)
        if strategy.get("type") == "RollingUpdate" and ordinal < start + partition:
            return current
        return update

    def _update(self, owner: Record, pods: dict[int, Child], wanted: range, update: str) -> None:
        """Replace pods of older templates, the highest ordinal first, one at a time."""
        strategy = owner.obj["spec"].get("updateStrategy") or {}
        if strategy.get("type") != "RollingUpdate":
            return
        partition = wanted.start + (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for ordinal in sorted((each for each in wanted if each >= partition and each in pods), reverse=True):
            pod = pods[ordinal]
            if pod.labels.get(HASH) != update:
                self.remove(pod)
                return
            if not pod.is_ready:
                return

    def _create(self, owner: Record, ordinal: int, revision: str) -> None:
        template = self._revisions.template(owner, revision)
        name = f"{owner.name}-{ordinal}"
        spec = dict(template.get("spec") or {})
        spec["hostname"] = name
        if owner.obj["spec"].get("serviceName"):
            spec["subdomain"] = owner.obj["spec"]["serviceName"]
        mounted = {}
        for claim in owner.obj["spec"].get("volumeClaimTemplates") or ():
            volume = claim["metadata"]["name"]
            mounted[volume] = f"{volume}-{name}"
            self._claim(owner, claim, mounted[volume])
        if mounted:
            kept = [each for each in spec.get("volumes") or () if each["name"] not in mounted]
            spec["volumes"] = kept + [
                {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in mounted.items()
            ]
        labels = {POD_NAME: name, POD_INDEX: str(ordinal), HASH: revision}
        self.create(owner, template, name=name, labels=labels, spec=spec)

    def _claim(self, owner: Record, template: Manifest, name: str) -> None:
        """A claim outlives its pod: it is made once and found again."""
        if self.store.find("persistentvolumeclaims", owner.namespace, name) is None:
            labels = {**(owner.obj["spec"]["selector"].get("matchLabels") or {}), **(template["metadata"].get("labels") or {})}
            body = {"metadata": {**template["metadata"], "name": name, "labels": labels}, "spec": template.get("spec") or {}}
            body["metadata"].pop("creationTimestamp", None)
            self.make(owner, "persistentvolumeclaims", body)

    def _report(self, owner: Record, pods: dict[int, Child], update: str, current: str) -> None:
        made = [pod for pod in pods.values() if pod.is_active]
        ready = sum(pod.is_ready for pod in made)
        updated = sum(pod.labels.get(HASH) == update for pod in made)
        wanted = owner.obj["spec"].get("replicas", 1)
        if updated == wanted == ready == len(made):
            current = update
        status: Manifest = {
            "observedGeneration": owner.obj["metadata"].get("generation", 1),
            "replicas": len(made),
            "availableReplicas": ready,
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
        }
        old = sum(pod.labels.get(HASH) == current for pod in made)
        figures = {"readyReplicas": ready, "currentReplicas": old, "updatedReplicas": updated}
        self.write_status(owner, {**status, **{name: count for name, count in figures.items() if count}})


def _ordinal(owner: Record, pod: Child) -> int | None:
    name, dash, number = pod.name.rpartition("-")
    return int(number) if dash and name == owner.name and number.isdecimal() else None
