"""The garbage collector: deletes or releases the dependents of a deleted owner.

It follows the store's events and keeps two tables: the uids that exist, and the dependents of each. Background deletion removes
dependents after their owner. Foreground deletion keeps the owner (by its finalizer) until its blocking dependents are gone. Orphan
deletion removes the owner reference from dependents.
"""

from __future__ import annotations

from navarch.embedded.api.deletion import FOREGROUND, ORPHAN, DeleteOptions
from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.operations import Operations
from navarch.embedded.storage.record import Event, Record
from navarch.object_types import Manifest

Place = tuple[str, str, str]
"""(resource, namespace, name)"""


class Garbage:
    """Reacts to one event at a time; `react` may write to the store."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._store = operations.store
        self._alive: dict[str, Place] = {}
        self._dependents: dict[str, dict[str, Place]] = {}
        """owner uid -> dependent uid -> where it is."""
        self._owners: dict[str, tuple[str, ...]] = {}

    def load(self) -> None:
        """Learn what a restored store already holds."""
        for resource in self._store.resources():
            for record in self._store.list(resource):
                self._learn(record)
        for uid in sorted(self._owners):
            self._collect_if_orphaned(uid)

    def note(self, event: Event) -> bool:
        """Update the tables; the answer says whether `react` has something to do."""
        record = event.record
        if event.type == "DELETED":
            self._alive.pop(record.uid, None)
            for owner in self._owners.pop(record.uid, ()):
                self._dependents.get(owner, {}).pop(record.uid, None)
            return record.uid in self._dependents or bool(record.obj["metadata"].get("ownerReferences"))
        changed = self._learn(record)
        metadata = record.obj["metadata"]
        if metadata.get("deletionTimestamp"):
            finalizers = metadata.get("finalizers") or ()
            return FOREGROUND in finalizers or ORPHAN in finalizers
        return changed

    def _learn(self, record: Record) -> bool:
        self._alive[record.uid] = (record.resource, record.namespace, record.name)
        references = record.obj["metadata"].get("ownerReferences") or ()
        owners = tuple(each["uid"] for each in references)
        before = self._owners.get(record.uid, ())
        if owners == before:
            return False
        for owner in before:
            self._dependents.get(owner, {}).pop(record.uid, None)
        for owner in owners:
            self._dependents.setdefault(owner, {})[record.uid] = self._alive[record.uid]
        if owners:
            self._owners[record.uid] = owners
        else:
            self._owners.pop(record.uid, None)
        return True

    def react(self, event: Event) -> None:
        """Do what an event asks for."""
        uid = event.record.uid
        if event.type == "DELETED":
            for dependent in sorted(self._dependents.pop(uid, {})):
                self._collect_if_orphaned(dependent)
            for reference in event.record.obj["metadata"].get("ownerReferences") or ():
                self._release(reference["uid"])
            return
        place = self._alive.get(uid)
        current = self._store.find(*place) if place else None
        if current is None:
            return
        metadata = current.obj["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if metadata.get("deletionTimestamp") and ORPHAN in finalizers:
            self._orphan(current)
        elif metadata.get("deletionTimestamp") and FOREGROUND in finalizers:
            self._foreground(current)
        else:
            self._collect_if_orphaned(uid)

    def _collect_if_orphaned(self, uid: str) -> None:
        """Delete an object if none of its owners exists. If some owners exist, remove the references to the others."""
        place = self._alive.get(uid)
        owners = self._owners.get(uid, ())
        if place is None or not owners:
            return
        dead = [owner for owner in owners if owner not in self._alive]
        if len(dead) == len(owners):
            self._delete(place, "Background")
        elif dead:
            self._drop_references(place, frozenset(dead))

    def _release(self, owner: str) -> None:
        """An owner that waits for its dependents may be free now."""
        place = self._alive.get(owner)
        current = self._store.find(*place) if place else None
        if current is not None and FOREGROUND in (current.obj["metadata"].get("finalizers") or ()):
            if current.obj["metadata"].get("deletionTimestamp"):
                self._foreground(current)

    def _foreground(self, owner: Record) -> None:
        for uid, place in sorted(self._dependents.get(owner.uid, {}).items()):
            dependent = self._store.find(*place)
            if dependent is None or dependent.uid != uid:
                continue
            references = dependent.obj["metadata"].get("ownerReferences") or ()
            others = [each["uid"] for each in references if each["uid"] != owner.uid and each["uid"] in self._alive]
            if others:
                self._drop_references(place, frozenset({owner.uid}))
            elif not dependent.obj["metadata"].get("deletionTimestamp"):
                self._delete(place, "Foreground" if self._dependents.get(uid) else "Background")
        current = self._store.find(owner.resource, owner.namespace, owner.name)
        still = [place for uid, place in self._dependents.get(owner.uid, {}).items() if self._blocks(uid, place, owner.uid)]
        if current is not None and not still:
            self._drop_finalizer(current, FOREGROUND)

    def _blocks(self, uid: str, place: Place, owner: str) -> bool:
        record = self._store.find(*place)
        if record is None or record.uid != uid:
            return False
        references = record.obj["metadata"].get("ownerReferences") or ()
        return any(each["uid"] == owner and each.get("blockOwnerDeletion") for each in references)

    def _orphan(self, owner: Record) -> None:
        for _, place in sorted(self._dependents.get(owner.uid, {}).items()):
            self._drop_references(place, frozenset({owner.uid}))
        self._drop_finalizer(owner, ORPHAN)

    def _drop_references(self, place: Place, owners: frozenset[str]) -> None:
        def change(obj: Manifest) -> Manifest:
            metadata = obj["metadata"]
            kept = [each for each in metadata.get("ownerReferences") or () if each["uid"] not in owners]
            if kept:
                metadata["ownerReferences"] = kept
            else:
                metadata.pop("ownerReferences", None)
            return obj

        if self._store.find(*place) is not None:
            self._store.modify(*place, change)

    def _drop_finalizer(self, record: Record, finalizer: str) -> None:
        def change(obj: Manifest) -> Manifest:
            metadata = obj["metadata"]
            kept = [each for each in metadata.get("finalizers") or () if each != finalizer]
            if kept:
                metadata["finalizers"] = kept
            else:
                metadata.pop("finalizers", None)
            return obj

        left = self._store.modify(record.resource, record.namespace, record.name, change)
        metadata = left.obj["metadata"]
        if not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
            self._store.delete(record.resource, record.namespace, record.name)

    def _delete(self, place: Place, propagation: str) -> None:
        resource, namespace, name = place
        kind = self._operations.registry.by_resource(resource)
        if kind is None or self._store.find(*place) is None:
            return
        try:
            self._operations.delete(kind, namespace, name, DeleteOptions(propagation=propagation))
        except ApiError as error:
            if error.code != 404:
                raise
