"""Events for people: `events.k8s.io/v1`, written behind everything else, repetitions folded into a series.

The same thing said again about the same object is counted and, now and then, written into the event that said it first. A new
text makes a new event, but not more often than every half minute for an object and a reason: figures in a message change with
every cycle. When more events wait than anyone would read, new ones are dropped and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from navarch.cache.outbox import Outbox
from navarch.kube.resources import EVENTS
from navarch.kube.write_pool import Done, Priority, Write, WritePool

NOTE_LIMIT = 1024
SERIES_PAUSE = 30.0
SERIES_LIFE = 360.0
MOST_SERIES = 20_000
MOST_WAITING = 20_000
AT_ONCE = 4
"""Events on their way at a time: enough to keep an idle API server busy, too few for a binding to wait behind them there."""


class Regarding(Struct, frozen=True):
    """The object an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    api_version: str = "v1"

    def as_reference(self) -> dict[str, str]:
        reference = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name}
        if self.namespace:
            reference["namespace"] = self.namespace
        if self.uid:
            reference["uid"] = self.uid
        return reference


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    note: str
    count: int
    made: float
    said: float
    """When it was last said, whether written or not."""
    written: float


def pod_reference(namespace: str, name: str, uid: str) -> Regarding:
    return Regarding("Pod", namespace, name, uid)


class Events:
    """`emit` costs a few microseconds where it folds, a queued write where it does not. `clock` is seconds since the epoch."""

    def __init__(
        self,
        pool: WritePool,
        *,
        controller: str = "navarch",
        instance: str = "navarch",
        clock: Callable[[], float] = time.time,
        enabled: bool = True,
    ) -> None:
        self.outbox = Outbox(pool, room=AT_ONCE, longest=MOST_WAITING)
        self.enabled = enabled
        self.counted: Callable[[str, str], None] = lambda type_, reason: None
        self._controller = controller
        self._instance = instance
        self._clock = clock
        self._series: dict[tuple[Regarding, str, str], _Series] = {}
        self._serial = 0

    def emit(
        self,
        regarding: Regarding,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: Regarding | None = None,
        *,
        repeats: bool = True,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """`repeats` False: said once in an object's life, so no series is kept for it."""
        if not self.enabled:
            return
        now = self._clock()
        if repeats:
            known = self._series.get((regarding, reason, action))
            if known is not None and now - known.said < SERIES_LIFE:
                known.count += 1
                known.said = now
                if now - known.written < SERIES_PAUSE:
                    return
                if known.note == note:
                    known.written = now
                    self._write_series(known)
                    return
        self._serial += 1
        name = f"{regarding.name[:200]}.{int(now * 1e6):x}{self._serial & 0xFFFF:04x}"
        namespace = regarding.namespace or "default"
        if repeats:
            if len(self._series) >= MOST_SERIES:
                self._forget_old(now)
            self._series[regarding, reason, action] = _Series(name, namespace, note, 1, now, now, now)
        self.counted(type_, reason)
        self.outbox.put(
            lambda: self._create(name, namespace, regarding, type_, reason, action, note, related, now, annotations)
        )

    def _create(
        self,
        name: str,
        namespace: str,
        regarding: Regarding,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: Regarding | None,
        now: float,
        annotations: dict[str, str] | None,
    ) -> tuple[Write, Done]:
        metadata: dict[str, Any] = {"name": name, "namespace": namespace}
        if annotations:
            metadata["annotations"] = annotations
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": metadata,
            "eventTime": _micro_time(now),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "type": type_,
            "note": truncated(note),
            "regarding": regarding.as_reference(),
        }
        if related is not None:
            body["related"] = related.as_reference()
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        return Write("POST", path, msgspec.json.encode(body), priority=Priority.EVENT, repeatable=True), _ignore

    def _write_series(self, series: _Series) -> None:
        def make() -> tuple[Write, Done]:
            body = {"series": {"count": series.count, "lastObservedTime": _micro_time(series.said)}}
            write = Write(
                "PATCH",
                EVENTS.path(series.namespace, series.name),
                msgspec.json.encode(body),
                content_type="application/merge-patch+json",
                priority=Priority.EVENT,
                repeatable=True,
            )
            return write, _ignore

        self.outbox.put(make)

    def _forget_old(self, now: float) -> None:
        alive = {key: each for key, each in self._series.items() if now - each.said < SERIES_LIFE}
        if len(alive) >= MOST_SERIES:
            newest = sorted(alive.items(), key=lambda item: item[1].said)[-MOST_SERIES // 2 :]
            alive = dict(newest)
        self._series = alive


def _micro_time(seconds: float) -> str:
    """`metav1.MicroTime`. As `kube.lease.micro_time`, at a third of its cost: there is one for every bind."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:26] + "Z"


def truncated(note: str) -> str:
    """The API allows 1024 bytes in a note."""
    raw = note.encode()
    if len(raw) <= NOTE_LIMIT:
        return note
    return raw[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."


def _ignore(outcome: object) -> None:
    """Events are a courtesy: one that could not be written is not worth a second thought."""
