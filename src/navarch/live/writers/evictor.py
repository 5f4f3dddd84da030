"""Evictions: through the Eviction API, so that disruption budgets hold, and at a bounded rate.

First the pod's status gets the condition DisruptionTarget, which tells everyone why it goes; then the eviction is asked
for. A budget that says "not now" (429) is waited for; when it goes on saying so the eviction is given up, the pod counts as
running again, and the next cycle thinks anew. A pod that is gone already was evicted as far as we care. A conflict (409) is asked
again: it may be another pod of that name, and then the watch shows it, or only somebody who wrote the pod at the same moment, and
then it would count as leaving for ever. Any other refusal is waited for like a budget's: a namespace that is being deleted (403) takes
its pods with it, and given up at once the same victim would be chosen again in the next cycle, and in every one after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import Struct

from navarch.engine.record import Eviction
from navarch.kube.client import eviction as eviction_body
from navarch.kube.errors import KubeError, NotFound
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Outcome, Priority, Write, WritePool
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events, Regarding, pod_reference
from navarch.live.writers.pod_status import STRATEGIC
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.timestamps import rfc3339

log = logging.getLogger(__name__)

REASON = "PreemptionByScheduler"
STALE_GANGS = "stalegangeviction"
"""The action that evicts what is left of a broken gang; users look for its event by KAI's name."""
SCHEDULE = "schedule"
"""The action that preempts by kube-scheduler's rules; users look for its event by kube-scheduler's name."""
_ACTIVE = [int(TaskStatus.BINDING), int(TaskStatus.BOUND), int(TaskStatus.RUNNING), int(TaskStatus.RELEASING)]


class _Going(Struct):
    eviction: Eviction
    namespace: str
    name: str
    deadline: float
    term: int
    attempts: int = 0


class Evictor:
    def __init__(
        self,
        pool: WritePool,
        cache: ClusterCache,
        assumed: AssumedPods,
        events: Events,
        clock: Callable[[], float],
        *,
        rate: float = 50.0,
        timeout: float = 60.0,
    ) -> None:
        self.counted: Callable[[str, str], None] = lambda action, result: None
        self._pool = pool
        self._cache = cache
        self._assumed = assumed
        self._events = events
        self._clock = clock
        self._pause = 1.0 / rate
        self._timeout = timeout
        self._queue: deque[_Going] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._in_flight = 0
        self._refused: dict[str, tuple[_Going, asyncio.TimerHandle]] = {}
        """Of those in flight, by uid: those that wait to be asked for again."""
        self._term = 0
        """Which of our times as leader this is."""

    def __len__(self) -> int:
        return len(self._queue) + self._in_flight

    @property
    def on_the_wire(self) -> int:
        """Requests without an answer. What a budget refused, or the pace holds back, is not: whoever leads next decides anew."""
        return self._in_flight - len(self._refused)

    def evict(self, eviction: Eviction, task: TaskSpec) -> None:
        """The eviction has been assumed: carry it out."""
        now = asyncio.get_running_loop().time()
        self._queue.append(_Going(eviction, task.namespace, task.name, now + self._timeout, self._term))
        self._tell(eviction, task)
        self._pace()

    def stop(self) -> None:
        """Ask for no more; what waits, for its turn or for a budget, is forgotten (whoever leads next decides anew)."""
        self._term += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            self._give_up(self._queue.popleft(), "", told=False)
        for going, timer in list(self._refused.values()):
            timer.cancel()
            self._in_flight -= 1
            self._give_up(going, "", told=False)
        self._refused.clear()

    def _tell(self, eviction: Eviction, task: TaskSpec) -> None:
        gains = f" for {eviction.for_}" if eviction.for_ else ""
        note = eviction.message or f"Evicted by {eviction.action}{gains}"
        # In a series: a pod that its budget protects may be chosen again and again.
        said = ("Normal", "Preempted", "Preempting") if eviction.action == SCHEDULE else ("Warning", "Evicted", "Evicting")
        self._events.emit(pod_reference(task.namespace, task.name, eviction.uid), *said, note)
        group = self._cache.group(eviction.job)
        if group is not None:
            gainer, _, name = eviction.for_.partition("/")
            annotations = {
                "evictor-action-type": eviction.action,
                "evictor-pod-group-namespace": gainer,
                "evictor-pod-group-name": name,
            }
            about = Regarding("PodGroup", group.namespace, group.name, group.uid, group.api_version)
            self._events.emit(
                about, "Normal", "Evicted", "Evicting", f"Pod {task.namespace}/{task.name}: {note}", annotations=annotations
            )
            if eviction.action == STALE_GANGS:
                self._events.emit(about, "Normal", "StaleJob", "Evicting", self._stale_note(group))

    def _stale_note(self, group: JobSpec) -> str:
        """Of a gang that lost pods and goes with the rest: how many there were, those that are going now included."""
        jobs = self._cache.cluster.jobs
        row = jobs.rows.of.get(group.key)  # a group without a row has no pods; its words must not cost the eviction
        active = 0 if row is None else int(jobs.counts[row][_ACTIVE].sum())
        least = sum(part.min_member for part in group.sub_groups) or group.min_member
        return f"Job is stale. {active} pods are active, minMember is {least}"

    def _pace(self) -> None:
        if self._timer is None and self._queue:
            self._next()

    def _next(self) -> None:
        self._timer = None
        if not self._queue:
            return
        going = self._queue.popleft()
        if going.eviction.uid in self._assumed.evictions:
            self._in_flight += 1
            self._mark(going)
        self._timer = asyncio.get_running_loop().call_later(self._pause, self._next)

    def _mark(self, going: _Going) -> None:
        message = going.eviction.message or f"{going.eviction.reason}: {going.eviction.for_}"
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": REASON,
            "message": message,
            "lastTransitionTime": rfc3339(self._clock()),
        }
        body = msgspec.json.encode({"metadata": {"uid": going.eviction.uid}, "status": {"conditions": [condition]}})
        path = PODS.path(going.namespace, going.name, "status")
        write = Write("PATCH", path, body, content_type=STRATEGIC, priority=Priority.BINDING, repeatable=True)
        self._pool.submit(write, lambda outcome: self._marked(going, outcome))

    def _marked(self, going: _Going, outcome: Outcome) -> None:
        if isinstance(outcome, NotFound):
            self._done(going, "gone")
            return
        if going.term != self._term:
            self._in_flight -= 1
            self._give_up(going, "", told=False)
            return
        if isinstance(outcome, KubeError):
            log.warning("%s/%s: not marked as disrupted: %s", going.namespace, going.name, outcome)
        self._ask(going)

    def _ask(self, going: _Going) -> None:
        going.attempts += 1
        body = msgspec.json.encode(eviction_body(going.namespace, going.name, going.eviction.uid, None))
        path = PODS.path(going.namespace, going.name, "eviction")
        # Evicting a pod a second time does no harm: it is going already.
        write = Write("POST", path, body, priority=Priority.BINDING, repeatable=True, attempts=1)
        self._pool.submit(write, lambda outcome: self._asked(going, outcome))

    def _asked(self, going: _Going, outcome: Outcome) -> None:
        if not isinstance(outcome, KubeError):
            self._done(going, "ok")
        elif isinstance(outcome, NotFound):
            self._done(going, "gone")
        elif going.term != self._term:
            self._in_flight -= 1
            self._give_up(going, "", told=False)
        else:
            loop = asyncio.get_running_loop()
            asked = getattr(outcome, "retry_after", None)
            wait = max(asked or 0.0, min(0.5 * 2 ** min(going.attempts, 5), 10.0))
            if loop.time() + wait > going.deadline:
                self._in_flight -= 1
                self._give_up(going, str(outcome))
            else:
                self._refused[going.eviction.uid] = going, loop.call_later(wait, self._again, going)

    def _again(self, going: _Going) -> None:
        del self._refused[going.eviction.uid]
        if going.eviction.uid in self._assumed.evictions:
            self._ask(going)
        else:
            self._done(going, "gone")

    def _done(self, going: _Going, result: str) -> None:
        self._in_flight -= 1
        self.counted(going.eviction.action, result)

    def _give_up(self, going: _Going, why: str, *, told: bool = True) -> None:
        self._assumed.evictions.pop(going.eviction.uid, None)
        self._cache.refresh(going.eviction.uid)
        self.counted(going.eviction.action, "given up")
        if told:
            log.warning("eviction of %s/%s was given up: %s", going.namespace, going.name, why)
            reference = pod_reference(going.namespace, going.name, going.eviction.uid)
            self._events.emit(reference, "Warning", "EvictionGivenUp", "Evicting", why)
