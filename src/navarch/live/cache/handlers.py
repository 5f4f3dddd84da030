"""Between informers and the cache: reads each object, and reports what cannot be read.

An invalid object never stops the others. It is counted and reported once for each of its versions, and its last valid version stays:
forgetting a running pod would give its node away twice. If a pod that holds a node never was valid, the part of it that can be read
counts (see `read_partial_pod`). If that part does not say how much it holds, its node takes no more pods (see `unreadable_pods`).

Nodes, and pods that have one, are most of a large cluster. Once the cache has read them, the informer's store keeps only their names
and versions. That saves half of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from navarch.apis.core.kept_objects import kept_spec
from navarch.apis.core.nodes import Node
from navarch.apis.core.objects import KubeObject, Metadata, check_name
from navarch.apis.core.partial_pod import PartialPod, read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.errors import ObjectError
from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import Metadata as AnyMetadata
from navarch.kube.watch.decoding import key_of
from navarch.live.cache.watched_kinds import Watched
from navarch.object_types import ObjectKey

OnInvalid = Callable[[str, Resource, AnyMetadata, Exception], None]
"""kind, resource, metadata of the object, what is wrong with it."""


class ObjectCache(Protocol):
    """What informers fill: the cache of the live scheduler, or that of the dashboard."""

    settings: Settings

    @property
    def pods(self) -> dict[ObjectKey, Pod]:
        """The pod informer's store."""

    def put_pod(self, pod: Pod, old: Pod | None = None) -> None: ...

    def put_new_pods(self, pods: Iterable[Pod]) -> list[tuple[Pod, ObjectError]]: ...

    def put_partial(self, pod: PartialPod) -> str: ...

    def remove_pod(self, uid: str) -> None: ...

    def contradiction(self, pod: Pod) -> str:
        """What of a newer version of the pod cannot be, by what is known of it; empty: nothing."""

    def put(self, spec: Spec, version: int = 0) -> None: ...

    def remove(self, spec: Spec) -> None: ...


class PartiallyRead(Exception):
    """What is wrong with a pod that can be read in part, and what follows from it."""


class PodHandler:
    """Pods. The informer's store is `cache.pods`."""

    def __init__(self, cache: ObjectCache, resource: Resource, on_invalid: OnInvalid) -> None:
        self._cache = cache
        self._resource = resource
        self._on_invalid = on_invalid

    def added(self, new: Pod, /) -> None:
        self._put(new, None)

    def added_all(self, new: Iterator[Pod], /) -> None:
        """Many pods of a list at once, with the outcome of `added` for each."""
        for unread, problem in self._cache.put_new_pods(self._readable(new)):
            self._put_unread(unread, problem)

    def _readable(self, new: Iterator[Pod]) -> Iterator[Pod]:
        """Pods that can be read. When the next one is asked for, a pod was read, and the store forgets most of it if it has a node."""
        for pod in new:
            if isinstance(pod, PartialPod):
                self._put_partial(pod)
                continue
            try:
                check_name("Pod", pod.metadata)
            except ObjectError as error:
                self._put_unread(pod, error)
                continue
            yield pod
            if pod.spec.node_name:
                self._shrink(pod)

    def updated(self, old: Pod, new: Pod, /) -> None:
        self._put(new, old)

    def _put(self, new: Pod, old: Pod | None) -> None:
        if isinstance(new, PartialPod):
            self._put_partial(new)
            return
        keep = False  # a version that was not read must not be compared with the next one
        try:
            check_name("Pod", new.metadata)
            self._cache.put_pod(new, old)
            keep = not new.spec.node_name
        except ObjectError as error:
            self._put_unread(new, error)
        finally:
            if not keep:
                self._shrink(new)

    def _put_unread(self, pod: Pod, error: ObjectError) -> None:
        """A pod with a mistake counts by what can be read of it, or is reported."""
        try:
            partial = read_partial_pod(pod, error)
            if partial is not None:
                self._put_partial(partial)
            else:
                self._on_invalid("Pod", self._resource, pod.metadata, error)
        finally:
            self._shrink(pod)

    def _put_partial(self, pod: PartialPod) -> None:
        try:
            what = self._cache.put_partial(pod)
            self._on_invalid("Pod", self._resource, pod.metadata, PartiallyRead(f"{pod.error}; {what}"))
        finally:
            self._shrink(pod)

    def _shrink(self, pod: Pod) -> None:
        meta = pod.metadata
        self._cache.pods[meta.namespace or "", meta.name] = Pod(metadata=_identity(meta))

    def deleted(self, old: Pod, /) -> None:
        self._cache.remove_pod(old.metadata.uid or old.key)

    def bad(self, metadata: AnyMetadata, error: Exception) -> None:
        self._on_invalid("Pod", self._resource, metadata, error)


class KindHandler:
    """Every kind but pods. `objects` is the informer's store."""

    def __init__(
        self,
        cache: ObjectCache,
        watched: Watched,
        resource: Resource,
        on_invalid: OnInvalid,
        objects: dict[ObjectKey, KubeObject] | None = None,
    ) -> None:
        self._objects = {} if objects is None else objects
        self._cache = cache
        self.kind = watched
        self.resource = resource
        """The version that is watched now."""
        self._on_invalid = on_invalid
        self._last_valid: dict[ObjectKey, Any] = {}
        """The last valid version of objects whose newest one is invalid; the cache still has it."""

    def added(self, new: KubeObject, /) -> None:
        self._put(new, None)

    def updated(self, old: KubeObject, new: KubeObject, /) -> None:
        self._put(new, old)

    def _put(self, new: KubeObject, old: KubeObject | None) -> None:
        try:
            self._cache.put(self._read(new), _version(new))
            if self._last_valid:
                self._last_valid.pop(key_of(new.metadata), None)
        except ObjectError as error:
            if old is not None:
                self._remember(old)
            self._on_invalid(self.kind.kind, self.resource, new.metadata, error)
        if isinstance(new, Node):
            self._objects["", new.metadata.name] = Node(metadata=_identity(new.metadata))

    def _remember(self, old: KubeObject) -> None:
        try:
            self._last_valid[key_of(old.metadata)] = self._read(old)
        except ObjectError:
            return  # invalid as well: the version before it stays

    def deleted(self, old: KubeObject, /) -> None:
        last_valid = self._last_valid.pop(key_of(old.metadata), None)
        try:
            self._cache.remove(last_valid or self._read(old))
        except ObjectError:
            # It never was valid, so the cache does not have it.
            return

    def bad(self, metadata: AnyMetadata, error: Exception) -> None:
        self._on_invalid(self.kind.kind, self.resource, metadata, error)

    def _read(self, found: KubeObject) -> Any:
        if not found.api_version:
            found = msgspec.structs.replace(found, api_version=self.resource.api_version)
        check_name(self.kind.kind, found.metadata)
        if self.kind.reader is not None:
            return self.kind.reader.read(found, self._cache.settings)
        return kept_spec(found, self.kind.kind)


def _identity(meta: Metadata) -> Metadata:
    return Metadata(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)


def _version(found: KubeObject) -> int:
    text = found.metadata.resource_version or ""
    return int(text) if text.isdecimal() else 0
