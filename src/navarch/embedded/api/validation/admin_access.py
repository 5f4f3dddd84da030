"""Administrative access to devices: only claims of a namespace with the label may ask for it, and only such claims get it.

kube-apiserver checks this when a claim or its template is created and when devices are written to a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from navarch.embedded.api.errors import cause, invalid
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.writing import WriteOptions
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest

LABEL = "resource.kubernetes.io/admin-access"
CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
Hook = Callable[[Kind, Manifest, Manifest | None, WriteOptions], None]


def admin_access_hooks(store: Store) -> dict[str, Hook]:
    """Resource -> what is asked before an object of it is stored."""

    def check(kind: Kind, obj: Manifest, old: Manifest | None, _: WriteOptions) -> None:
        path = _asked(kind, obj) if old is None else "" if _granted(old) else _granted(obj)
        if not path:
            return
        metadata = obj["metadata"]
        namespace = store.find("namespaces", "", metadata["namespace"])
        if namespace is None or (namespace.obj["metadata"].get("labels") or {}).get(LABEL) != "true":
            why = f"Forbidden: admin access to devices requires the `{LABEL}: true` label on the containing namespace"
            raise invalid(kind.kind, kind.group, metadata["name"], [cause("FieldValueForbidden", why, path)])

    return {CLAIMS: check, TEMPLATES: check}


def _asked(kind: Kind, obj: Manifest) -> str:
    """The first request for administrative access; empty if there is none."""
    spec = obj.get("spec") or {}
    if kind.resource == TEMPLATES:
        spec = spec.get("spec") or {}
    requests = (spec.get("devices") or {}).get("requests") or ()
    return _first(((request.get("exactly") or request) for request in requests), "spec.devices.requests")


def _granted(obj: Manifest) -> str:
    """The first device that is given with administrative access; empty if there is none."""
    given = ((obj.get("status") or {}).get("allocation") or {}).get("devices") or {}
    return _first(given.get("results") or (), "status.allocation.devices.results")


def _first(entries: Iterable[Any], path: str) -> str:
    found = (number for number, entry in enumerate(entries) if isinstance(entry, dict) and entry.get("adminAccess") is True)
    number = next(found, None)
    return "" if number is None else f"{path}[{number}].adminAccess"
