"""Server-side apply (placeholder until managed fields are in)."""
from __future__ import annotations

from typing import Any

from navarch.cluster.errors import bad_request
from navarch.cluster.kinds import Kind
from navarch.cluster.operations import Operations
from navarch.cluster.record import Record
from navarch.cluster.writing import WriteOptions


def apply_patch(operations: Operations, kind: Kind, namespace: str, name: str, patch: Any, options: WriteOptions, subresource: str) -> tuple[Record, bool]:
    raise bad_request("apply is not there yet")
