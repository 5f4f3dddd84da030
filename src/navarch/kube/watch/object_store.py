"""The objects of one kind as last seen, and the exact difference told to a handler.

No I/O: an informer feeds it events and whole lists, tests do so directly. What holds, however the stream behaves:

- A handler hears `added` once for an object, then `updated` for each newer version, then `deleted` once. Never an event
  twice, never one that goes back in time. `deleted(old)` gets the object as the handler last saw it, so that what it
  added up can be taken off again.
- Objects are told apart by uid. An object that was deleted and made again under the same name while nobody watched
  is `deleted(old)` and `added(new)`.
- A whole list replaces what is known: what vanished is deleted first, then the list is gone through in its order.
- A bad object (see `decoding`) goes to `on_bad`, once for each version of it. If an earlier version was good, that one
  stands, since forgetting it would free what the object still holds. Its deletion is noticed all the same.
- A handler that raises makes that object a bad one; the others are not touched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from navarch.kube.watch.decoding import BadObject, Change, HasMetadata, Metadata, key_of
from navarch.object_types import ObjectKey

log = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", contravariant=True)


class Handler(Protocol[T_contra]):
    """What is told of each change, synchronously, in the event loop: be quick, do not block."""

    def added(self, new: T_contra, /) -> None: ...
    def updated(self, old: T_contra, new: T_contra, /) -> None: ...
    def deleted(self, old: T_contra, /) -> None: ...


OnBad = Callable[[Metadata, Exception], None]


def log_bad(metadata: Metadata, error: Exception) -> None:
    """The `on_bad` of those who brought none."""
    log.warning("%s/%s (uid %s) is set aside: %s", metadata.namespace, metadata.name, metadata.uid, error)


class ObjectStore(Generic[T]):
    """`objects` by (namespace, name); `bad` holds the metadata of those set aside."""

    def __init__(self, handler: Handler[T], on_bad: OnBad = log_bad) -> None:
        self.objects: dict[ObjectKey, T] = {}
        self.bad: dict[ObjectKey, Metadata] = {}
        self._handler = handler
        self._on_bad = on_bad

    def apply(self, change: Change[T]) -> None:
        """One event of a watch."""
        new = change.object
        metadata = new.metadata
        key = (metadata.namespace or "", metadata.name)
        old = self.objects.get(key)
        if change.type == "DELETED":
            self._gone(key, metadata.uid)
        elif old is None or old.metadata.uid != metadata.uid or is_newer(metadata, old.metadata):
            self._put(key, old, new)

    def apply_bad(self, bad: BadObject) -> None:
        """One event whose object could not be decoded."""
        key = key_of(bad.metadata)
        if bad.type == "DELETED":
            self._gone(key, bad.metadata.uid)
        else:
            self._set_aside(bad)

    def replace(self, items: Iterable[T | BadObject], *, anew: bool = False) -> None:
        """The whole truth of a moment: tell the difference from what is known. `anew`: objects of the same version may look
        different from before, so all are told."""
        found: dict[ObjectKey, T | BadObject] = {key_of(item.metadata): item for item in items}
        for key in sorted(self.objects.keys() - found.keys()):
            self._gone(key, self.objects[key].metadata.uid)
        for key in sorted(self.bad.keys() - found.keys()):
            del self.bad[key]
        for key in list(found):
            # Taken out one by one: a handler that keeps less than the object lets go of the rest at once.
            item = found.pop(key)
            if isinstance(item, BadObject):
                self._set_aside(item)
                continue
            old = self.objects.get(key)
            new = item.metadata
            if anew or old is None or (old.metadata.uid, old.metadata.resource_version) != (new.uid, new.resource_version):
                self._put(key, old, item)

    def _put(self, key: ObjectKey, old: T | None, new: T) -> None:
        self.objects[key] = new
        if self.bad:
            self.bad.pop(key, None)
        if old is None:
            self._tell(new.metadata, self._handler.added, new)
        elif old.metadata.uid == new.metadata.uid:
            try:
                self._handler.updated(old, new)
            except Exception as error:
                self._refused(new.metadata, error)
        else:
            self._tell(old.metadata, self._handler.deleted, old)
            self._tell(new.metadata, self._handler.added, new)

    def _gone(self, key: ObjectKey, uid: str | None) -> None:
        bad = self.bad.get(key)
        if bad is not None and bad.uid == uid:
            del self.bad[key]
        old = self.objects.get(key)
        if old is not None and old.metadata.uid == uid:
            del self.objects[key]
            self._tell(old.metadata, self._handler.deleted, old)

    def _set_aside(self, bad: BadObject) -> None:
        key = key_of(bad.metadata)
        old = self.objects.get(key)
        if old is not None and old.metadata.uid != bad.metadata.uid:
            self._gone(key, old.metadata.uid)
        known = self.bad.get(key)
        if known is not None and known.uid == bad.metadata.uid:
            if known.resource_version == bad.metadata.resource_version:
                return
        self.bad[key] = bad.metadata
        self._on_bad(bad.metadata, bad.error)

    def _tell(self, metadata: Metadata, callback: Callable[[T], None], argument: T) -> None:
        try:
            callback(argument)
        except Exception as error:
            self._refused(metadata, error)

    def _refused(self, metadata: Metadata, error: Exception) -> None:
        log.exception("handler failed on %s/%s (uid %s)", metadata.namespace, metadata.name, metadata.uid)
        self._on_bad(metadata, error)


def is_newer(metadata: Metadata, than: Metadata) -> bool:
    """Resource versions are decimal integers on every API server in use; others can only be told equal or not."""
    new, old = metadata.resource_version, than.resource_version
    if new == old:
        return False
    try:
        return int(new or "0") > int(old or "0")
    except ValueError:
        return True
