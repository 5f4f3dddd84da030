"""Other forms of an answer: a Table for people (what `kubectl get` prints) and metadata alone (for metadata informers)."""

from __future__ import annotations

import time
from typing import Any, Protocol

import msgspec

from navarch.embedded.api.input.bodies import Accepted
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.output.columns import columns_of
from navarch.embedded.storage.record import Record
from navarch.object_types import Manifest

_encode = msgspec.json.encode


class Form(Protocol):
    """How records are written if the client accepts something else than the plain object."""

    def one(self, record: Record) -> bytes: ...

    def many(self, records: list[Record], metadata: dict[str, Any]) -> bytes: ...

    def watched(self, record: Record, first: bool) -> bytes: ...


def form_of(accepted: Accepted, kind: Kind, include: str) -> Form | None:
    """The form that a client asked for; None for plain objects."""
    if accepted.shape == "Table":
        return TableForm(kind, accepted.version, include or "Metadata")
    if accepted.shape in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        return MetadataForm(accepted.version)
    return None


def partial_object(metadata: Manifest, version: str) -> Manifest:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


class MetadataForm:
    """metav1.PartialObjectMetadata."""

    def __init__(self, version: str) -> None:
        self._version = version

    def one(self, record: Record) -> bytes:
        return _encode(partial_object(record.obj["metadata"], self._version))

    def many(self, records: list[Record], metadata: dict[str, Any]) -> bytes:
        items = [partial_object(record.obj["metadata"], self._version) for record in records]
        kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{self._version}"
        return _encode({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})

    def watched(self, record: Record, first: bool) -> bytes:
        return self.one(record)


class TableForm:
    """metav1.Table with the columns of a kind."""

    def __init__(self, kind: Kind, version: str, include: str) -> None:
        self._kind = kind
        self._version = version
        self._include = include
        self._columns = columns_of(kind)

    def one(self, record: Record) -> bytes:
        return self._table([record], {"resourceVersion": str(record.revision)}, True)

    def many(self, records: list[Record], metadata: dict[str, Any]) -> bytes:
        return self._table(records, metadata, True)

    def watched(self, record: Record, first: bool) -> bytes:
        return self._table([record], {"resourceVersion": str(record.revision)}, first)

    def _table(self, records: list[Record], metadata: dict[str, Any], with_columns: bool) -> bytes:
        now = time.time()
        definitions = [column.definition() for column in self._columns] if with_columns else None
        return _encode(
            {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self._version}",
                "metadata": metadata,
                "columnDefinitions": definitions,
                "rows": [self._row(record, now) for record in records],
            }
        )

    def _row(self, record: Record, now: float) -> Manifest:
        obj = record.obj
        row: Manifest = {"cells": [column.read(obj, now) for column in self._columns]}
        if self._include == "Metadata":
            row["object"] = partial_object(obj["metadata"], self._version)
        elif self._include == "Object":
            served = self._kind.from_storage(record.decode()) if self._kind.from_storage else obj
            row["object"] = served
        return row
