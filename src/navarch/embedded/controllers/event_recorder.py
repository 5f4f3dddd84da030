"""Events that the embedded cluster's own parts write, as `kubectl describe` shows them. Repeats are counted, not listed."""

from __future__ import annotations

import hashlib

from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.operations import Operations
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import timestamp
from navarch.object_types import Manifest


class Recorder:
    """Writes core/v1 Events in the name of one component."""

    def __init__(self, operations: Operations, component: str) -> None:
        self._operations = operations
        self._store = operations.store
        self._kind = operations.kind("events")
        self.component = component

    def normal(self, about: Record, reason: str, message: str, host: str = "") -> None:
        self._write("Normal", about, reason, message, host)

    def warning(self, about: Record, reason: str, message: str, host: str = "") -> None:
        self._write("Warning", about, reason, message, host)

    def _write(self, severity: str, about: Record, reason: str, message: str, host: str) -> None:
        namespace = about.namespace or "default"
        digest = hashlib.sha1(f"{self.component}|{about.uid}|{reason}|{message}".encode(), usedforsecurity=False)
        name = f"{about.name[:220]}.{digest.hexdigest()[:16]}"
        now = timestamp(self._store.clock())
        if self._store.find("events", namespace, name) is not None:
            self._store.modify("events", namespace, name, lambda event: _again(event, now))
            return
        obj = about.obj
        involved = {
            "apiVersion": obj.get("apiVersion", ""),
            "kind": obj.get("kind", ""),
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": str(about.revision),
        }
        if about.namespace:
            involved["namespace"] = about.namespace
        event: Manifest = {
            "metadata": {"name": name},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": severity,
            "source": {"component": self.component, **({"host": host} if host else {})},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "reportingComponent": self.component,
            "reportingInstance": host,
        }
        try:
            self._operations.create(self._kind, namespace, event)
        except ApiError as error:
            if error.code not in (403, 404):  # the namespace is being deleted or is gone: the event would go with it
                raise


def _again(event: Manifest, now: str) -> Manifest:
    event["count"] = event.get("count", 1) + 1
    event["lastTimestamp"] = now
    return event
