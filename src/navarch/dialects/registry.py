"""The dialects there are. A new one is one file with a `DIALECT`, and one line here."""

from __future__ import annotations

from navarch.dialects import kube_batch, node, volcano
from navarch.dialects.dialect import Dialect, Kind

DIALECTS: tuple[Dialect, ...] = (
    Dialect("kubernetes", node.KINDS),
    kube_batch.DIALECT,
    volcano.DIALECT,
)

KINDS: dict[tuple[str, str], Kind] = {
    (version, kind.kind): kind for dialect in DIALECTS for kind in dialect.kinds for version in kind.api_versions
}
"""(apiVersion, kind) -> how it is read. Pods are not here: `pod.PodReader` reads them, with the job they belong to."""
