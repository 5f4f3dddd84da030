"""Commit a cycle's record: assume each decision, emit the instruction that carries it out, and tell the queue what waits.

Nothing here waits: no event can come between a decision and its assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec.structs import replace

from navarch.engine.pod_conditions import pod_reason
from navarch.engine.reasons import Event
from navarch.engine.record import Bind, CycleRecord, JobDecision
from navarch.ingest.groups import is_shadow
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods, AssumedStatus, same_status
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.instructions import (
    BindPod,
    EvictPod,
    Instruction,
    NominateNode,
    ReleaseClaim,
    WriteGroupStatus,
    WriteQueueStatuses,
    WriteRefusal,
    WriteRefusals,
)
from navarch.live.queue import claim_signatures
from navarch.live.queue.equivalence_classes import equivalence_key, min_requests, occupied_requests, selected_label_keys, signature
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.model.spec import JobSpec, TaskSpec

_OWN_EVENTS = frozenset({Event.POD_CHANGED, Event.JOB_CHANGED})
"""Events that concern a job only if they are about its own pods or group. The queue activates it by name for those."""

Unsupported = Callable[[Bind, TaskSpec], str]
"""Why a bind cannot be carried out in this installation, whatever the API server says; empty: it can."""


class Commit:
    def __init__(
        self,
        cache: ClusterCache,
        assumed: AssumedPods,
        queue: SchedulingQueue,
        emit: Callable[[Instruction], None],
        unsupported: Unsupported = lambda bind, task: "",
    ) -> None:
        self._cache = cache
        self._assumed = assumed
        self._queue = queue
        self._emit = emit
        self._unsupported = unsupported
        self._label_keys: frozenset[str] | None = None
        """`selected_label_keys` of the cluster; None: not computed in this cycle."""

    def commit(self, record: CycleRecord, now: float, withheld: Collection[str] = ()) -> bool:
        """`now` is the event loop's time. `withheld`: pods that a later cycle binds. Returns whether jobs became active
        that may be placed by another cycle at once."""
        blocked = self._blocked(record, now)
        placed = self._binds(record, now, blocked, withheld)
        evicted = self._evictions(record, now)
        nominated = self._nominations(record)
        self._label_keys = None
        untried = {decision.job for decision in record.jobs} - placed if record.cut else set[str]()
        failed = {failure.job for failure in record.failures}
        for decision in record.jobs:
            self._job(decision, now, placed, nominated, blocked | untried)
            if decision.job in failed:  # in no class: jobs like it that arrive do not let it be tried again
                self._queue.add_unschedulable(decision.job, (Event.POLICY_CHANGED,), sum(decision.pods.values()), now)
        self._emit(WriteQueueStatuses(record.queues))
        for release in record.releases:
            namespace, _, name = release.claim.partition("/")
            self._emit(ReleaseClaim(namespace, name, release.uid))
        activated = self._queue.pop_more()
        # Jobs that were tried before these pods were placed or evicted have not seen the change.
        if placed:
            activated += self._queue.activate_on(Event.POD_CHANGED)
        for task in evicted:
            activated += self._queue.activate_on(Event.POD_REMOVED, occupied_requests(task.shape))
        return bool(activated)

    def _binds(self, record: CycleRecord, now: float, blocked: set[str], withheld: Collection[str]) -> set[str]:
        """Returns the jobs of the pods that are bound."""
        cluster, assumed = self._cache.cluster, self._assumed
        evicted = {eviction.uid for eviction in record.evictions}
        placed: set[str] = set()
        for bind in record.binds:
            task = cluster.task(bind.uid)
            if task is None or bind.uid in evicted or bind.job in blocked or bind.uid in withheld or self._is_backing_off(bind, now):
                continue
            entry = AssumedBind(
                bind.uid, task.namespace, task.name, bind.node, bind.job, now, bind.gpu_groups, bind.annotations, bind.numa_placement
            )
            assumed.binds[bind.uid] = entry
            assumed.nominations.pop(bind.uid, None)
            self._cache.refresh(bind.uid)
            placed.add(bind.job)
            self._emit(BindPod(entry))
        return placed

    def _is_backing_off(self, bind: Bind, now: float) -> bool:
        """Whether the pod's last bind failed a moment ago. This matters for a job with pods on nodes: such a job is always active, so
        the pod would be bound again in every cycle."""
        last = self._assumed.postponed.get(bind.uid)
        if last is None or now >= last.until:
            return False
        jobs, tasks = self._cache.cluster.jobs, self._cache.cluster.tasks
        members = jobs.tasks[jobs.rows.of[bind.job]] if bind.job in jobs.rows.of else ()
        return any((spec := tasks.specs[task]) is not None and spec.node for task in members)

    def _blocked(self, record: CycleRecord, now: float) -> set[str]:
        """Jobs with a pod that cannot be bound in this installation. None of their pods is bound: gangs start complete."""
        blocked: set[str] = set()
        for bind in record.binds:
            task = self._cache.cluster.task(bind.uid) if bind.gpu_groups else None
            message = self._unsupported(bind, task) if task is not None else ""
            if task is not None and message:
                blocked.add(bind.job)
                self._emit(WriteRefusal(task, pod_reason("Unsupported"), message))
        for job in sorted(blocked):
            self._queue.add_unschedulable(job, (Event.POLICY_CHANGED,), 1, now)
        return blocked

    def _evictions(self, record: CycleRecord, now: float) -> list[TaskSpec]:
        cluster, evicted = self._cache.cluster, list[TaskSpec]()
        for eviction in record.evictions:
            task = cluster.task(eviction.uid)
            if task is None or not task.node or eviction.uid in self._assumed.evictions:
                continue  # a pod that was placed in this same cycle is just not bound
            self._assumed.evictions[eviction.uid] = now
            self._cache.refresh(eviction.uid)
            self._emit(EvictPod(eviction, task))
            evicted.append(task)
        return evicted

    def _nominations(self, record: CycleRecord) -> frozenset[str]:
        """A nomination is kept if something was evicted for it, and follows its pod to another node. The next cycle finds every other
        one again. Returns the pods whose nomination stands."""
        cluster, standing = self._cache.cluster, list[str]()
        for nomination in record.nominations:
            task = cluster.task(nomination.uid)
            if task is None or task.node or not (nomination.evicting or task.nominated_node):
                continue
            standing.append(nomination.uid)
            if task.nominated_node == nomination.node:
                continue
            self._assumed.nominations[nomination.uid] = nomination.node
            self._cache.refresh(nomination.uid)
            self._emit(NominateNode(nomination, task))
        return frozenset(standing)

    def _job(self, decision: JobDecision, now: float, placed: set[str], nominated: frozenset[str], blocked: set[str]) -> None:
        cluster = self._cache.cluster
        row = cluster.jobs.rows.of.get(decision.job)
        job = cluster.jobs.specs[row] if row is not None else None
        if job is None or row is None or self._cache.is_foreign_group(job.key):
            return
        if decision.changed and (is_shadow(job.key) or not same_status(job, decision.phase, decision.conditions)):
            job = self._assume_status(decision, job)
        if not job.shadow:
            if decision.last_started is not None and decision.last_started != job.last_started:
                job = self._assume_start(job, decision.last_started)
            self._emit(WriteGroupStatus(job.key, decision))
        if decision.refusals:
            self._emit(WriteRefusals(decision, job, nominated))
        if decision.job in blocked:
            return
        if decision.job in placed or decision.pods.get("Pipelined"):
            self._queue.placed(decision.job)
        elif not decision.pods.get("Pending") or decision.pods.get("Allocated"):
            # It has no pending pods; or it reserves nodes only in cycles that try it, so it has to stay active.
            self._queue.activate(decision.job)
        elif decision.reasons or decision.refusals:
            events = {event for reason in decision.reasons for event in reason.undone_by} - _OWN_EVENTS
            self._add_unschedulable(job, row, events, now)

    def _add_unschedulable(self, job: JobSpec, row: int, events: set[Event], now: float) -> None:
        cluster = self._cache.cluster
        # A queue's fair share also decides from which jobs its own may reclaim. The reasons of a refusal do not mention that.
        events.add(Event.QUEUE_CHANGED)
        jobs, rows = cluster.jobs, list(cluster.jobs.tasks[row])
        tasks = [spec for task in rows if (spec := cluster.tasks.specs[task]) is not None]
        shapes = cluster.tasks.shape[rows].tolist()
        if not cluster.shapes.with_pod_rules.keys().isdisjoint(shapes):
            events.add(Event.POD_CHANGED)
        if self._label_keys is None:
            self._label_keys = selected_label_keys(cluster.shapes.with_pod_rules.values())
        progress = jobs.counts[row].tobytes() + jobs.allocated[:, row].tobytes()
        claims = cluster.objects.get(claim_signatures.KIND, {})
        equivalence = equivalence_key(job, shapes, tasks, progress, label_keys=self._label_keys, claims=claims)
        self._queue.add_unschedulable(
            job.key,
            events,
            len(tasks),
            now,
            equivalence=equivalence,
            requests=min_requests(tasks) if equivalence is not None else (),
            created=job.created,
            signature=signature(cluster, job.key) if equivalence is not None else None,
        )

    def _assume_start(self, job: JobSpec, moment: float) -> JobSpec:
        """What is protected by a minimum run time is so from its start on, before its object says when that was."""
        self._assumed.starts[job.key] = job.uid, moment
        job = replace(job, last_started=moment)
        self._cache.put_status(job)
        return job

    def _assume_status(self, decision: JobDecision, job: JobSpec) -> JobSpec:
        if is_shadow(job.key):
            changed = self._cache.shadows.settle(job.key, decision)
            if changed is None:
                return job
            job = changed
        else:
            self._assumed.statuses[job.key] = AssumedStatus(job.uid, decision.phase, decision.conditions)
            job = replace(job, phase=decision.phase, conditions=decision.conditions)
        self._cache.put_status(job)
        return job
