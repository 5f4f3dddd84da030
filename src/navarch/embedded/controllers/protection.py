"""Takes protecting finalizers off what is no longer used: claims, volumes and pod groups that are being deleted."""

from __future__ import annotations

from navarch.embedded.api.operations import Operations
from navarch.embedded.storage.record import Event, Record
from navarch.object_types import Manifest

CLAIM, VOLUME, GROUP = "persistentvolumeclaims", "persistentvolumes", "podgroups.scheduling.k8s.io"
FINALIZERS = {
    CLAIM: "kubernetes.io/pvc-protection",
    VOLUME: "kubernetes.io/pv-protection",
    GROUP: "scheduling.k8s.io/podgroup-protection",
}


class Protection:
    """Reacts to deletions of the protected, and of pods that used them."""

    def __init__(self, operations: Operations) -> None:
        self._store = operations.store

    def load(self) -> None:
        for resource in sorted(FINALIZERS):
            for record in self._store.list(resource):
                self._release(record)

    def note(self, event: Event) -> bool:
        resource = event.record.resource
        if resource in FINALIZERS:
            return "deletionTimestamp" in event.record.obj["metadata"] or event.type == "DELETED"
        if resource != "pods" or not (self._store.count(CLAIM) or self._store.count(GROUP)):
            return False
        return event.type == "DELETED" or event.record.fields[5] in ("Succeeded", "Failed")

    def react(self, event: Event) -> None:
        namespace = "" if event.record.resource == VOLUME else event.record.namespace
        for resource in sorted(FINALIZERS):
            for record in self._store.list(resource, "" if resource == VOLUME else namespace):
                if record.obj["metadata"].get("deletionTimestamp"):
                    self._release(record)

    def _release(self, record: Record) -> None:
        metadata = record.obj["metadata"]
        finalizer = FINALIZERS[record.resource]
        if not metadata.get("deletionTimestamp") or finalizer not in (metadata.get("finalizers") or ()):
            return
        if self._is_used(record):
            return

        def change(obj: Manifest) -> Manifest:
            kept = [each for each in obj["metadata"]["finalizers"] if each != finalizer]
            obj["metadata"]["finalizers"] = kept
            if not kept:
                del obj["metadata"]["finalizers"]
            return obj

        left = self._store.modify(record.resource, record.namespace, record.name, change)
        if not left.obj["metadata"].get("finalizers"):
            self._store.delete(record.resource, record.namespace, record.name)

    def _is_used(self, record: Record) -> bool:
        if record.resource == VOLUME:
            return (record.obj.get("status") or {}).get("phase") == "Bound"
        for pod in self._store.list("pods", record.namespace):
            if pod.fields[5] in ("Succeeded", "Failed"):
                continue
            spec = pod.obj["spec"]
            if record.resource == GROUP:
                named = [(spec.get("schedulingGroup") or {}).get("podGroupName")]
            else:
                named = [(each.get("persistentVolumeClaim") or {}).get("claimName") for each in spec.get("volumes") or ()]
            if record.name in named:
                return True
        return False
