"""ReplicaSet (and ReplicationController): so many pods of a template, no more, no fewer."""

from __future__ import annotations

from typing import ClassVar

from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.selectors import object_selector
from navarch.embedded.controllers.workloads.controller import Controller, condition, removal_order
from navarch.embedded.controllers.workloads.ownership import Child
from navarch.embedded.storage.record import Record
from navarch.embedded.timers import seconds_of
from navarch.object_types import Manifest


class ReplicaSets(Controller):
    resource: ClassVar[str] = "replicasets.apps"
    kind: ClassVar[str] = "ReplicaSet"

    def sync(self, owner: Record) -> None:
        spec = owner.obj["spec"]
        pods = [pod for pod in self.children(owner) if pod.is_active]
        wanted = spec.get("replicas", 1)
        refused: ApiError | None = None
        if not owner.obj["metadata"].get("deletionTimestamp"):
            try:
                while len(pods) < wanted:
                    pods.append(self.create(owner, spec["template"]))
            except ApiError as error:
                refused = error
            surplus = sorted(pods, key=removal_order)[: len(pods) - wanted] if len(pods) > wanted else []
            for pod in surplus:
                self.remove(pod)
            gone = {pod.uid for pod in surplus}
            pods = [pod for pod in pods if pod.uid not in gone]
        self._report(owner, pods, refused)
        if refused is not None:
            raise refused

    def _report(self, owner: Record, pods: list[Child], refused: ApiError | None) -> None:
        spec, before = owner.obj["spec"], owner.obj.get("status") or {}
        template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        labelled = object_selector({"matchLabels": template_labels})
        available, wait = self._available(spec, pods)
        figures = {
            "fullyLabeledReplicas": sum(labelled(pod.labels) for pod in pods),
            "readyReplicas": sum(pod.is_ready for pod in pods),
            "availableReplicas": available,
        }
        status: Manifest = {
            "replicas": len(pods),
            **{name: count for name, count in figures.items() if count},
            "observedGeneration": owner.obj["metadata"].get("generation", 1),
        }
        conditions = before.get("conditions") or []
        if refused is None:
            conditions = [each for each in conditions if each["type"] != "ReplicaFailure"]
        elif not any(each["type"] == "ReplicaFailure" for each in conditions):  # its text names another pod each time
            conditions = condition(before, "ReplicaFailure", "True", "FailedCreate", str(refused), self.now)
        if conditions:
            status["conditions"] = conditions
        self.write_status(owner, status)
        if wait:
            self.again_after(owner, wait)

    def _available(self, spec: Manifest, pods: list[Child]) -> tuple[int, float]:
        """(how many have been ready long enough, seconds until the next will have)."""
        least = spec.get("minReadySeconds") or 0
        count, wait = 0, 0.0
        for pod in pods:
            if not pod.is_ready:
                continue
            left = least - (self.store.clock() - seconds_of(pod.ready_since)) * self.timers.speed if least else 0.0
            if left <= 0:
                count += 1
            elif not wait or left < wait:
                wait = left
        return count, wait


class ReplicationControllers(ReplicaSets):
    resource: ClassVar[str] = "replicationcontrollers"
    kind: ClassVar[str] = "ReplicationController"
    api_version: ClassVar[str] = "v1"

    def selector(self, owner: Manifest) -> Manifest | None:
        return {"matchLabels": (owner.get("spec") or {}).get("selector") or {}}
