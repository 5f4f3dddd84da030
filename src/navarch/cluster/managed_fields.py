"""metadata.managedFields: who set which field.

(Filled in with server-side apply.)
"""

from __future__ import annotations

from navarch.cluster.kinds import Kind
from navarch.cluster.record import Manifest
from navarch.cluster.writing import WriteOptions


def track(kind: Kind, obj: Manifest, old: Manifest | None, options: WriteOptions, subresource: str, now: float) -> None:
    """Note in `obj` what this write set."""
