"""All objects of one resource, in key order, with enough history to answer for the recent past.

Keys are `namespace/name` (or `name`) and sort as in etcd, byte by byte, because clients page in that order. History
holds the last events; it serves watches that start in the past and lists at an older revision (the pages of one list
must all show the same moment), which are made by undoing what happened since.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator

from navarch.embedded.api.errors import too_old
from navarch.embedded.storage.record import Event, Record
from navarch.object_types import Manifest

FieldsOf = Callable[[Manifest], tuple[str, ...]]
"""The values of a resource's selectable fields beyond name and namespace, in the order that its kind declares."""

HISTORY_SECONDS = 75.0
HISTORY_EVENTS = 4096
HISTORY_LIMIT = 100_000


class Collection:
    """Current objects and recent events of one resource."""

    def __init__(self, resource: str, floor: int) -> None:
        self.resource = resource
        self.items: dict[str, Record] = {}
        self.keys: list[str] = []
        self.history: deque[Event] = deque()
        self.floor = floor
        """The oldest revision that history still answers for: events after it are all here."""
        self.fields_of: FieldsOf | None = None

    def put(self, record: Record) -> None:
        if record.key not in self.items:
            if not self.keys or record.key > self.keys[-1]:
                self.keys.append(record.key)
            else:
                insort(self.keys, record.key)
        self.items[record.key] = record

    def drop(self, key: str) -> None:
        del self.items[key]
        del self.keys[bisect_left(self.keys, key)]

    def remember(self, event: Event) -> None:
        """Append to history and let go of what no client can still need."""
        history = self.history
        history.append(event)
        while len(history) > HISTORY_EVENTS:
            oldest = history[0]
            if len(history) <= HISTORY_LIMIT and event.time - oldest.time < HISTORY_SECONDS:
                break
            self.floor = oldest.revision
            history.popleft()

    def compact(self, revision: int) -> None:
        """Forget all events up to and including `revision`."""
        while self.history and self.history[0].revision <= revision:
            self.history.popleft()
        self.floor = max(self.floor, revision)

    def since(self, revision: int) -> list[Event]:
        """Events after `revision`, in order. Raises 410 when some of them are already forgotten."""
        if revision < self.floor:
            raise too_old(revision, self.floor)
        found: list[Event] = []
        for event in reversed(self.history):
            if event.revision <= revision:
                break
            found.append(event)
        found.reverse()
        return found

    def span(self, namespace: str, after: str = "") -> tuple[int, int]:
        """The slice of `keys` that lies in a namespace ("" for all) and after a key."""
        low, high = 0, len(self.keys)
        if namespace:
            low = bisect_left(self.keys, namespace + "/")
            high = bisect_left(self.keys, namespace + "0")  # "0" follows "/" in ASCII
        if after:
            low = max(low, bisect_left(self.keys, after + "\0"))
        return low, high

    def walk(self, namespace: str = "", after: str = "") -> Iterator[Record]:
        """Current records in key order."""
        low, high = self.span(namespace, after)
        items = self.items
        for position in range(low, high):
            yield items[self.keys[position]]

    def at(self, revision: int, namespace: str = "", after: str = "") -> Iterator[Record]:
        """Records as they were at a revision, in key order. Raises 410 when history does not reach so far."""
        past: dict[str, Record | None] = {}
        for event in self.since(revision):
            past.setdefault(event.record.key, event.previous)
        if not past:
            return self.walk(namespace, after)
        return self._undone(past, namespace, after)

    def _undone(self, past: dict[str, Record | None], namespace: str, after: str) -> Iterator[Record]:
        prefix = namespace + "/" if namespace else ""
        gone = [key for key in past if key not in self.items and key > after and key.startswith(prefix)]
        low, high = self.span(namespace, after)
        for key in sorted([*self.keys[low:high], *gone]):
            record = past[key] if key in past else self.items[key]
            if record is not None:
                yield record
