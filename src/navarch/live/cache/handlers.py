"""Between informers and the cache: read each object with its dialect, set aside what cannot be read.

A bad object never stops the others: it is counted, told once for each of its versions, and what was known of it before stands
(forgetting a running pod would give its node away a second time). Of a pod that holds a node and was never good, what can be read
counts (see `read_partial_pod`), and if that does not say how much it holds, its node takes no more pods (see `unread`).

Nodes, and pods that have one, are the bulk of a large cluster. Once the cache has read them, the informer's store keeps no
more of them than who they are: half of the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from navarch.apis.core.kept_objects import kept_spec
from navarch.apis.core.nodes import Node
from navarch.apis.core.objects import KubeObject, Metadata
from navarch.apis.core.partial_pod import PartialPod, read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.errors import ObjectError
from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import Metadata as AnyMetadata
from navarch.kube.watch.decoding import key_of
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cache.watched_kinds import Watched
from navarch.object_types import ObjectKey

OnInvalid = Callable[[str, Resource, AnyMetadata, Exception], None]
"""kind, resource, metadata of the object, what is wrong with it."""


class PartiallyRead(Exception):
    """What is wrong with a pod of which a part can be read, and what comes of it."""


class PodHandler:
    """`store` is the informer's, set once that is there."""

    def __init__(self, cache: ClusterCache, resource: Resource, on_invalid: OnInvalid) -> None:
        self.store: dict[tuple[str, str], Pod] = {}
        self._cache = cache
        self._resource = resource
        self._on_invalid = on_invalid

    def added(self, new: Pod, /) -> None:
        self._put(new, None)

    def updated(self, old: Pod, new: Pod, /) -> None:
        self._put(new, old)

    def _put(self, new: Pod, old: Pod | None) -> None:
        if isinstance(new, PartialPod):
            self._put_half(new)
            return
        keep = False  # of a version that was not read: the next one must not be taken for one that reads like it
        try:
            self._cache.put_pod(new, old)
            keep = not new.spec.node_name
        except ObjectError as error:
            half = read_partial_pod(new, error)
            if half is not None:
                self._put_half(half)
            else:
                self._on_invalid("Pod", self._resource, new.metadata, error)
        finally:
            if not keep:
                self._shrink(new)

    def _put_half(self, pod: PartialPod) -> None:
        try:
            what = self._cache.put_partial(pod)
            self._on_invalid("Pod", self._resource, pod.metadata, PartiallyRead(f"{pod.error}; {what}"))
        finally:
            self._shrink(pod)

    def _shrink(self, pod: Pod) -> None:
        meta = pod.metadata
        self.store[meta.namespace or "", meta.name] = Pod(metadata=_who(meta))

    def deleted(self, old: Pod, /) -> None:
        self._cache.remove_pod(old.metadata.uid or old.key)

    def bad(self, metadata: AnyMetadata, error: Exception) -> None:
        self._on_invalid("Pod", self._resource, metadata, error)


class KindHandler:
    """Every kind but pods."""

    def __init__(self, cache: ClusterCache, watched: Watched, resource: Resource, on_invalid: OnInvalid) -> None:
        self.store: dict[tuple[str, str], KubeObject] = {}
        self._cache = cache
        self.kind = watched
        self.resource = resource
        """The version that is watched now."""
        self._on_invalid = on_invalid
        self._standing: dict[ObjectKey, Any] = {}
        """Of objects whose newest version is bad: the last good one, which the cache still has."""

    def added(self, new: KubeObject, /) -> None:
        self._put(new, None)

    def updated(self, old: KubeObject, new: KubeObject, /) -> None:
        self._put(new, old)

    def _put(self, new: KubeObject, old: KubeObject | None) -> None:
        try:
            self._cache.put(self._read(new), _version(new))
            if self._standing:
                self._standing.pop(key_of(new.metadata), None)
        except ObjectError as error:
            if old is not None:
                self._remember(old)
            self._on_invalid(self.kind.kind, self.resource, new.metadata, error)
        if isinstance(new, Node):
            self.store["", new.metadata.name] = Node(metadata=_who(new.metadata))

    def _remember(self, old: KubeObject) -> None:
        try:
            self._standing[key_of(old.metadata)] = self._read(old)
        except ObjectError:
            return  # bad as well: what stood before it stands

    def deleted(self, old: KubeObject, /) -> None:
        standing = self._standing.pop(key_of(old.metadata), None)
        try:
            self._cache.remove(standing or self._read(old))
        except ObjectError:
            # It never was good, so the cache knows nothing of it.
            return

    def bad(self, metadata: AnyMetadata, error: Exception) -> None:
        self._on_invalid(self.kind.kind, self.resource, metadata, error)

    def _read(self, found: KubeObject) -> Any:
        if not found.api_version:
            found = msgspec.structs.replace(found, api_version=self.resource.api_version)
        if self.kind.reader is not None:
            return self.kind.reader.read(found, self._cache.settings)
        return kept_spec(found, self.kind.kind)


def _who(meta: Metadata) -> Metadata:
    return Metadata(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)


def _version(found: KubeObject) -> int:
    text = found.metadata.resource_version or ""
    return int(text) if text.isdecimal() else 0
