"""The objects of one kind as last seen. A handler receives each difference exactly once.

It does no I/O: an informer passes in events and whole lists. Whatever the stream does, these hold:

- For an object a handler gets `added` once, then `updated` for each newer version, then `deleted` once. It never gets an event
  twice or an older version. `deleted(old)` has the object as the handler last received it, so that it can subtract what it added.
- Objects are identified by uid. An object that was deleted and created again under the same name between two lists gives
  `deleted(old)` and `added(new)`.
- A whole list replaces what is known: missing objects are deleted first, then the list is processed in its order.
- A bad object (see `decoding`) goes to `on_bad`, once for each of its versions. If an earlier version was good, it stays: forgetting
  it would free what the object still holds. The deletion of a bad object is still recognised.
- If a handler raises, that object becomes a bad one; the others are not affected.

Bytes of a watch can be corrupted so that they are JSON still. An event that contradicts what is known is not applied (`BrokenStream`):
an object without uid or version, a change of an object that is not there, another uid without a deletion before, or what the caller
knows of the kind (`contradiction`). The informer then lists again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from navarch.kube.errors import KubeError
from navarch.kube.watch.decoding import BadObject, BrokenStream, Change, HasMetadata, Metadata, key_of
from navarch.object_types import ObjectKey

log = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", contravariant=True)


class Handler(Protocol[T_contra]):
    """Called for each change, synchronously in the event loop: it must be quick and must not block."""

    def added(self, new: T_contra, /) -> None: ...
    def updated(self, old: T_contra, new: T_contra, /) -> None: ...
    def deleted(self, old: T_contra, /) -> None: ...


class BulkHandler(Handler[T_contra], Protocol[T_contra]):
    """A handler that takes the new objects of a list many at a time, with the outcome of `added` for each. They can be read once."""

    def added_all(self, new: Iterator[T_contra], /) -> None: ...


BATCH = 2000
"""Objects of a list that a handler receives at once. The store holds each whole until its batch is handled."""
OnBad = Callable[[Metadata, Exception], None]


def log_bad(metadata: Metadata, error: Exception) -> None:
    """The default for `on_bad`."""
    log.warning("%s/%s (uid %s) cannot be read: %s", metadata.namespace, metadata.name, metadata.uid, error)


class ObjectStore(Generic[T]):
    """`objects` by (namespace, name), in the given dict if its owner shares it; `bad` holds the metadata of bad objects."""

    def __init__(
        self,
        handler: Handler[T],
        on_bad: OnBad = log_bad,
        objects: dict[ObjectKey, T] | None = None,
        contradiction: Callable[[T], str] | None = None,
    ) -> None:
        """`contradiction(new)`: what of a newer version cannot be, by what is known of the object; empty: nothing."""
        self._contradiction = contradiction
        self.objects: Final = {} if objects is None else objects
        self.bad: dict[ObjectKey, Metadata] = {}
        self._handler = handler
        self._added_all: Callable[[Iterator[T]], None] | None = getattr(handler, "added_all", None)
        self._on_bad = on_bad

    def apply(self, change: Change[T]) -> None:
        """One event of a watch."""
        new = change.object
        metadata = new.metadata
        key = (metadata.namespace or "", metadata.name)
        old = self.objects.get(key)
        known = old.metadata if old is not None else self.bad.get(key)
        if change.type == "DELETED":
            self._gone(key, metadata.uid)
            return
        if not metadata.uid or not metadata.resource_version:
            raise _broken(change, "it has no uid or no resourceVersion")
        if known is None and change.type == "MODIFIED":
            raise _broken(change, "it is not known")
        if known is not None and known.uid != metadata.uid:
            raise _broken(change, f"it is known with the uid {known.uid}, and was not deleted")
        if old is None or is_newer(metadata, old.metadata):
            if old is not None and self._contradiction is not None and (wrong := self._contradiction(new)):
                raise _broken(change, wrong)
            self._put(key, old, new)

    def apply_bad(self, bad: BadObject) -> None:
        """One event whose object could not be decoded."""
        key = key_of(bad.metadata)
        if bad.type == "DELETED":
            self._gone(key, bad.metadata.uid)
        else:
            self._report_bad(bad)

    def replace(self, items: Iterable[T | BadObject], *, anew: bool = False) -> None:
        """A whole list: pass the difference on to the handler. `anew`: pass on all objects, because objects of the same version may
        look different."""
        found: dict[ObjectKey, T | BadObject] = {key_of(item.metadata): item for item in items}
        for key in sorted(self.objects.keys() - found.keys()):
            self._gone(key, self.objects[key].metadata.uid)
        for key in sorted(self.bad.keys() - found.keys()):
            del self.bad[key]
        keys = list(found)
        # One batch after the other: a handler that keeps only a part of an object frees the rest at once.
        for start in range(0, len(keys), BATCH):
            self.add([found.pop(key) for key in keys[start : start + BATCH]], anew=anew)

    def with_known(self, items: Iterable[T | BadObject]) -> Iterator[T | BadObject]:
        """A part of a whole list. The stored object stands for each one of the same version, so a list that is gathered to replace
        what is known takes little memory beside it."""
        for item in items:
            old = None if isinstance(item, BadObject) else self.objects.get(key_of(item.metadata))
            yield item if old is None or _version(old.metadata) != _version(item.metadata) else old

    def add(self, items: Iterable[T | BadObject], *, anew: bool = False) -> None:
        """A part of a whole list, each object once: pass new and changed objects on to the handler. `anew` is that of `replace`.

        A handler that takes many at a time handles each object before the next is read from `items`. If it fails, `items` are read
        again and passed on one by one, so that the failure stays with its object."""
        new: set[ObjectKey] = set()
        if self._added_all is None:
            for item in self._new(items, anew, new):
                self._tell(item.metadata, self._handler.added, item)
            return
        try:
            self._added_all(self._new(items, anew, new))
        except Exception as error:
            # The watch goes on, and no object is lost because of another one in its list.
            if not isinstance(error, KubeError):  # else the list itself cannot be read, and reading it again tells so
                log.exception("handler failed on %d new objects; passing them on one by one", len(new))
            self._add_again(items, anew, new)

    def _add_again(self, items: Iterable[T | BadObject], anew: bool, new: set[ObjectKey]) -> None:
        """`add` without the handler's way for many. `new`: what was stored already."""
        for item in items:
            if not isinstance(item, BadObject) and key_of(item.metadata) in new:
                self._put(key_of(item.metadata), None, item)
                continue
            for found in self._new((item,), anew, set()):
                self._tell(found.metadata, self._handler.added, found)

    def _new(self, items: Iterable[T | BadObject], anew: bool, keys: set[ObjectKey]) -> Iterator[T]:
        """Store new objects, give them and add their keys to `keys`. Changed and bad objects are passed on."""
        for item in items:
            if isinstance(item, BadObject):
                self._report_bad(item)
                continue
            new = item.metadata
            key = (new.namespace or "", new.name)
            old = self.objects.get(key)
            if old is None:
                self.objects[key] = item
                if self.bad:
                    self.bad.pop(key, None)
                keys.add(key)
                yield item
            elif anew or (old.metadata.uid, old.metadata.resource_version) != (new.uid, new.resource_version):
                self._put(key, old, item)

    def _put(self, key: ObjectKey, old: T | None, new: T) -> None:
        self.objects[key] = new
        if self.bad:
            self.bad.pop(key, None)
        if old is None:
            self._tell(new.metadata, self._handler.added, new)
        elif old.metadata.uid == new.metadata.uid:
            self._tell(new.metadata, partial(self._handler.updated, old), new)
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

    def _report_bad(self, bad: BadObject) -> None:
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
            # The watch goes on: an object that the handler fails on is reported as invalid, and costs the others nothing.
            log.exception("handler failed on %s/%s (uid %s)", metadata.namespace, metadata.name, metadata.uid)
            self._on_bad(metadata, error)


def _broken(change: Change[T], why: str) -> BrokenStream:
    metadata = change.object.metadata
    return BrokenStream(f"watch: {change.type} of {metadata.namespace}/{metadata.name} (uid {metadata.uid}): {why}")


def _version(metadata: Metadata) -> tuple[str | None, str | None]:
    return metadata.uid, metadata.resource_version


def is_newer(metadata: Metadata, than: Metadata) -> bool:
    """Resource versions are decimal integers on every API server in use; others can only be compared for equality."""
    new, old = metadata.resource_version, than.resource_version
    if new == old:
        return False
    try:
        return int(new or "0") > int(old or "0")
    except ValueError:
        return True
