"""Generic ephemeral volumes: a pod that carries a claim template gets a claim `POD-VOLUME` that is its own and goes with it."""

from __future__ import annotations

from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.event_recorder import Recorder
from navarch.embedded.controllers.volumes.claims import CLAIMS
from navarch.embedded.controllers.work_queue import WorkQueue
from navarch.embedded.controllers.workloads.ownership import controller_of, owner_reference
from navarch.embedded.storage.feeds import Watch
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest, ObjectKey


class EphemeralVolumes:
    """Start it on the loop; the garbage collector deletes the claims after their pods."""

    def __init__(self, operations: Operations, timers: Timers) -> None:
        self._operations = operations
        self._store = operations.store
        self._recorder = Recorder(operations, "ephemeral_volume")
        self.queue: WorkQueue[ObjectKey] = WorkQueue("ephemeral volumes", self._look, timers)
        self._watches: list[Watch] = []

    def start(self) -> None:
        self._watches = [self._store.subscribe("pods", self._on_pod), self._store.subscribe(CLAIMS, self._on_claim)]

    def stop(self) -> None:
        for watch in self._watches:
            watch.close()
        self.queue.stop()

    def _on_pod(self, event: Event) -> None:
        record = event.record
        if event.type != "DELETED" and any("ephemeral" in each for each in record.obj["spec"].get("volumes") or ()):
            self.queue.add((record.namespace, record.name))

    def _on_claim(self, event: Event) -> None:
        """A claim that is gone is made again for a pod that still needs it."""
        owner = controller_of(event.record.obj) if event.type == "DELETED" else None
        if owner is not None and owner["kind"] == "Pod":
            self.queue.add((event.record.namespace, owner["name"]))

    def _look(self, key: ObjectKey) -> None:
        pod = self._store.find("pods", *key)
        ended = pod is None or (pod.obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if pod is None or ended or pod.obj["metadata"].get("deletionTimestamp"):
            return
        for volume in pod.obj["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            if template:
                self._claim(pod, f"{pod.name}-{volume['name']}", template)

    def _claim(self, pod: Record, name: str, template: Manifest) -> None:
        found = self._store.find(CLAIMS, pod.namespace, name)
        if found is None:
            given = template.get("metadata") or {}
            metadata = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
            metadata.update(name=name, ownerReferences=[owner_reference(pod, "Pod", "v1")])
            body = {"metadata": metadata, "spec": template.get("spec") or {}}
            self._operations.create(self._operations.kind(CLAIMS), pod.namespace, body)
        elif (controller_of(found.obj) or {}).get("uid") != pod.uid:
            message = f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
            self._recorder.warning(pod, "FailedBinding", f"ephemeral volume: {message}")
