"""Reasons on pending pods: the condition PodScheduled=False, the nominated node, and an event.

A refusal is written when it has lasted for a moment, because most pods are placed before anyone could read it (a gang that is being
created is incomplete for a few milliseconds). Autoscalers buy nodes by the reason, so another reason is on the pod within a second.
If only the message changes, as figures do in every cycle, it is written again after ten seconds at the earliest. If a gang had too
few pods and now has enough, its next reason counts as new. The newest message wins: an older one that was not sent yet is dropped.
The reason and the nominated node are one patch, so that nobody reads one without the other.

A condition is written for the version of the pod that it was built for. Bindings have priority and may overtake it: a pod that has a
node must not get the condition that it has none.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from navarch.kube.errors import Conflict, KubeError, NotFound
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Done, Outcome, Priority, Write, WritePool
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events, pod_reference
from navarch.live.writers.outbox import Count, Outbox, uncounted
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.timestamps import rfc3339

MIN_DURATION = 0.8
"""With the interval between two calls of `flush` it stays below a second."""
MESSAGE_INTERVAL = 10.0
CLEANUP_INTERVAL = 60.0
"""Seconds between two removals of entries for pods that are not pending any more."""
STRATEGIC = "application/strategic-merge-patch+json"


class _Entry(Struct):
    """What is to be written on a pod, and what was written last."""

    namespace: str
    name: str
    uid: str
    reason: str = ""
    message: str = ""
    nominated: str | None = None
    due: float | None = None
    written: tuple[str, str, str | None] | None = None
    written_at: float = 0.0
    in_flight: bool = False
    lacking: bool = False
    """The message says that its gang has too few pods."""


class PodStatuses:
    """Times of `refuse`, `nominate` and `flush` are the event loop's; `clock` is seconds since the epoch, for the API."""

    def __init__(
        self,
        pool: WritePool,
        cache: ClusterCache,
        events: Events,
        clock: Callable[[], float],
        *,
        enabled: bool = True,
        count: Count = uncounted,
    ) -> None:
        self.outbox = Outbox(pool, room=16)
        self._count = count
        self._cache = cache
        self._events = events
        self._clock = clock
        self._enabled = enabled
        self._entries: dict[str, _Entry] = {}
        self._due: list[tuple[float, str]] = []
        self._cleaned = 0.0

    def __len__(self) -> int:
        """How many pods are remembered."""
        return len(self._entries)

    def refuse(
        self,
        task: TaskSpec,
        reason: str,
        message: str,
        now: float,
        *,
        promised: bool = False,
        at_once: bool = False,
        news: bool = False,
        lacking: bool = False,
    ) -> None:
        """The cycle could not place this pod. `promised`: it nominated a node; otherwise an old nomination is removed. `at_once`: the
        next attempt would overwrite the message. `news`: the message has another meaning, not only other figures. `lacking`: it says
        that the gang has too few pods."""
        entry = self._entries.get(task.uid) or self._new(task)
        news = news or (entry.lacking and not lacking)
        entry.reason, entry.message, entry.lacking = reason, message, lacking
        if not promised and (task.nominated_node or entry.nominated):
            entry.nominated = ""
            # The assumption too: if the nomination was never written, no watch would end it.
            if self._cache.assumed.nominations.pop(task.uid, None) is not None:
                self._cache.refresh(task.uid)
        wanted = (reason, message, entry.nominated)
        if wanted == entry.written:
            entry.due = None
            self._say(entry)
            return
        if at_once:
            self._schedule(entry, now)
        elif not news and entry.written is not None and (entry.written[0], entry.written[2]) == (reason, entry.nominated):
            due = max(now + MIN_DURATION, entry.written_at + MESSAGE_INTERVAL)
            if entry.due is None or entry.due > due:  # a message that changes in every cycle does not postpone the write
                self._schedule(entry, due)
        elif entry.due is None or entry.due > now + MIN_DURATION:
            self._schedule(entry, now + MIN_DURATION)

    def nominate(self, task: TaskSpec, node: str, now: float) -> None:
        """Nominate a node: written at once, because other schedulers read it."""
        entry = self._entries.get(task.uid) or self._new(task)
        entry.nominated = node
        self._schedule(entry, now)

    def forget(self, uid: str) -> None:
        """The pod is bound or gone: there is nothing more to write."""
        self._entries.pop(uid, None)

    def forget_all(self) -> None:
        """Forget what was written: only what pods show counts."""
        self._entries.clear()

    def flush(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            due, uid = heapq.heappop(self._due)
            entry = self._entries.get(uid)
            if entry is None or entry.due != due:
                continue
            if not self._waits(uid):
                del self._entries[uid]
            elif entry.in_flight:
                self._schedule(entry, now + 0.1)
            else:
                entry.due, entry.written_at = None, now
                if entry.reason:
                    self._say(entry)
                if self._enabled:
                    entry.in_flight = True
                    self.outbox.put(partial(self._make, entry))
        if now - self._cleaned >= CLEANUP_INTERVAL:
            self._cleaned = now
            self._entries = {uid: entry for uid, entry in self._entries.items() if entry.in_flight or self._waits(uid)}

    def _waits(self, uid: str) -> bool:
        task = self._cache.cluster.task(uid)
        return task is not None and task.status == TaskStatus.PENDING

    def _new(self, task: TaskSpec) -> _Entry:
        entry = self._entries[task.uid] = _Entry(task.namespace, task.name, task.uid)
        pod = self._cache.pods.get((task.namespace, task.name))
        for condition in (pod.status.conditions or ()) if pod is not None else ():
            if condition.type == "PodScheduled" and condition.status == "False":
                entry.written = (condition.reason or "", condition.message or "", None)
        return entry

    def _schedule(self, entry: _Entry, due: float) -> None:
        entry.due = due
        heapq.heappush(self._due, (due, entry.uid))

    def _say(self, entry: _Entry) -> None:
        reference = pod_reference(entry.namespace, entry.name, entry.uid)
        self._events.emit(reference, "Warning", "FailedScheduling", "Scheduling", entry.message)

    def _make(self, entry: _Entry) -> tuple[Write, Done] | None:
        task = self._cache.cluster.task(entry.uid)
        if task is None or task.status != TaskStatus.PENDING or self._entries.get(entry.uid) is not entry:
            entry.in_flight = False
            return None
        status: dict[str, Any] = {}
        if entry.reason:
            since = next((t for kind, value, _, t in task.conditions if (kind, value) == ("PodScheduled", "False")), 0.0)
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": entry.reason,
                    "message": entry.message,
                    "lastTransitionTime": rfc3339(since or self._clock()),
                }
            ]
        if entry.nominated is not None:
            status["nominatedNodeName"] = entry.nominated or None
        entry.written = (entry.reason, entry.message, entry.nominated)
        metadata = {"uid": entry.uid}
        pod = self._cache.pods.get((entry.namespace, entry.name))
        if pod is not None and pod.metadata.uid == entry.uid and pod.metadata.resource_version:
            metadata["resourceVersion"] = pod.metadata.resource_version
        body = msgspec.json.encode({"metadata": metadata, "status": status})
        path = PODS.path(entry.namespace, entry.name, "status")
        write = Write("PATCH", path, body, content_type=STRATEGIC, priority=Priority.STATUS, repeatable=True)
        return write, lambda outcome: self._ended(entry, outcome)

    def _ended(self, entry: _Entry, outcome: Outcome) -> None:
        entry.in_flight = False
        failed = isinstance(outcome, KubeError)
        self._count("Pod", "error" if failed else "ok")
        if failed and not isinstance(outcome, NotFound):
            entry.written = None  # the next refusal writes it again
        if isinstance(outcome, Conflict) and entry.due is None:
            # Bound, or changed by another writer; the watch will show it.
            self._schedule(entry, entry.written_at + MIN_DURATION)
