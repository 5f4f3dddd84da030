"""One claim at a time: which volume it gets, now or after the scheduler chose a node, and the event it gets while it has none."""

from __future__ import annotations

from collections.abc import Callable

from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.event_recorder import Recorder
from navarch.embedded.controllers.volumes.index import VolumeIndex, holds, is_kept_for
from navarch.embedded.controllers.volumes.provisioning import CLASSES, IS_DEFAULT, provisioned, reference, refusal
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Store, timestamp
from navarch.model.objects.storage import WAIT_FOR_CONSUMER, ClaimSpec, read_claim, read_storage_class, read_volume
from navarch.model.spec import Labels
from navarch.object_types import Manifest, ObjectKey

VOLUMES, CLAIMS = "persistentvolumes", "persistentvolumeclaims"
BIND_COMPLETED, BOUND_BY_CONTROLLER = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE, PROVISIONER = "volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
Rewrite = Callable[[Manifest], None]


class ClaimBinding:
    """Binds claims to volumes of the index, and to new ones."""

    def __init__(self, operations: Operations, index: VolumeIndex) -> None:
        self._operations = operations
        self._store = operations.store
        self._index = index
        self._recorder = Recorder(operations, "persistentvolume-controller")
        self.waiting: dict[ObjectKey, tuple[str, str]] = {}
        """Claims without a volume -> (their class, the last event about them)."""

    def sync(self, key: ObjectKey, record: Record | None) -> None:
        claim = read_claim(record.obj) if record is not None else None
        if record is None or claim is None or (claim.deleting and not claim.bind_completed):
            self.waiting.pop(key, None)
        elif claim.bind_completed:
            self.waiting.pop(key, None)
            self._check(record, claim)
        elif claim.volume:
            self._bind_named(record, claim)
        else:
            self._find(record, claim)

    def _check(self, record: Record, claim: ClaimSpec) -> None:
        """A bound claim stays bound to a volume whose claimRef names it. Without such a volume the claim is Lost."""
        found = self._store.find(VOLUMES, "", claim.volume) if claim.volume else None
        volume = read_volume(found.obj) if found is not None else None
        if not claim.volume:
            self._lose(record, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
        elif found is None or volume is None:
            self._lose(record, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
        elif volume.claim is None or is_kept_for(volume, claim):
            self._bind(record, found)
        else:
            self._lose(record, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")

    def _lose(self, record: Record, reason: str, message: str) -> None:
        if (record.obj.get("status") or {}).get("phase") != "Lost":

            def change(obj: Manifest) -> Manifest:
                obj["status"] = {"phase": "Lost"}
                return obj

            self._recorder.warning(record, reason, message)
            self._store.modify(CLAIMS, record.namespace, record.name, change)

    def _bind_named(self, record: Record, claim: ClaimSpec) -> None:
        """The claim's author chose the volume."""
        found = self._store.find(VOLUMES, "", claim.volume)
        volume = read_volume(found.obj) if found is not None else None
        if found is None or volume is None:
            self._wait(record, claim, "FailedBinding", f'volume "{claim.volume}" does not exist')
        elif volume.claim is not None and not is_kept_for(volume, claim):
            self._wait(record, claim, "FailedBinding", f'volume "{claim.volume}" already bound to a different claim.')
        elif not holds(volume, claim) or not claim.access_modes <= volume.access_modes:
            self._wait(record, claim, "VolumeMismatch", f'Cannot bind to requested volume "{claim.volume}": it does not fit')
        else:
            self._bind(record, found)

    def _find(self, record: Record, claim: ClaimSpec) -> None:
        if self._give_default_class(record):
            return  # its change brings it back
        class_record = self._store.find(CLASSES, "", claim.storage_class) if claim.storage_class else None
        storage_class = read_storage_class(class_record.obj) if class_record is not None else None
        kept = self._kept(claim)
        selected = claim.selected_node
        if kept is not None:
            self._bind(record, kept)
            return
        if storage_class is not None and storage_class.binding_mode == WAIT_FOR_CONSUMER and selected is None:
            message = "waiting for first consumer to be created before binding"
            self._wait(record, claim, "WaitForFirstConsumer", message, normal=True)
            return
        node = self._store.find("nodes", "", selected) if selected is not None else None
        if selected is not None and node is None:
            self._refuse(record, claim, f'node "{selected}" not found')
            return
        labels = node.labels if node is not None else None
        free = self._free(claim, node)
        if free is not None:
            self._bind(record, free)
        elif not claim.storage_class:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._wait(record, claim, "FailedBinding", message, normal=True)
        elif said := refusal(claim, storage_class, labels):
            self._refuse(record, claim, said)
        elif class_record is not None:
            self._provision(record, claim, class_record.obj, labels)

    def _kept(self, claim: ClaimSpec) -> Record | None:
        """A volume that is reserved for this claim by its claimRef."""
        for name in self._index.kept_for(claim.key):
            found = self._store.find(VOLUMES, "", name)
            volume = read_volume(found.obj) if found is not None else None
            if volume is not None and is_kept_for(volume, claim) and holds(volume, claim):
                return found
        return None

    def _free(self, claim: ClaimSpec, node: Record | None) -> Record | None:
        for name in self._index.free_for(claim, (node.name, node.labels) if node is not None else None):
            found = self._store.find(VOLUMES, "", name)
            if found is not None and read_volume(found.obj).claim is None:
                return found
        return None

    def _give_default_class(self, record: Record) -> bool:
        """A claim that was made before there was a default class gets it when there is one."""
        annotations = record.obj["metadata"].get("annotations") or {}
        if record.obj["spec"].get("storageClassName") is not None or CLASS_ANNOTATION in annotations:
            return False
        classes = [each.obj["metadata"] for each in self._store.list(CLASSES)]
        defaults = [each for each in classes if (each.get("annotations") or {}).get(IS_DEFAULT) == "true"]
        if not defaults:
            return False
        newest = max(defaults, key=lambda each: str(each.get("creationTimestamp") or ""))

        def change(obj: Manifest) -> Manifest:
            obj["spec"]["storageClassName"] = newest["name"]
            return obj

        self._store.modify(CLAIMS, record.namespace, record.name, change)
        return True

    def _provision(self, record: Record, claim: ClaimSpec, storage_class: Manifest, labels: Labels | None) -> None:
        body = provisioned(claim, record, storage_class, labels)
        name = body["metadata"]["name"]
        found = self._store.find(VOLUMES, "", name)
        if found is None:
            found = self._operations.create(self._operations.kind(VOLUMES), "", body)
            self._recorder.normal(record, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        self._bind(record, found, provisioner=storage_class["provisioner"])

    def _bind(self, claim: Record, volume: Record, provisioner: str = "") -> None:
        """Volume first: if we stop in between, its reference tells the rest."""
        self.waiting.pop((claim.namespace, claim.name), None)

        def take(obj: Manifest) -> None:
            before = obj["spec"].get("claimRef") or {}
            if not before:
                obj["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
            if before.get("uid") != claim.uid:
                obj["spec"]["claimRef"] = reference(claim)

        given = change_volume(self._store, volume.name, "Bound", take).obj["spec"]

        def change(obj: Manifest) -> Manifest:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations[BIND_COMPLETED] = "yes"
            if not obj["spec"].get("volumeName"):
                obj["spec"]["volumeName"] = volume.name
                annotations[BOUND_BY_CONTROLLER] = "yes"
            if provisioner:
                annotations[PROVISIONER] = provisioner
            status = obj.setdefault("status", {})
            status.update(phase="Bound", accessModes=given["accessModes"], capacity=given["capacity"])
            return obj

        self._store.modify(CLAIMS, claim.namespace, claim.name, change)

    def _wait(self, record: Record, claim: ClaimSpec, reason: str, message: str, *, normal: bool = False) -> None:
        """Say once why a claim has no volume, and remember that it waits."""
        if self.waiting.get(claim.key) != (claim.storage_class, message):
            self.waiting[claim.key] = claim.storage_class, message
            (self._recorder.normal if normal else self._recorder.warning)(record, reason, message)

    def _refuse(self, record: Record, claim: ClaimSpec, message: str) -> None:
        """No volume can be made; a node that was chosen for it is taken off, so that another can be."""
        self._wait(record, claim, "ProvisioningFailed", message)
        if claim.selected_node is not None:

            def change(obj: Manifest) -> Manifest:
                del obj["metadata"]["annotations"][SELECTED_NODE]
                return obj

            self._store.modify(CLAIMS, record.namespace, record.name, change)


def change_volume(store: Store, name: str, phase: str, rewrite: Rewrite | None = None) -> Record:
    """Set a volume's phase and the fields that change with it."""
    now = timestamp(store.clock())

    def change(obj: Manifest) -> Manifest:
        if rewrite is not None:
            rewrite(obj)
        status = obj.setdefault("status", {})
        if status.get("phase") != phase:
            status.update(phase=phase, lastPhaseTransitionTime=now)
        return obj

    return store.modify(VOLUMES, "", name, change)
