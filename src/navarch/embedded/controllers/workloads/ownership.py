"""Objects by the controller that owns them, and objects without a controller.

The index holds names and reads the store when asked, so it is never staler than the store. A controller enters what it creates at
once (`enter`), because the event of a write may arrive after the next lookup. Facts that controllers read often are taken from an
object once a version (`Child`): a job of ten thousand pods is synced without decoding any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from navarch.embedded.api.selectors import object_selector
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest, ObjectKey


def controller_of(obj: Manifest) -> Manifest | None:
    """The owner reference of the controller, if there is one."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: Manifest = owner
            return found
    return None


def owner_reference(owner: Record, kind: str, api_version: str) -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


@dataclass(frozen=True, slots=True)
class Child:
    """One version of an object that has, or may get, a controller."""

    record: Record
    controller: str
    """uid of the controller; empty if the object has none."""
    phase: str
    is_deleted: bool
    ready_since: str
    """When it became ready; empty while it is not."""
    finalizers: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def uid(self) -> str:
        return self.record.uid

    @property
    def labels(self) -> Mapping[str, str]:
        return self.record.labels

    @property
    def obj(self) -> Manifest:
        """The whole object; it may have to be decoded."""
        return self.record.obj

    @property
    def is_ready(self) -> bool:
        return bool(self.ready_since)

    @property
    def has_ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        """Neither ended nor going."""
        return not self.is_deleted and not self.has_ended


def child_of(record: Record) -> Child:
    obj = record.obj
    metadata, status = obj["metadata"], obj.get("status") or {}
    ready = ""
    for each in status.get("conditions") or ():
        if each.get("type") == "Ready" and each.get("status") == "True":
            ready = str(each.get("lastTransitionTime") or "now")
    return Child(
        record,
        str((controller_of(obj) or {}).get("uid") or ""),
        str(status.get("phase") or ""),
        bool(metadata.get("deletionTimestamp")),
        ready,
        tuple(metadata.get("finalizers") or ()),
    )


class OwnerIndex:
    """Children of one resource."""

    def __init__(self, store: Store, resource: str) -> None:
        self._store = store
        self.resource = resource
        self._children: dict[str, dict[ObjectKey, None]] = {}
        self._orphans: dict[str, dict[ObjectKey, None]] = {}
        self._known: dict[ObjectKey, Child] = {}

    def find(self, namespace: str, name: str) -> Child | None:
        """The object as it is now."""
        record = self._store.find(self.resource, namespace, name)
        if record is None:
            return None
        known = self._known.get((namespace, name))
        if known is None or known.record is not record:
            known = self._known[namespace, name] = child_of(record)
        return known

    def note(self, event: Event) -> None:
        """Follow the store."""
        record = event.record
        owner = controller_of(record.obj)
        key = (record.namespace, record.name)
        if event.type == "DELETED":
            if self._store.find(self.resource, *key) is None:
                self._leave(owner, key)
                self._known.pop(key, None)
            return
        before = controller_of(event.previous.obj) if event.previous is not None else None
        if event.previous is not None and (before or {}).get("uid") != (owner or {}).get("uid"):
            self._leave(before, key)
        self._enter(owner, key)

    def enter(self, record: Record) -> Child:
        """A child that its controller has just made."""
        key = (record.namespace, record.name)
        self._enter(controller_of(record.obj), key)
        child = self._known[key] = child_of(record)
        return child

    def of(self, owner: Record) -> list[Child]:
        """The children of an owner as they are now, in order of their names."""
        found = []
        for key in sorted(self._children.get(owner.uid, ())):
            child = self.find(*key)
            if child is not None and child.controller == owner.uid:
                found.append(child)
        return found

    def orphans(self, namespace: str, selects: Callable[[Mapping[str, str]], bool]) -> list[Child]:
        """Objects without a controller that a selector matches and that are not being deleted."""
        found = []
        for key in sorted(self._orphans.get(namespace, ())):
            child = self.find(*key)
            if child is not None and selects(child.labels) and not child.controller and not child.is_deleted:
                found.append(child)
        return found

    def claim(self, owner: Record, kind: str, api_version: str, selector: Manifest | None) -> list[Child]:
        """The children of an owner after it took in the orphans it selects and let go what it no longer selects."""
        selects = object_selector(selector)
        kept = []
        for child in self.of(owner):
            if selects(child.labels):
                kept.append(child)
            elif not owner.obj["metadata"].get("deletionTimestamp"):
                self._store.modify(self.resource, child.record.namespace, child.name, lambda obj: _released(obj, owner.uid))
        if owner.obj["metadata"].get("deletionTimestamp"):
            return kept
        reference = owner_reference(owner, kind, api_version)
        for orphan in self.orphans(owner.namespace, selects):
            adopted = self._store.modify(self.resource, owner.namespace, orphan.name, lambda obj: _adopted(obj, reference))
            kept.append(self.enter(adopted))
        return kept

    def _enter(self, owner: Manifest | None, key: ObjectKey) -> None:
        if owner is not None:
            self._children.setdefault(owner["uid"], {})[key] = None
            self._orphans.get(key[0], {}).pop(key, None)
        else:
            self._orphans.setdefault(key[0], {})[key] = None

    def _leave(self, owner: Manifest | None, key: ObjectKey) -> None:
        table, group = (self._children, owner["uid"]) if owner is not None else (self._orphans, key[0])
        held = table.get(group)
        if held is not None:
            held.pop(key, None)
            if not held:
                del table[group]


def _released(obj: Manifest, uid: str) -> Manifest:
    references = [each for each in obj["metadata"].get("ownerReferences") or () if each["uid"] != uid]
    obj["metadata"]["ownerReferences"] = references
    if not references:
        del obj["metadata"]["ownerReferences"]
    return obj


def _adopted(obj: Manifest, reference: Manifest) -> Manifest:
    obj["metadata"].setdefault("ownerReferences", []).append(reference)
    return obj
