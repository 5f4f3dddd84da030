"""What happens in the embedded cluster, in sentences: a line for each thing that befell a job, however many pods it was."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable

from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import Store
from navarch.embedded.timers import Timers

GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_BY_WHOM = re.compile(r"^(\w+): (\S+)$")
KEPT = 200
PAUSE = 0.25
"""Seconds for which changes are gathered before they are told."""


class Story:
    """Follows pods and tells what happened to `tell`; the last lines are kept in `lines`."""

    def __init__(self, store: Store, timers: Timers, tell: Callable[[str], None] | None = None) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT)
        self.evictions: dict[tuple[str, str], int] = {}
        """(job, why) -> how many of its pods went."""
        self.tell = tell
        self._store = store
        self._timers = timers
        self._gathered: dict[tuple[str, str], int] = {}
        self._marked: set[str] = set()

    def start(self) -> None:
        self._watch = self._store.subscribe("pods", self._on_pod, since=self._store.revision or 1)

    def stop(self) -> None:
        self._watch.close()
        self._flush()

    def say(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')}  {text}"
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
                self._gather(pod, what)
        for each in status.get("conditions") or ():
            if each.get("type") == "DisruptionTarget" and pod.uid not in self._marked:
                self._marked.add(pod.uid)
                why = _BY_WHOM.sub(r"\1 for \2", str(each.get("message") or each.get("reason")))
                key = (job_of(pod), why)
                self.evictions[key] = self.evictions.get(key, 0) + 1
                self._gather(pod, f"evicted ({why})")

    def _gather(self, pod: Record, what: str) -> None:
        key = (job_of(pod), what)
        self._gathered[key] = self._gathered.get(key, 0) + 1
        if not self._timers.has("story"):
            self._timers.after_real("story", PAUSE, self._flush)

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for (job, what), count in gathered.items():
            self.say(f"{job}: {count} pod{'s' if count > 1 else ''} {what}")


def job_of(pod: Record) -> str:
    """The group that a pod names, else its controller, else itself."""
    metadata = pod.obj["metadata"]
    annotations = metadata.get("annotations") or {}
    for key in GROUP_ANNOTATIONS:
        if annotations.get(key):
            return f"{pod.namespace}/{annotations[key]}"
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{pod.namespace}/{owner['name']}"
    return f"{pod.namespace}/{pod.name}"


class StoryHandler(logging.Handler):
    """Warnings become lines of the story, so that they do not tear the view apart."""

    def __init__(self, story: Story) -> None:
        super().__init__(logging.WARNING)
        self._story = story

    def emit(self, record: logging.LogRecord) -> None:
        self._story.say(f"{record.levelname.lower()}: {record.getMessage()}{_cause(record)}")


def _cause(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return f" ({type(error).__name__}: {error})" if error is not None else ""
