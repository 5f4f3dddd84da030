"""What happens in the embedded cluster, as text: one line for each event of a job, whatever its number of pods."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable

from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import Store
from navarch.embedded.timers import Timers
from navarch.views.job_names import TEMPLATE_HASH, without_uids

GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_ACTION_AND_JOB = re.compile(r"^(\w+): (\S+)$")
KEPT = 200
COLLECT_SECONDS = 0.25
"""Seconds for which changes are collected into one line."""


class EventLog:
    """Follows pods and calls `tell` with each line; the last lines are kept in `lines`."""

    def __init__(self, store: Store, timers: Timers, tell: Callable[[str], None] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT)
        self.evictions: dict[tuple[str, str], int] = {}
        """(job, reason) -> how many of its pods were evicted."""
        self.tell = tell
        self._store = store
        self._timers = timers
        self._collected: dict[tuple[str, str], int] = {}
        self._marked: set[str] = set()

    def start(self) -> None:
        self._watch = self._store.subscribe("pods", self._on_pod, since=self._store.revision or 1)

    def stop(self) -> None:
        self._watch.close()
        self._flush()

    def add(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')}  {without_uids(text)}"
        self.lines.append(line)
        if self.tell is not None:
            self.tell(line)

    def _on_pod(self, event: Event) -> None:
        pod, before = event.record, event.previous
        if event.type == "DELETED" or before is None:
            return
        status, old = pod.obj.get("status") or {}, before.obj.get("status") or {}
        phase = status.get("phase")
        if phase != old.get("phase"):
            what = {"Running": "started", "Succeeded": "succeeded", "Failed": "failed"}.get(phase or "", "")
            if phase == "Failed" and status.get("reason"):
                what = f"failed: {status['reason']}"
            if what and not (phase == "Failed" and pod.uid in self._marked):
                self._collect(pod, what)
        for each in status.get("conditions") or ():
            if each.get("type") == "DisruptionTarget" and pod.uid not in self._marked:
                self._marked.add(pod.uid)
                why = _ACTION_AND_JOB.sub(r"\1 for \2", str(each.get("message") or each.get("reason")))
                key = (job_of(pod), without_uids(why))
                self.evictions[key] = self.evictions.get(key, 0) + 1
                self._collect(pod, f"evicted ({why})")

    def _collect(self, pod: Record, what: str) -> None:
        key = (job_of(pod), what)
        self._collected[key] = self._collected.get(key, 0) + 1
        if not self._timers.has("events"):
            self._timers.after_real("events", COLLECT_SECONDS, self._flush)

    def _flush(self) -> None:
        collected, self._collected = self._collected, {}
        for (job, what), count in collected.items():
            self.add(f"{job}: {count} pod{'s' if count > 1 else ''} {what}")


def job_of(pod: Record) -> str:
    """The group that a pod names, or its controller, or the pod. A Volcano Job and a Deployment have the names that people gave them,
    without the uid or the hash that their controllers add."""
    metadata = pod.obj["metadata"]
    annotations, owners = metadata.get("annotations") or {}, metadata.get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    group = next((annotations[key] for key in GROUP_ANNOTATIONS if annotations.get(key)), "")
    if owner is None:
        return f"{pod.namespace}/{group or pod.name}"
    made = f"{owner['name']}-{owner.get('uid')}"
    hashed = (metadata.get("labels") or {}).get(TEMPLATE_HASH, "")
    workload = owner["name"].removesuffix(f"-{hashed}") if owner.get("kind") == "ReplicaSet" and hashed else owner["name"]
    return f"{pod.namespace}/{group if group and group != made else workload}"


class WarningHandler(logging.Handler):
    """A log handler that adds warnings to the event log, so that they do not break the live view."""

    def __init__(self, events: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        self._events.add(f"{record.levelname.lower()}: {record.getMessage()}{_cause(record)}")


def _cause(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return f" ({type(error).__name__}: {error})" if error is not None else ""
