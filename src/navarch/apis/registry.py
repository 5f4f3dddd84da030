"""All dialects, in order of precedence. A new dialect is a module with a `DIALECT`, and one line here."""

from __future__ import annotations

from navarch.apis import coscheduling, kube_batch
from navarch.apis.core import nodes as node
from navarch.apis.dialect import Dialect, Kind
from navarch.apis.kai import podgroups as kai
from navarch.apis.upstream import podgroups as upstream
from navarch.apis.volcano import podgroups as volcano

DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "kubernetes",
        node.KINDS,
        kept=(
            "CSIDriver",
            "CSINode",
            "CSIStorageCapacity",
            "DeviceClass",
            "DeviceTaintRule",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ReplicaSet",
            "ReplicationController",
            "ResourceClaim",
            "ResourceClaimTemplate",
            "ResourceSlice",
            "Service",
            "StatefulSet",
            "StorageClass",
            "VolumeAttachment",
        ),
    ),
    kube_batch.DIALECT,
    volcano.DIALECT,
    kai.DIALECT,
    coscheduling.DIALECT,
    upstream.DIALECT,
)

RANK: dict[str, int] = {dialect.name: number for number, dialect in enumerate(DIALECTS)}
"""Precedence of dialects: of two objects with one name, the one whose dialect has the lower number wins."""

KINDS: dict[tuple[str, str], Kind] = {
    (version, kind.kind): kind for dialect in DIALECTS for kind in dialect.kinds for version in kind.api_versions
}
"""(apiVersion, kind) -> how it is read. Pods are not here: `ingest.pod_reader` reads them."""

KEPT: frozenset[str] = frozenset(kind for dialect in DIALECTS for kind in dialect.kept)
"""Kinds that some plugins read as they are, through `Cluster.objects`."""
