"""Create objects from manifests in process: as `kubectl create` does, without a kubectl. What exists is left as it is."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.embedded.api.errors import bad_request
from navarch.embedded.api.operations import Operations
from navarch.embedded.storage.record import Record
from navarch.object_types import Manifest


def create_all(operations: Operations, documents: Iterable[Manifest]) -> list[Record]:
    """The objects as they are stored now, in the order of the documents."""
    found = []
    for document in documents:
        kind = operations.registry.of_object(document)
        if kind is None:
            raise bad_request(f"no kind {document.get('kind')!r} in version {document.get('apiVersion')!r} is served")
        metadata = document.get("metadata") or {}
        namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
        name = metadata.get("name")
        record = operations.store.find(kind.stored, namespace, name) if name else None
        found.append(record or operations.create(kind, namespace, document))
    return found
