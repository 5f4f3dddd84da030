"""Pods that wait are told why: condition PodScheduled=False, the node promised to them, and an event.

A refusal is written when it has lasted for a moment, since most pods are placed before anyone could read it (a gang that is just
being created is incomplete for a few milliseconds). When only the words change, as figures do with every cycle, they are
written again after ten seconds at the earliest; of a gang that lacked pods and has them now, what else it lacks is news. The
newest word wins; an older one that was not sent yet is never sent.

A word is written on the version of the pod that it was made for. Bindings go first, so one may overtake it: a pod that has its node
must not be told afterwards that it has none.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from navarch.kube.errors import Conflict, KubeError, NotFound
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Done, Outcome, Priority, Write, WritePool
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events, pod_reference
from navarch.live.writers.outbox import Outbox
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.timestamps import rfc3339

LASTING = 1.0
WORDS_PAUSE = 10.0
TIDY = 60.0
"""How often words for pods that do not wait any more are thrown away; a pod may go without anyone telling."""
STRATEGIC = "application/strategic-merge-patch+json"


class _Word(Struct):
    """What a pod is to be told, and what it was told last."""

    namespace: str
    name: str
    uid: str
    reason: str = ""
    message: str = ""
    nominated: str | None = None
    due: float | None = None
    told: tuple[str, str, str | None] | None = None
    told_at: float = 0.0
    in_flight: bool = False
    lacking: bool = False
    """What it is to be told is that its gang has too few pods."""


class PodStatuses:
    """Times of `refuse`, `nominate` and `flush` are the event loop's; `clock` is seconds since the epoch, for the API."""

    def __init__(
        self, pool: WritePool, cache: ClusterCache, events: Events, clock: Callable[[], float], *, enabled: bool = True
    ) -> None:
        self.outbox = Outbox(pool, room=16)
        self.counted: Callable[[str, str], None] = lambda kind, result: None
        self._cache = cache
        self._events = events
        self._clock = clock
        self._enabled = enabled
        self._words: dict[str, _Word] = {}
        self._due: list[tuple[float, str]] = []
        self._tidied = 0.0

    def __len__(self) -> int:
        """Pods that something is remembered of."""
        return len(self._words)

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
        """The cycle could not place this pod. Without a promise in this cycle an old one is taken back. `at_once`: it is
        news that the next attempt would wipe out. `news`: the words say something else, not the same with other figures. `lacking`:
        they say that the gang has too few pods."""
        word = self._words.get(task.uid) or self._new(task)
        news = news or (word.lacking and not lacking)
        word.reason, word.message, word.lacking = reason, message, lacking
        if not promised and (task.nominated_node or word.nominated):
            word.nominated = ""
            # The assumption too: where the promise was never written, no watch would end it.
            if self._cache.assumed.nominations.pop(task.uid, None) is not None:
                self._cache.refresh(task.uid)
        wanted = (reason, message, word.nominated)
        if wanted == word.told:
            word.due = None
            self._say(word)
            return
        if at_once:
            self._schedule(word, now)
        elif not news and word.told is not None and (word.told[0], word.told[2]) == (reason, word.nominated):
            due = max(now + LASTING, word.told_at + WORDS_PAUSE)
            if word.due is None or word.due > due:  # words that change with every cycle do not put it off again and again
                self._schedule(word, due)
        elif word.due is None or word.due > now + LASTING:
            self._schedule(word, now + LASTING)

    def nominate(self, task: TaskSpec, node: str, now: float) -> None:
        """Promise a node: told at once, since other schedulers read it."""
        word = self._words.get(task.uid) or self._new(task)
        word.nominated = node
        self._schedule(word, now)

    def forget(self, uid: str) -> None:
        """Bound or gone: nothing more to say."""
        self._words.pop(uid, None)

    def forget_all(self) -> None:
        """Nothing is known of what pods were told but what they show."""
        self._words.clear()

    def flush(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            due, uid = heapq.heappop(self._due)
            word = self._words.get(uid)
            if word is None or word.due != due:
                continue
            if not self._waits(uid):
                del self._words[uid]
            elif word.in_flight:
                self._schedule(word, now + 0.1)
            else:
                word.due, word.told_at = None, now
                if word.reason:
                    self._say(word)
                if self._enabled:
                    word.in_flight = True
                    self.outbox.put(lambda word=word: self._make(word))  # type: ignore[misc]
        if now - self._tidied >= TIDY:
            self._tidied = now
            self._words = {uid: word for uid, word in self._words.items() if word.in_flight or self._waits(uid)}

    def _waits(self, uid: str) -> bool:
        task = self._cache.cluster.task(uid)
        return task is not None and task.status == TaskStatus.PENDING

    def _new(self, task: TaskSpec) -> _Word:
        word = self._words[task.uid] = _Word(task.namespace, task.name, task.uid)
        pod = self._cache.pods.get((task.namespace, task.name))
        for condition in (pod.status.conditions or ()) if pod is not None else ():
            if condition.type == "PodScheduled" and condition.status == "False":
                word.told = (condition.reason or "", condition.message or "", None)
        return word

    def _schedule(self, word: _Word, due: float) -> None:
        word.due = due
        heapq.heappush(self._due, (due, word.uid))

    def _say(self, word: _Word) -> None:
        reference = pod_reference(word.namespace, word.name, word.uid)
        self._events.emit(reference, "Warning", "FailedScheduling", "Scheduling", word.message)

    def _make(self, word: _Word) -> tuple[Write, Done] | None:
        task = self._cache.cluster.task(word.uid)
        if task is None or task.status != TaskStatus.PENDING or self._words.get(word.uid) is not word:
            word.in_flight = False
            return None
        status: dict[str, Any] = {}
        if word.reason:
            since = next((t for kind, value, _, t in task.conditions if (kind, value) == ("PodScheduled", "False")), 0.0)
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": word.reason,
                    "message": word.message,
                    "lastTransitionTime": rfc3339(since or self._clock()),
                }
            ]
        if word.nominated is not None:
            status["nominatedNodeName"] = word.nominated or None
        word.told = (word.reason, word.message, word.nominated)
        metadata = {"uid": word.uid}
        pod = self._cache.pods.get((word.namespace, word.name))
        if pod is not None and pod.metadata.uid == word.uid and pod.metadata.resource_version:
            metadata["resourceVersion"] = pod.metadata.resource_version
        body = msgspec.json.encode({"metadata": metadata, "status": status})
        path = PODS.path(word.namespace, word.name, "status")
        write = Write("PATCH", path, body, content_type=STRATEGIC, priority=Priority.STATUS, repeatable=True)
        return write, lambda outcome: self._ended(word, outcome)

    def _ended(self, word: _Word, outcome: Outcome) -> None:
        word.in_flight = False
        failed = isinstance(outcome, KubeError)
        self.counted("Pod", "error" if failed else "ok")
        if failed and not isinstance(outcome, NotFound):
            word.told = None  # the next refusal says it again
        if isinstance(outcome, Conflict) and word.due is None:
            # Bound, or changed by somebody else, and we shall see it.
            self._schedule(word, word.told_at + LASTING)
