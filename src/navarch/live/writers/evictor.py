"""Evictions: the pod is deleted, or the Eviction API is asked, as the policy says (`evictions`), at a bounded rate.

First the pod's status gets the condition DisruptionTarget, which says why the pod goes. Then the pod is deleted with its own grace
period, or its eviction is asked for. "Preempted" and "Evicted" are said once the API server has accepted that. If it
says that this very pod is gone (`kube.answers`), that counts as an eviction that the watch has yet to show.

The Eviction API answers 429 while a disruption budget allows no disruption. The eviction is then given up at once, and the pod is no
victim for as long as `timeout` (`REFUSED_EVICTIONS`), so the next cycle chooses otherwise. Every other refusal is asked again until
`timeout`: a conflict (409) may be another pod of that name, which the watch shows, or another writer of the pod at that moment; a
namespace that is being deleted (403) takes its pods with it. For the next `timeout` seconds the pod is not chosen. An eviction that
is given up takes its condition back, an event says so, and the pod counts as running again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import Struct

from navarch.engine.record import Eviction
from navarch.ingest.groups import shown_key
from navarch.kube.client import eviction as eviction_body
from navarch.kube.errors import KubeError, NotFound, TooManyRequests
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Outcome, Priority, Write, WritePool
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events, Regarding, pod_reference
from navarch.live.writers.outbox import Count, uncounted
from navarch.live.writers.pod_status import STRATEGIC
from navarch.model.objects.refused_evictions import REFUSED_EVICTIONS
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.timestamps import rfc3339

log = logging.getLogger(__name__)

REASON = "PreemptionByScheduler"
STALE_GANGS = "stalegangeviction"
"""The action that evicts what is left of a broken gang; users look for its event by KAI's name."""
KAI = "kai"
"""The dialect of groups whose readers look for KAI's annotations on the event."""
LEFT_MARKED = "the scheduler was stopped before the pod was evicted, and the next one does not evict it"
SCHEDULE = "schedule"
"""The action that preempts by kube-scheduler's rules; users look for its event by kube-scheduler's name."""
_ACTIVE = [int(TaskStatus.BINDING), int(TaskStatus.BOUND), int(TaskStatus.RUNNING), int(TaskStatus.RELEASING)]


class _PendingEviction(Struct):
    eviction: Eviction
    task: TaskSpec
    deadline: float
    term: int
    attempts: int = 0
    marked: bool = False
    """The pod has the condition."""

    @property
    def namespace(self) -> str:
        return self.task.namespace

    @property
    def name(self) -> str:
        return self.task.name


class Evictor:
    def __init__(
        self,
        pool: WritePool,
        cache: ClusterCache,
        assumed: AssumedPods,
        events: Events,
        clock: Callable[[], float],
        *,
        evictions: Callable[[], str] = lambda: "api",
        rate: float = 50.0,
        timeout: float = 60.0,
        count: Count = uncounted,
    ) -> None:
        """`evictions`: "api" or "delete", as the policy has it at the moment. `count(action, result)`: see `Count`."""
        self._count = count
        self._pool = pool
        self._cache = cache
        self._assumed = assumed
        self._events = events
        self._clock = clock
        self._evictions = evictions
        self._pause = 1.0 / rate
        self._timeout = timeout
        self._queue: deque[_PendingEviction] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._in_flight = 0
        self._refused: dict[str, tuple[_PendingEviction, asyncio.TimerHandle]] = {}
        """Of those in flight, by uid: those that wait to be asked for again."""
        self._protected: dict[str, asyncio.TimerHandle] = {}
        """Pods that a budget protects, by uid, until they may be chosen again."""
        self._term = 0
        """Counts the terms in which we lead: an answer of an earlier term changes nothing."""

    def __len__(self) -> int:
        return len(self._queue) + self._in_flight

    @property
    def on_the_wire(self) -> int:
        """Requests without an answer. An eviction that a budget refused or that waits for its turn does not count: the next leader
        decides again."""
        return self._in_flight - len(self._refused)

    def evict(self, eviction: Eviction, task: TaskSpec) -> None:
        """The eviction has been assumed: carry it out."""
        now = asyncio.get_running_loop().time()
        self._queue.append(_PendingEviction(eviction, task, now + self._timeout, self._term))
        self._pace()

    def stop(self) -> None:
        """Send no more evictions. Those that wait for their turn or for a budget are dropped: the next leader decides again."""
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
        for uid, timer in list(self._protected.items()):
            timer.cancel()
            self._unprotect(uid)

    def _tell(self, eviction: Eviction, task: TaskSpec) -> None:
        gains = f" for {shown_key(eviction.for_)}" if eviction.for_ else ""
        note = eviction.message or f"Evicted by {eviction.action}{gains}"
        said = ("Normal", "Preempted", "Preempting") if eviction.action == SCHEDULE else ("Warning", "Evicted", "Evicting")
        self._events.emit(pod_reference(task.namespace, task.name, eviction.uid), *said, note)
        group = self._cache.group(eviction.job)
        if group is not None:
            annotations = _kai_annotations(eviction) if group.dialect == KAI else None
            about = Regarding("PodGroup", group.namespace, group.name, group.uid, group.api_version)
            self._events.emit(
                about, "Normal", "Evict", "Evicting", f"Pod {task.namespace}/{task.name}: {note}", annotations=annotations
            )
            if eviction.action == STALE_GANGS:
                self._events.emit(about, "Normal", "StaleJob", "Evicting", self._stale_note(group))

    def _stale_note(self, group: JobSpec) -> str:
        """For the event on a gang that lost pods and whose other pods are evicted. Pods that are leaving count as active."""
        jobs = self._cache.cluster.jobs
        row = jobs.rows.of.get(group.key)  # a group without a row has no pods
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

    def _mark(self, going: _PendingEviction) -> None:
        message = going.eviction.message or _condition_message(going.eviction)
        self._pool.submit(self._condition(going.task, "True", REASON, message), lambda outcome: self._marked(going, outcome))

    def _condition(self, task: TaskSpec, status: str, reason: str, message: str) -> Write:
        condition = {
            "type": "DisruptionTarget",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": rfc3339(self._clock()),
        }
        body = msgspec.json.encode({"metadata": {"uid": task.uid}, "status": {"conditions": [condition]}})
        path = PODS.path(task.namespace, task.name, "status")
        return Write("PATCH", path, body, content_type=STRATEGIC, priority=Priority.BINDING, repeatable=True)

    def _marked(self, going: _PendingEviction, outcome: Outcome) -> None:
        if isinstance(outcome, NotFound):
            self._gone(going)
            return
        going.marked = not isinstance(outcome, KubeError)
        if going.term != self._term:
            self._in_flight -= 1
            self._give_up(going, "", told=False)
            return
        if isinstance(outcome, KubeError):
            log.warning("%s/%s: not marked as disrupted: %s", going.namespace, going.name, outcome)
        self._ask(going)

    def _ask(self, going: _PendingEviction) -> None:
        """Evicting or deleting a pod a second time does no harm: it is going already."""
        going.attempts += 1
        uid, deletes = going.eviction.uid, self._evictions() == "delete"
        if deletes:
            method, path = "DELETE", PODS.path(going.namespace, going.name)
            body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})
        else:
            method, path = "POST", PODS.path(going.namespace, going.name, "eviction")
            body = msgspec.json.encode(eviction_body(going.namespace, going.name, uid, None))
        write = Write(method, path, body, priority=Priority.BINDING, repeatable=True, attempts=1)
        self._pool.submit(write, lambda outcome: self._asked(going, outcome, by_budget=not deletes))

    def _asked(self, going: _PendingEviction, outcome: Outcome, *, by_budget: bool) -> None:
        if not isinstance(outcome, KubeError):
            self._assumed.accept_eviction(going.eviction.uid)
            self._done(going, "ok")
            self._tell(going.eviction, going.task)
        elif isinstance(outcome, NotFound):
            self._gone(going)
        elif going.term != self._term:
            self._in_flight -= 1
            self._give_up(going, "", told=False)
        elif by_budget and isinstance(outcome, TooManyRequests):
            self._in_flight -= 1
            self._protect(going.eviction.uid)
            self._give_up(going, str(outcome))
        else:
            loop = asyncio.get_running_loop()
            asked = getattr(outcome, "retry_after", None)
            wait = max(asked or 0.0, min(0.5 * 2 ** min(going.attempts, 5), 10.0))
            if loop.time() + wait > going.deadline:
                self._in_flight -= 1
                self._protect(going.eviction.uid)
                self._give_up(going, str(outcome))
            else:
                self._refused[going.eviction.uid] = going, loop.call_later(wait, self._again, going)

    def _gone(self, going: _PendingEviction) -> None:
        """If the watch goes on showing the pod, its eviction is abandoned as one that was accepted."""
        self._assumed.accept_eviction(going.eviction.uid)
        self._done(going, "gone")

    def _protect(self, uid: str) -> None:
        row = self._cache.cluster.tasks.rows.of.get(uid)
        if row is not None:
            if (before := self._protected.pop(uid, None)) is not None:
                before.cancel()
            self._cache.cluster.put_object(REFUSED_EVICTIONS, "", uid, row)
            self._protected[uid] = asyncio.get_running_loop().call_later(self._timeout, self._unprotect, uid)

    def _unprotect(self, uid: str) -> None:
        self._protected.pop(uid, None)
        self._cache.cluster.remove_object(REFUSED_EVICTIONS, "", uid)

    def _again(self, going: _PendingEviction) -> None:
        del self._refused[going.eviction.uid]
        if going.eviction.uid in self._assumed.evictions:
            self._ask(going)
        else:
            self._done(going, "gone")

    def _done(self, going: _PendingEviction, result: str) -> None:
        self._in_flight -= 1
        self._count(going.eviction.action, result)

    def abandon(self, task: TaskSpec, why: str) -> None:
        """The eviction was accepted, and the pod stays. It is no victim for as long as `timeout`."""
        self._protect(task.uid)
        self._say_given_up(task, why, marked=task.disruption_target)

    def take_back_marks(self) -> None:
        """Take back the condition of running pods that no eviction is under way for: a scheduler that was stopped while it evicted
        them left it. Call it some time after the lead was taken. Until then this leader may choose the same victims."""
        names, nodes = self._cache.settings.scheduler_names, self._cache.cluster.nodes
        for task in list(self._cache.cluster.tasks.specs):
            if (
                task is None
                or not task.disruption_target
                or task.deleting
                or task.status not in (TaskStatus.BOUND, TaskStatus.RUNNING)
            ):
                continue
            row = nodes.rows.of.get(task.node)
            if row is None or not nodes.alive[row]:  # a scheduler of another pool evicts there
                continue
            if task.uid not in self._assumed.evictions and (names is None or task.scheduler_name in names):
                self._say_given_up(task, LEFT_MARKED, marked=True)

    def _give_up(self, going: _PendingEviction, why: str, *, told: bool = True) -> None:
        self._assumed.end_eviction(going.eviction.uid)
        self._cache.refresh(going.eviction.uid)
        self._count(going.eviction.action, "given up")
        if told:
            fields = {"pod": f"{going.namespace}/{going.name}", "reason": "EvictionGivenUp"}
            log.warning("eviction of %s/%s was given up: %s", going.namespace, going.name, why, extra=fields)
            self._say_given_up(going.task, why, marked=going.marked)

    def _say_given_up(self, task: TaskSpec, why: str, *, marked: bool) -> None:
        self._events.emit(pod_reference(task.namespace, task.name, task.uid), "Warning", "EvictionGivenUp", "Evicting", why)
        if marked:
            self._pool.submit(self._condition(task, "False", "EvictionGivenUp", why), lambda outcome: None)


def _kai_annotations(eviction: Eviction) -> dict[str, str]:
    """How many pods go together, by which action, and for which group."""
    found = {"num-evicted-pods": str(eviction.together), "evictor-action-type": eviction.action}
    if eviction.for_:
        namespace, _, name = shown_key(eviction.for_).partition("/")
        found |= {"evictor-pod-group-namespace": namespace, "evictor-pod-group-name": name}
    return found


def _condition_message(eviction: Eviction) -> str:
    """Why the pod goes, with the job as users name it."""
    return f"{eviction.reason}: {shown_key(eviction.for_)}" if eviction.for_ else eviction.reason
