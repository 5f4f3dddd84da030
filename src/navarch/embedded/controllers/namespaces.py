"""The life of namespaces: each gets a default service account; a deleted one is emptied, then goes."""

from __future__ import annotations

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.operations import Operations
from navarch.embedded.storage.record import Event
from navarch.object_types import Manifest

SERVICE_ACCOUNTS = "serviceaccounts"


class Namespaces:
    """Reacts to events of namespaces, and of what is in those that end."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._store = operations.store
        self._ending: set[str] = set()

    def load(self) -> None:
        for record in self._store.list("namespaces"):
            if record.obj["metadata"].get("deletionTimestamp"):
                self._ending.add(record.name)
                self._empty(record.name)

    def note(self, event: Event) -> bool:
        record = event.record
        if record.resource == "namespaces":
            if event.type == "DELETED":
                self._ending.discard(record.name)
                return False
            if record.obj["metadata"].get("deletionTimestamp"):
                self._ending.add(record.name)
                return True
            return event.type == "ADDED"
        return event.type == "DELETED" and record.namespace in self._ending

    def react(self, event: Event) -> None:
        record = event.record
        if record.resource == "namespaces":
            if record.name in self._ending:
                self._empty(record.name)
            elif event.type == "ADDED" and self._store.find("namespaces", "", record.name) is not None:
                self._welcome(record.name)
        elif record.namespace in self._ending:
            self._finish(record.namespace)

    def _welcome(self, namespace: str) -> None:
        if self._store.find(SERVICE_ACCOUNTS, namespace, "default") is None:
            kind = self._operations.kind(SERVICE_ACCOUNTS)
            self._operations.create(kind, namespace, {"metadata": {"name": "default"}})

    def _empty(self, namespace: str) -> None:
        for resource in self._store.resources():
            kind = self._operations.registry.by_resource(resource)
            if kind is None or not kind.namespaced:
                continue
            for record in self._store.list(resource, namespace):
                if not record.obj["metadata"].get("deletionTimestamp"):
                    if self._store.find(resource, namespace, record.name) is not None:
                        self._operations.delete(kind, namespace, record.name, DeleteOptions(propagation="Background"))
        self._finish(namespace)

    def _finish(self, namespace: str) -> None:
        """Let the namespace go when nothing is left in it."""
        for resource in self._store.resources():
            if resource != "namespaces":
                low, high = self._store.collection(resource).span(namespace)
                if high > low:
                    return
        current = self._store.find("namespaces", "", namespace)
        if current is None:
            return

        def change(obj: Manifest) -> Manifest:
            obj["spec"] = {}
            return obj

        left = self._store.modify("namespaces", "", namespace, change)
        if not left.obj["metadata"].get("finalizers"):
            self._store.delete("namespaces", "", namespace)
