"""The store: every object of the embedded cluster, one revision counter, and a feed of changes in order.

It is plain Python without HTTP, for one event loop and one thread: each method below runs to its end and is therefore
atomic. The API server, the hollow kubelets and the controllers all share one `Store`.

    store = Store()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}
    record = store.create("pods", pod)            # the store keeps `pod` itself: do not change it afterwards
    record.obj["metadata"]["resourceVersion"]     # "1": read only, shared
    pod = record.decode()                         # a copy that is yours
    pod["spec"] = {"nodeName": "n1"}
    store.update("pods", pod)                     # 409 if its resourceVersion is no longer the stored one
    store.modify("pods", "default", "a", change)  # change(copy) -> the new object, or None for no change
    store.delete("pods", "default", "a")          # gone at once: grace and finalizers are the layer above

    with store.watch("pods", since=0) as watch:   # 0: everything there is as ADDED, then changes
        async for event in watch:                 # event.type, event.obj, event.previous, event.revision
            ...

- **Names.** A resource is named by its plural, and its group after a dot where it has one: `pods`, `jobs.batch`,
  `podgroups.scheduling.volcano.sh`.
- **Revisions.** Each write takes the next integer; it becomes the object's `metadata.resourceVersion`. A write that
  changes nothing takes none and makes no event.
- **What is checked.** Only identity and revision. `operations.Operations` stands above with defaults, admission,
  validation, graceful deletion and finalizers; what a controller creates should go through there, as over HTTP.
- **Durability.** With a log (`sqlite_log.SqliteLog`) a write is visible to reads at once, to watchers when it is
  on disk; `await store.settled()` returns when all writes so far are. Without a log both are immediate.
- **Order.** Watchers see events in revision order, also when a callback of one event makes the next write.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from msgspec.json import decode

from navarch.embedded.api.errors import ApiError, already_exists, bad_request, conflict, not_found, stale, unavailable
from navarch.embedded.storage.collection import Collection, FieldsOf
from navarch.embedded.storage.feeds import Matches, Watch
from navarch.embedded.storage.record import Event, Record
from navarch.object_types import Manifest

Change = Callable[[Manifest], Manifest | None]
DECODED_RECORDS = 2048
"""How many of the newest records keep their decoded form."""


class Log(Protocol):
    """Where writes go to survive a crash. `append` returns at once; `flushed` tells when it is on disk."""

    def replay(self) -> Iterator[tuple[int, str, str, bytes | None]]:
        """(revision, resource, key, JSON or None for a deletion) in revision order."""

    @property
    def compacted(self) -> int:
        """The revision up to which old versions were removed from the log."""

    def start(self, on_flushed: Callable[[int], None], on_failed: Callable[[BaseException], None]) -> None:
        """Begin to write. On the loop: `on_flushed(revision)` when all up to it is on disk, `on_failed` if it cannot be."""

    def append(self, revision: int, resource: str, key: str, raw: bytes | None) -> None: ...

    def compact(self, revision: int) -> None: ...

    async def close(self) -> None: ...


class Store:
    """Objects by resource and key, with revisions and watches."""

    def __init__(self, log: Log | None = None, clock: Callable[[], float] = time.time) -> None:
        self.revision = 0
        self.clock = clock
        self._log = log
        self._collections: dict[str, Collection] = {}
        self._watches: dict[str, list[Watch]] = {}
        self._observers: list[Callable[[Event], None]] = []
        self._unpublished: deque[Event] = deque()
        self._publishing = False
        self._flushed = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._decoded: deque[Record] = deque()
        self._start_of_history = 0
        self._failure: ApiError | None = None
        if log is not None:
            self._restore(log)

    # ------------------------------------------------------------------ reading

    def get(self, resource: str, namespace: str, name: str) -> Record:
        """The current record; 404 if there is none."""
        record = self.find(resource, namespace, name)
        if record is None:
            raise not_found(resource, name)
        return record

    def find(self, resource: str, namespace: str, name: str) -> Record | None:
        """The current record, or None."""
        collection = self._collections.get(resource)
        return collection.items.get(f"{namespace}/{name}" if namespace else name) if collection else None

    def list(self, resource: str, namespace: str = "", matches: Matches | None = None) -> list[Record]:
        """Current records in key order; of one namespace, or of all ("")."""
        collection = self._collections.get(resource)
        if collection is None:
            return []
        found = collection.walk(namespace)
        return list(found) if matches is None else [record for record in found if matches(record)]

    def count(self, resource: str) -> int:
        collection = self._collections.get(resource)
        return len(collection.items) if collection else 0

    def collection(self, resource: str) -> Collection:
        """The collection of a resource, made when first named."""
        found = self._collections.get(resource)
        if found is None:
            found = self._collections[resource] = Collection(resource, self._start_of_history)
        return found

    def resources(self) -> Sequence[str]:
        """Names of all resources that hold, or once held, an object."""
        return sorted(self._collections)

    def select_fields(self, resource: str, fields_of: FieldsOf | None) -> None:
        """Say which fields of a resource selectors may name; existing records are indexed anew."""
        collection = self.collection(resource)
        collection.fields_of = fields_of
        remembered = [event.record for event in collection.history]
        remembered += [event.previous for event in collection.history if event.previous is not None]
        for record in [*collection.items.values(), *remembered]:
            record.fields = fields_of(record.obj) if fields_of else ()

    # ------------------------------------------------------------------ writing

    def create(self, resource: str, obj: Manifest) -> Record:
        """Store a new object; sets uid, creationTimestamp and resourceVersion on it. 409 if its name is taken."""
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise bad_request(f"{resource}: metadata.name: found nothing, expected a name")
        collection = self.collection(resource)
        namespace, name = metadata.get("namespace") or "", metadata["name"]
        if (f"{namespace}/{name}" if namespace else name) in collection.items:
            raise already_exists(resource, name)
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", timestamp(self.clock()))
        return self._write(collection, obj, None)

    def update(self, resource: str, obj: Manifest) -> Record:
        """Replace an object. 409 if `obj` carries another resourceVersion or uid than the stored one; none: replace."""
        metadata = obj["metadata"]
        current = self.get(resource, metadata.get("namespace") or "", metadata["name"])
        version = metadata.get("resourceVersion")
        if version and version != str(current.revision):
            raise stale(resource, current.name)
        uid = metadata.setdefault("uid", current.uid)
        if uid != current.uid:
            message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}"
            raise conflict(resource, current.name, message)
        return self._replace(current, obj)

    def modify(self, resource: str, namespace: str, name: str, change: Change) -> Record:
        """Apply `change` to a fresh copy of the current object and store what it returns; None leaves all as it is."""
        current = self.get(resource, namespace, name)
        changed = change(current.decode())
        return current if changed is None else self._replace(current, changed)

    def delete(self, resource: str, namespace: str, name: str, *, uid: str = "") -> Record:
        """Remove an object now and return its last state. 409 if a uid is given and differs."""
        current = self.get(resource, namespace, name)
        if uid and uid != current.uid:
            message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}"
            raise conflict(resource, name, message)
        if self._failure is not None:
            raise self._failure
        collection = self.collection(resource)
        self.revision += 1
        obj = current.decode()
        obj["metadata"]["resourceVersion"] = str(self.revision)
        gone = Record(resource, obj, self.revision, current.fields)
        collection.drop(current.key)
        self._record(collection, Event("DELETED", gone, current, self.clock()), None)
        return gone

    def _replace(self, current: Record, obj: Manifest) -> Record:
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(current.revision)
        if obj == current.obj:
            return current
        return self._write(self.collection(current.resource), obj, current)

    def _write(self, collection: Collection, obj: Manifest, previous: Record | None) -> Record:
        if self._failure is not None:
            raise self._failure
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        fields_of = collection.fields_of
        record = Record(collection.resource, obj, self.revision, fields_of(obj) if fields_of else ())
        collection.put(record)
        event = Event("MODIFIED" if previous else "ADDED", record, previous, self.clock())
        self._record(collection, event, record.raw)
        return record

    def _record(self, collection: Collection, event: Event, raw: bytes | None) -> None:
        """Put an event into history, log and feed."""
        collection.remember(event)
        self._decoded.append(event.record)
        if len(self._decoded) > DECODED_RECORDS:
            self._decoded.popleft().forget()
        self._unpublished.append(event)
        if self._log is None:
            self._flushed = event.revision
            self._publish()
        else:
            self._log.append(event.revision, collection.resource, event.record.key, raw)

    # ------------------------------------------------------------------ watching

    def watch(
        self,
        resource: str,
        since: int = 0,
        namespace: str = "",
        matches: Matches | None = None,
        limit: int = 0,
    ) -> Watch:
        """Open a feed of one resource. `since=0` begins with what exists (as ADDED); else changes after a revision.

        410 (`ApiError`) when history no longer reaches back to `since`. `limit` bounds how far a reader may fall behind
        before its watch is closed (0: without bound).
        """
        collection = self.collection(resource)
        watch = Watch(self, resource, namespace, matches, limit)
        if since:
            watch.seen = since
            watch.replay(event for event in collection.since(since) if event.revision <= self._flushed)
        else:
            now = self.clock()
            watch.replay(Event("ADDED", record, None, now) for record in collection.walk(namespace))
            watch.seen = max(watch.seen, self.revision)
        self._watches.setdefault(resource, []).append(watch)
        return watch

    def subscribe(self, resource: str, callback: Callable[[Event], None], since: int = 0) -> Watch:
        """Call `callback(event)` for each event instead of queueing it; `close()` the answer to stop."""
        watch = self.watch(resource, since)
        watch.call(callback)
        return watch

    def observe(self, callback: Callable[[Event], None]) -> None:
        """Call `callback(event)` for each event of every resource from now on, before any watch sees it."""
        self._observers.append(callback)

    def watches(self) -> Iterable[Watch]:
        """Open watches; for faults, metrics and shutdown."""
        return tuple(watch for name in sorted(self._watches) for watch in self._watches[name])

    def discard(self, watch: Watch) -> None:
        """Take a closed watch out of the feed (called by `Watch.close`)."""
        watches = self._watches.get(watch.resource, [])
        if watch in watches:
            watches.remove(watch)

    def _publish(self) -> None:
        if self._publishing:
            return
        self._publishing = True
        try:
            while self._unpublished and self._unpublished[0].revision <= self._flushed:
                event = self._unpublished.popleft()
                for observer in self._observers:
                    observer(event)
                for watch in tuple(self._watches.get(event.record.resource, ())):
                    watch.offer(event)
        finally:
            self._publishing = False

    # ------------------------------------------------------------------ durability

    async def settled(self) -> None:
        """Return when every write made so far is on disk (at once without a log)."""
        if self._flushed >= self.revision:
            return
        if self._failure is not None:
            raise self._failure
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((self.revision, waiter))
        await waiter

    @property
    def failure(self) -> ApiError | None:
        """Why the log cannot be written (a full disk, for example); None while it can."""
        return self._failure

    @property
    def is_settled(self) -> bool:
        """Whether `settled()` would return at once."""
        return self._flushed >= self.revision

    @property
    def flushed(self) -> int:
        """The newest revision that watchers may know of."""
        return self._flushed

    def compact(self, revision: int | None = None) -> int:
        """Forget history up to a revision (default: all of it): older watches and lists get 410."""
        upto = self.revision if revision is None else min(revision, self.revision)
        self._start_of_history = max(self._start_of_history, upto)
        for collection in self._collections.values():
            collection.compact(upto)
        if self._log is not None:
            self._log.compact(upto)
        return upto

    async def close(self) -> None:
        """Close all watches and the log, after what was written is on disk."""
        if self._log is not None:
            await self._log.close()
        for watch in self.watches():
            watch.close()

    def start(self) -> None:
        """Begin to write the log; call it on the loop. Without a log there is nothing to start."""
        if self._log is not None:
            self._log.start(self._on_flushed, self._on_failed)

    def _on_flushed(self, revision: int) -> None:
        self._flushed = max(self._flushed, revision)
        self._publish()
        still: list[tuple[int, asyncio.Future[None]]] = []
        for wanted, waiter in self._waiters:
            if wanted > self._flushed:
                still.append((wanted, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiters = still

    def _on_failed(self, error: BaseException) -> None:
        """The log failed: writes are refused from now on, reads continue."""
        self._failure = unavailable(f"the store's log cannot be written: {error}")
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(self._failure)
        self._waiters = []

    def _restore(self, log: Log) -> None:
        floor = self._start_of_history = log.compacted
        self.revision = floor
        now = self.clock()
        for revision, resource, key, raw in log.replay():
            collection = self.collection(resource)
            previous = collection.items.get(key)
            self.revision = max(self.revision, revision)
            if raw is not None:
                record = Record(resource, decode(raw), revision, raw=raw)
                collection.put(record)
                event = Event("MODIFIED" if previous else "ADDED", record, previous, now)
            else:
                if previous is None:
                    continue
                obj = previous.decode()
                obj["metadata"]["resourceVersion"] = str(revision)
                record = Record(resource, obj, revision)
                collection.drop(key)
                event = Event("DELETED", record, previous, now)
            record.forget()
            if revision > floor:
                collection.remember(event)
        self._flushed = self.revision


def timestamp(seconds: float) -> str:
    """RFC 3339 with whole seconds, as metav1.Time writes it.

    >>> timestamp(0)
    '1970-01-01T00:00:00Z'
    """
    return _whole_seconds(int(seconds // 1))


@lru_cache(maxsize=8)
def _whole_seconds(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def micro_timestamp(seconds: float) -> str:
    """RFC 3339 with six digits of microseconds, as metav1.MicroTime writes it.

    >>> micro_timestamp(1.5)
    '1970-01-01T00:00:01.500000Z'
    """
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{micros:06d}Z"


__all__ = ["ApiError", "Change", "Event", "Log", "Record", "Store", "Watch", "micro_timestamp", "timestamp"]
