"""Who belongs to whom: objects by the controller that owns them, and those that nobody owns yet.

The index holds names only and reads the store when asked, so it is never staler than the store. What a controller makes itself
is entered at once (`born`): the event of a write may come later than the next look.
"""

from __future__ import annotations

from collections.abc import Callable

from navarch.cluster.record import Event, Manifest, Record
from navarch.cluster.selectors import object_selector
from navarch.cluster.store import Store

Key = tuple[str, str]


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


class Family:
    """Children of one resource."""

    def __init__(self, store: Store, resource: str) -> None:
        self._store = store
        self.resource = resource
        self._children: dict[str, dict[Key, None]] = {}
        self._orphans: dict[str, dict[Key, None]] = {}

    def note(self, event: Event) -> None:
        """Follow the store."""
        record = event.record
        owner = controller_of(record.obj)
        key = (record.namespace, record.name)
        if event.type == "DELETED":
            if self._store.find(self.resource, *key) is None:
                self._leave(owner, key)
            return
        before = controller_of(event.previous.obj) if event.previous is not None else None
        if event.previous is not None and (before or {}).get("uid") != (owner or {}).get("uid"):
            self._leave(before, key)
        self._enter(owner, key)

    def born(self, record: Record) -> None:
        """A child that its controller has just made."""
        self._enter(controller_of(record.obj), (record.namespace, record.name))

    def of(self, owner: Record) -> list[Record]:
        """The children of an owner as they are now, in order of their names."""
        found = []
        for key in sorted(self._children.get(owner.uid, ())):
            record = self._store.find(self.resource, *key)
            if record is not None and (controller_of(record.obj) or {}).get("uid") == owner.uid:
                found.append(record)
        return found

    def orphans(self, namespace: str, selects: Callable[[dict[str, str]], bool]) -> list[Record]:
        """Objects without a controller that a selector matches and nobody deletes."""
        found = []
        for key in sorted(self._orphans.get(namespace, ())):
            record = self._store.find(self.resource, *key)
            if record is not None and selects(record.labels) and controller_of(record.obj) is None:
                if not record.obj["metadata"].get("deletionTimestamp"):
                    found.append(record)
        return found

    def claim(self, owner: Record, kind: str, api_version: str, selector: Manifest | None) -> list[Record]:
        """The children of an owner after it took in the orphans it selects and let go what it no longer selects."""
        selects = object_selector(selector)
        kept = []
        for child in self.of(owner):
            if selects(child.labels):
                kept.append(child)
            elif not owner.obj["metadata"].get("deletionTimestamp"):
                self._store.modify(self.resource, child.namespace, child.name, lambda obj: _released(obj, owner.uid))
        if owner.obj["metadata"].get("deletionTimestamp"):
            return kept
        reference = owner_reference(owner, kind, api_version)
        for orphan in self.orphans(owner.namespace, selects):
            adopted = self._store.modify(self.resource, orphan.namespace, orphan.name, lambda obj: _adopted(obj, reference))
            self.born(adopted)
            kept.append(adopted)
        return kept

    def _enter(self, owner: Manifest | None, key: Key) -> None:
        if owner is not None:
            self._children.setdefault(owner["uid"], {})[key] = None
            self._orphans.get(key[0], {}).pop(key, None)
        else:
            self._orphans.setdefault(key[0], {})[key] = None

    def _leave(self, owner: Manifest | None, key: Key) -> None:
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
