"""Events for people: `events.k8s.io/v1`, written behind everything else, repetitions folded into a series.

The same thing said again about the same object is counted and, now and then, written into the event that said it first. A new
text makes a new event, but not more often than every half minute for an object and a reason: figures in a message change with
every cycle. When too many events wait, new ones are dropped and counted. An event that a user deleted, or
that never arrived, is said anew the next time; so is everything after a clock was set back.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from navarch.kube.errors import AlreadyExists, KubeError, NotFound
from navarch.kube.resources import EVENTS
from navarch.kube.write.pool import Done, Outcome, Priority, Write, WritePool
from navarch.live.writers.outbox import Count, Outbox, uncounted

log = logging.getLogger(__name__)

NOTE_LIMIT = 1024
INSTANCE_LIMIT = 128
CONTROLLER = "navarch"
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
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


class _Series(Struct):
    name: str
    namespace: str
    note: str
    count: int
    made: float
    said: float
    """When it was last said, whether written or not."""
    written: float


_Key = tuple[Regarding, str, str]
"""An object, a reason and an action: what makes one series."""


def pod_reference(namespace: str, name: str, uid: str) -> Regarding:
    return Regarding("Pod", namespace, name, uid)


class Events:
    """`emit` costs a few microseconds where it folds, a queued write where it does not. `clock` is seconds since the epoch.

    `scheduler_of`: the scheduler that an object names, which the event carries as its controller; empty: `controller`."""

    def __init__(
        self,
        pool: WritePool,
        *,
        controller: str = CONTROLLER,
        scheduler_of: Callable[[Regarding], str] = lambda regarding: "",
        instance: str = "navarch",
        clock: Callable[[], float] = time.time,
        enabled: bool = True,
        count: Count = uncounted,
    ) -> None:
        self.outbox = Outbox(pool, room=AT_ONCE, longest=MOST_WAITING)
        self.enabled = enabled
        self._count = count
        self._controller = _qualified(controller)
        self._scheduler_of = scheduler_of
        self._instance = instance[-INSTANCE_LIMIT:]
        self._clock = clock
        self._series: dict[_Key, _Series] = {}
        self._serial = 0
        self._complained: set[type[KubeError]] = set()
        """Refusals of the API server that were logged: the same one again is not news."""

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
        now, key = self._clock(), (regarding, reason, action)
        if repeats:
            known = self._series.get(key)
            if known is not None and 0 <= now - known.said < SERIES_LIFE:
                known.count += 1
                known.said = now
                if now - known.written < SERIES_PAUSE:
                    return
                if known.note == note:
                    known.written = now
                    self._write_series(key, known)
                    return
        self._serial += 1
        name = f"{regarding.name[:200].rstrip('-.')}.{int(now * 1e6):x}{self._serial & 0xFFFF:04x}"
        namespace = regarding.namespace or "default"
        if repeats:
            if len(self._series) >= MOST_SERIES:
                self._forget_old(now)
            self._series[key] = _Series(name, namespace, note, 1, now, now, now)
        self.outbox.put(lambda: self._create(name, namespace, regarding, type_, reason, action, note, related, now, annotations))

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
            "reportingController": _qualified(self._scheduler_of(regarding) or self._controller),
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
        write = Write("POST", path, msgspec.json.encode(body), priority=Priority.EVENT, repeatable=True)
        return write, lambda outcome: self._created(name, (regarding, reason, action), type_, outcome)

    def _created(self, name: str, key: _Key, type_: str, outcome: Outcome) -> None:
        """An event that could not be written delays nothing. It is written when it is emitted again."""
        if not isinstance(outcome, KubeError) or isinstance(outcome, AlreadyExists):
            self._count(type_, key[1])
            return
        kind = type(outcome)
        log.log(logging.DEBUG if kind in self._complained else logging.WARNING, "an event was not written: %s", outcome)
        self._complained.add(kind)
        known = self._series.get(key)
        if known is not None and known.name == name:
            del self._series[key]

    def _write_series(self, key: _Key, series: _Series) -> None:
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
            return write, ended

        def ended(outcome: Outcome) -> None:
            if isinstance(outcome, NotFound) and self._series.get(key) is series:
                del self._series[key]

        self.outbox.put(make)

    def _forget_old(self, now: float) -> None:
        alive = {key: each for key, each in self._series.items() if now - each.said < SERIES_LIFE}
        if len(alive) >= MOST_SERIES:
            newest = sorted(alive.items(), key=lambda item: item[1].said)[-MOST_SERIES // 2 :]
            alive = dict(newest)
        self._series = alive


def _qualified(name: str) -> str:
    """The name of a controller as the API accepts it: it refuses every event of another name."""
    return name if _QUALIFIED.fullmatch(name) else CONTROLLER


def _micro_time(seconds: float) -> str:
    """`metav1.MicroTime`. As `kube.lease.micro_time`, at a third of its cost: there is one for every bind."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:26] + "Z"


def truncated(note: str) -> str:
    """The API allows 1024 bytes in a note."""
    raw = note.encode()
    if len(raw) <= NOTE_LIMIT:
        return note
    return raw[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."
