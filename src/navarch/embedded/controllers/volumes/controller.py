"""The volume controller, with hollow disks: binds claims to volumes.

A claim whose class binds at once takes the smallest free volume that fits, or a new one is made. A claim whose class waits for its
first consumer gets a volume after the scheduler chose: by the node annotation on the claim, or by the claimRef on a volume. A
provisioner that cannot serve that node removes the annotation, and the scheduler chooses again. The reclaim policy decides whether
a volume is deleted with its claim or stays as Released.
"""

from __future__ import annotations

from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.volumes.claims import BOUND_BY_CONTROLLER, CLAIMS, VOLUMES, ClaimBinding, change_volume
from navarch.embedded.controllers.volumes.index import VolumeIndex
from navarch.embedded.controllers.volumes.provisioning import CLASSES, PROVISIONED_BY
from navarch.embedded.controllers.work_queue import WorkQueue
from navarch.embedded.storage.feeds import Watch
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.timers import Timers
from navarch.model.objects.storage import VolumeSpec, read_volume
from navarch.object_types import Manifest

Work = tuple[str, str, str]
"""(resource, namespace, name). One queue for both kinds: a volume that was there before a claim is known before it."""


class Volumes:
    """Start it on the loop; every volume and claim that exists is looked at once."""

    def __init__(self, operations: Operations, timers: Timers) -> None:
        self._operations = operations
        self._store = operations.store
        self._index = VolumeIndex()
        self._claims = ClaimBinding(operations, self._index)
        self.queue: WorkQueue[Work] = WorkQueue("volumes", self._look, timers)
        self._watches: list[Watch] = []

    def start(self) -> None:
        for resource, react in ((VOLUMES, self._on_change), (CLAIMS, self._on_change), (CLASSES, self._on_class)):
            self._watches.append(self._store.subscribe(resource, react))

    def stop(self) -> None:
        for watch in self._watches:
            watch.close()
        self.queue.stop()

    def _on_change(self, event: Event) -> None:
        self.queue.add((event.record.resource, event.record.namespace, event.record.name))

    def _on_class(self, event: Event) -> None:
        self._wake(event.record.name)
        self._wake("")

    def _wake(self, storage_class: str) -> None:
        for key, (wanted, _) in self._claims.waiting.items():
            if wanted == storage_class:
                self.queue.add((CLAIMS, *key))

    def _look(self, work: Work) -> None:
        resource, namespace, name = work
        record = self._store.find(resource, namespace, name)
        if resource == VOLUMES:
            self._look_at_volume(name, record)
            return
        self._claims.sync((namespace, name), record)
        if record is None:
            for kept in self._index.kept_for((namespace, name)):
                self.queue.add((VOLUMES, "", kept))

    def _look_at_volume(self, name: str, record: Record | None) -> None:
        before = self._index.drop(name)
        if record is not None:
            self._settle(record, read_volume(record.obj))
            record = self._store.find(VOLUMES, "", name)
        after = read_volume(record.obj) if record is not None else None
        if after is not None:
            self._index.put(after)
        for volume in (before, after):
            if volume is not None and volume.claim is not None:
                self._tell_claim(name, volume.claim[:2], after)
        if after is not None and after.claim is None and after.phase == "Available":
            self._wake(after.storage_class)

    def _tell_claim(self, name: str, key: tuple[str, str], volume: VolumeSpec | None) -> None:
        """Look at a volume's claim, unless the two agree."""
        claim = self._store.find(CLAIMS, *key)
        if claim is None:
            return
        holder = volume.claim if volume is not None else None
        if claim.obj["spec"].get("volumeName") != name or holder is None or holder[2] != claim.uid:
            self.queue.add((CLAIMS, *key))

    def _settle(self, record: Record, volume: VolumeSpec) -> None:
        """The phase that a volume's claim gives it, and what follows from that."""
        if volume.claim is None or not volume.claim[2]:
            change_volume(self._store, volume.name, "Available")
            return
        claim = self._store.find(CLAIMS, *volume.claim[:2])
        if claim is None or claim.uid != volume.claim[2]:
            self._release(record, volume)
            return
        chosen = claim.obj["spec"].get("volumeName") or ""
        if chosen == volume.name:
            change_volume(self._store, volume.name, "Bound")
        elif chosen and _annotated(record, PROVISIONED_BY) and _policy(record) == "Delete":
            self._release(record, volume)
        elif chosen:
            ours = _annotated(record, BOUND_BY_CONTROLLER)
            change_volume(self._store, volume.name, "Available", lambda obj: _unbind(obj, whole=ours))

    def _release(self, record: Record, volume: VolumeSpec) -> None:
        policy = _policy(record)
        if policy == "Recycle":
            change_volume(self._store, volume.name, "Available", lambda obj: _unbind(obj, whole=True))
            return
        change_volume(self._store, volume.name, "Released")
        if policy == "Delete" and not volume.deleting:
            self._operations.delete(self._operations.kind(VOLUMES), "", volume.name)


def _annotated(record: Record, annotation: str) -> bool:
    return annotation in (record.obj["metadata"].get("annotations") or {})


def _policy(volume: Record) -> str:
    return str(volume.obj["spec"].get("persistentVolumeReclaimPolicy") or "Retain")


def _unbind(volume: Manifest, whole: bool) -> None:
    """Take the claim off a volume; a reference that its author wrote stays, without the uid."""
    if whole:
        volume["spec"].pop("claimRef", None)
        (volume["metadata"].get("annotations") or {}).pop(BOUND_BY_CONTROLLER, None)
    else:
        for field in ("uid", "resourceVersion"):
            volume["spec"]["claimRef"].pop(field, None)
