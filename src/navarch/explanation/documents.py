"""The input of an explanation as objects that can be changed: which object is which, and the input with some changed or removed.

A change names whole objects. An object of the input is replaced where it stands, a new one is added at the end, and what
`remove` names is left out. A user can do the same with files, and `navarch plan` then decides for the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from navarch.object_types import ReadOnlyManifest
from navarch.offline.manifests import Document

Identity = tuple[str, str, str]
"""API group and kind, namespace, name."""
CLUSTER_SCOPED = frozenset(
    {
        "CSIDriver",
        "CSINode",
        "DeviceClass",
        "DeviceTaintRule",
        "HyperNode",
        "Namespace",
        "Node",
        "NodeShard",
        "Numatopology",
        "PersistentVolume",
        "PriorityClass",
        "Queue",
        "ResourceSlice",
        "RuntimeClass",
        "StorageClass",
        "Topology",
        "VolumeAttachment",
    }
)
"""Kinds without a namespace among those that scheduling reads."""


def identify(manifest: ReadOnlyManifest) -> Identity:
    """What may exist once: a name in a namespace for each kind of each API group."""
    metadata = manifest.get("metadata") or {}
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return f"{group}/{manifest.get('kind', '')}", str(metadata.get("namespace") or "default"), str(metadata.get("name", ""))


def reference(manifest: ReadOnlyManifest) -> str:
    """`Kind/namespace/name`, or `Kind/name` for an object without a namespace.

    >>> reference({"kind": "Pod", "metadata": {"name": "a"}}), reference({"kind": "Node", "metadata": {"name": "n"}})
    ('Pod/default/a', 'Node/n')
    """
    kind, metadata = str(manifest["kind"]), manifest["metadata"]
    name = str(metadata["name"])
    return f"{kind}/{name}" if kind in CLUSTER_SCOPED else f"{kind}/{metadata.get('namespace') or 'default'}/{name}"


def copied(value: Any) -> Any:
    """Plain mappings and lists that share nothing with the value."""
    if isinstance(value, Mapping):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [copied(each) for each in value]
    return value


class Input:
    """The objects of an explanation, in their order."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = list(documents)
        self._place: dict[Identity, int] = {}
        self._references: dict[str, list[int]] = {}
        self._kinds: dict[str, list[int]] = {}
        for number, document in enumerate(self.documents):
            manifest = document.manifest
            kind, metadata = manifest.get("kind"), manifest.get("metadata")
            if isinstance(metadata, Mapping) and isinstance(metadata.get("name"), str) and isinstance(kind, str):
                self._place.setdefault(identify(manifest), number)
                self._references.setdefault(reference(manifest), []).append(number)
                self._kinds.setdefault(kind, []).append(number)

    def find(self, kind: str, namespace: str, name: str) -> list[ReadOnlyManifest]:
        """Objects of this kind and name, of whatever API group."""
        key = f"{kind}/{name}" if kind in CLUSTER_SCOPED else f"{kind}/{namespace}/{name}"
        return [self.documents[number].manifest for number in self._references.get(key, ())]

    def of_kind(self, *kinds: str) -> list[ReadOnlyManifest]:
        """In the order of the input, for each kind."""
        return [self.documents[number].manifest for kind in kinds for number in self._kinds.get(kind, ())]

    def has(self, manifest: ReadOnlyManifest) -> bool:
        return identify(manifest) in self._place

    def changed(
        self, objects: Iterable[Mapping[str, Any]] = (), remove: Iterable[str] = (), *, at_end: bool = False
    ) -> list[Document]:
        """The input with a change. `at_end`: changed objects move to the end of the list."""
        out: list[Document | None] = list(self.documents)
        added: list[Document] = []
        for each in remove:
            for number in self._references.get(each, ()):
                out[number] = None
        for manifest in objects:
            place = self._place.get(identify(manifest))
            if place is None:
                added.append(Document(manifest))
            elif at_end:
                out[place] = None
                added.append(Document(manifest, self.documents[place].source))
            else:
                out[place] = Document(manifest, self.documents[place].source)
        return [each for each in out if each is not None] + added
