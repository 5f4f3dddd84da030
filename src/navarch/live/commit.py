"""From a cycle's record to the world: assume what was decided, hand it to the writers, remember who has to wait.

Everything here is memory and queues; not one await stands between a decision and its assumption, so no event can come
between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from navarch.engine.reasons import Event
from navarch.engine.record import Bind, CycleRecord, Eviction, JobDecision, Nomination, QueueFigures
from navarch.ingest.groups import is_shadow
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods, AssumedStatus, same_status
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.queue import claim_signatures
from navarch.live.queue.equivalence_classes import equivalence_key, footprint, min_requests, selected_label_keys, signature
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.model.spec import JobSpec, TaskSpec

_OWN = frozenset({Event.POD_CHANGED, Event.JOB_CHANGED})
"""Events that concern a job only if they are about its own pods or group: it is activated for those by name."""


class Writers(Protocol):
    """Who carries decisions out. Each call returns at once."""

    def bind(self, bind: AssumedBind) -> None: ...
    def cannot(self, task: TaskSpec, why: str) -> None: ...
    def evict(self, eviction: Eviction, task: TaskSpec) -> None: ...
    def nominate(self, nomination: Nomination, task: TaskSpec) -> None: ...
    def group(self, decision: JobDecision, job: JobSpec) -> None: ...
    def refuse(self, decision: JobDecision, job: JobSpec, promised: frozenset[str]) -> None: ...
    def queues(self, figures: list[QueueFigures]) -> None: ...


class Commit:
    """`obstacle` says why a bind could not be carried out here whatever the API server says; empty: nothing."""

    def __init__(
        self,
        cache: ClusterCache,
        assumed: AssumedPods,
        queue: SchedulingQueue,
        writers: Writers,
        obstacle: Callable[[Bind, TaskSpec], str] = lambda bind, task: "",
    ) -> None:
        self._obstacle = obstacle
        self._cache = cache
        self._assumed = assumed
        self._queue = queue
        self._label_keys: frozenset[str] | None = None
        """Labels that rules about pods read; None: nobody has asked in this cycle."""
        self._writers = writers

    def take(self, record: CycleRecord, now: float) -> bool:
        """`now` is the event loop's time. True: somebody was activated for whom there may be room as well."""
        blocked = self._blocked(record, now)
        placed = self._binds(record, now, blocked)
        leaving = self._evictions(record, now)
        promised = self._promises(record)
        self._label_keys = None
        for decision in record.jobs:
            self._job(decision, now, placed, promised, blocked)
        self._writers.queues(record.queues)
        activated = self._queue.pop_more()
        # Who was tried before others were placed or asked to leave has not seen it.
        if placed:
            activated += self._queue.activate_on(Event.POD_CHANGED)
        for task in leaving:
            activated += self._queue.activate_on(Event.POD_REMOVED, footprint(task.shape))
        return bool(activated)

    def _binds(self, record: CycleRecord, now: float, blocked: set[str]) -> set[str]:
        cluster, assumed = self._cache.cluster, self._assumed
        leaving = {eviction.uid for eviction in record.evictions}
        placed: set[str] = set()
        for bind in record.binds:
            task = cluster.task(bind.uid)
            if task is None or bind.uid in leaving or bind.job in blocked or self._is_too_soon(bind, now):
                continue
            entry = AssumedBind(bind.uid, task.namespace, task.name, bind.node, bind.job, now, bind.gpu_groups)
            assumed.binds[bind.uid] = entry
            assumed.nominations.pop(bind.uid, None)
            self._cache.refresh(bind.uid)
            placed.add(bind.job)
            self._writers.bind(entry)
        return placed

    def _is_too_soon(self, bind: Bind, now: float) -> bool:
        """Its last bind failed a moment ago, and it would be tried in every cycle: its job has pods on nodes, so it does not sleep."""
        last = self._assumed.postponed.get(bind.uid)
        if last is None or now >= last.until:
            return False
        jobs, tasks = self._cache.cluster.jobs, self._cache.cluster.tasks
        members = jobs.tasks[jobs.rows.of[bind.job]] if bind.job in jobs.rows.of else ()
        return any((spec := tasks.specs[task]) is not None and spec.node for task in members)

    def _blocked(self, record: CycleRecord, now: float) -> set[str]:
        """Jobs of which some pod cannot be bound here: none of their pods is, since half a gang helps nobody."""
        blocked: set[str] = set()
        for bind in record.binds:
            task = self._cache.cluster.task(bind.uid) if bind.gpu_groups else None
            why = self._obstacle(bind, task) if task is not None else ""
            if task is not None and why:
                blocked.add(bind.job)
                self._writers.cannot(task, why)
        for job in sorted(blocked):
            self._queue.add_unschedulable(job, (Event.POLICY_CHANGED,), 1, now)
        return blocked

    def _evictions(self, record: CycleRecord, now: float) -> list[TaskSpec]:
        cluster, leaving = self._cache.cluster, list[TaskSpec]()
        for eviction in record.evictions:
            task = cluster.task(eviction.uid)
            if task is None or not task.node or eviction.uid in self._assumed.evictions:
                continue  # one that was given its place in this very cycle is not bound, and that is all
            self._assumed.evictions[eviction.uid] = now
            self._cache.refresh(eviction.uid)
            self._writers.evict(eviction, task)
            leaving.append(task)
        return leaving

    def _promises(self, record: CycleRecord) -> frozenset[str]:
        """Only what something was evicted for is kept: every other promise is found again by the next cycle."""
        cluster = self._cache.cluster
        for nomination in record.nominations:
            task = cluster.task(nomination.uid)
            if task is None or not nomination.evicting or task.node or task.nominated_node == nomination.node:
                continue
            self._assumed.nominations[nomination.uid] = nomination.node
            self._cache.refresh(nomination.uid)
            self._writers.nominate(nomination, task)
        return frozenset(nomination.uid for nomination in record.nominations)

    def _job(self, decision: JobDecision, now: float, placed: set[str], promised: frozenset[str], blocked: set[str]) -> None:
        cluster = self._cache.cluster
        row = cluster.jobs.rows.of.get(decision.job)
        job = cluster.jobs.specs[row] if row is not None else None
        if job is None or row is None:
            return
        if decision.changed and not same_status(job, decision.phase, decision.conditions):
            job = self._settle(decision, job)
        self._writers.group(decision, job)
        if decision.refusals:
            self._writers.refuse(decision, job, promised)
        if decision.job in blocked:
            return
        if decision.job in placed or decision.pods.get("Pipelined"):
            self._queue.placed(decision.job)
        elif not decision.pods.get("Pending") or decision.pods.get("Allocated"):
            # Nothing to wait for; or it keeps nodes for itself while it is tried, which it would lose to others in its sleep.
            self._queue.activate(decision.job)
        elif decision.reasons or decision.refusals:
            events = {event for reason in decision.reasons for event in reason.undone_by} - _OWN
            self._fails(job, row, events, now)

    def _fails(self, job: JobSpec, row: int, events: set[Event], now: float) -> None:
        cluster = self._cache.cluster
        # What a queue is due decides as well from whom its jobs may take, of which no refusal of theirs may speak.
        events.add(Event.QUEUE_CHANGED)
        jobs, rows = cluster.jobs, list(cluster.jobs.tasks[row])
        tasks = [spec for task in rows if (spec := cluster.tasks.specs[task]) is not None]
        shapes = cluster.tasks.shape[rows].tolist()
        if not cluster.shapes.social.keys().isdisjoint(shapes):
            events.add(Event.POD_CHANGED)
        if self._label_keys is None:
            self._label_keys = selected_label_keys(cluster.shapes.social.values())
        progress = jobs.counts[row].tobytes() + jobs.allocated[:, row].tobytes()
        claims = cluster.objects.get(claim_signatures.KIND, {})
        equivalence = equivalence_key(job, shapes, tasks, progress, label_keys=self._label_keys, claims=claims)
        requests = min_requests(tasks) if equivalence is not None else ()
        coarse = signature(cluster, job.key) if equivalence is not None else None
        self._queue.add_unschedulable(
            job.key,
            events,
            len(tasks),
            now,
            equivalence=equivalence,
            requests=requests,
            created=job.created,
            signature=coarse,
        )

    def _settle(self, decision: JobDecision, job: JobSpec) -> JobSpec:
        if is_shadow(job.key):
            changed = self._cache.shadows.settle(job.key, decision.phase, decision.conditions)
            if changed is None:
                return job
            job = changed
        else:
            self._assumed.statuses[job.key] = AssumedStatus(job.uid, decision.phase, decision.conditions)
            job = replace(job, phase=decision.phase, conditions=decision.conditions)
        self._cache.put_status(job)
        return job
