"""The live scheduler without I/O: cache, queue and commit. Events go in, instructions come out.

    core = LiveCore(settings, instructions.append)
    core.cache.put(node); core.cache.put_pod(pod)            # what watches show
    cycle = core.decide(policy, registry, wall_time)         # one cycle over a snapshot
    core.commit(cycle.record, now)                           # instructions: BindPod, EvictPod, WriteGroupStatus ...
    core.bind_succeeded(bind)                                # what became of a write

Everything is synchronous. The core owns no task, no socket and no clock: each event that needs the time is given it. `now` is a
monotonic time in seconds, the event loop's in production; `wall_time` is seconds since the epoch, the time of policies and the API.
The shell (`scheduler`) connects the core to informers and writers. Tests and benchmarks drive it directly.

Four rules hold whatever the order of events (tests/properties/test_live_core.py):

- A pod is bound once. A bind is assumed when it is decided and stays assumed until the API shows it or says that it does not exist.
  While the outcome of a write is unknown, the shell asks the API (`resolve_bind`) and the core decides nothing about the pod.
- A gang is complete or released. `check_gangs` finds gangs whose binding stopped half-way and evicts their pods after a time-out.
- No pending job is forgotten: every job that is not active has a back-off that ends.
- No promise is kept for ever: `check_promises` ends evictions and nominations that the API never shows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.kai.awaited_groups import AwaitedGroups
from navarch.engine.points.conversation import Exchange
from navarch.engine.policy import Policy
from navarch.engine.reasons import Event
from navarch.engine.record import Bind, CycleRecord, Eviction, JobFailure
from navarch.engine.registry import Registry
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.cache.change_events import PodWatcher
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.commit import Commit, Unsupported
from navarch.live.cycle import Cycle, decide_again, run_cycle
from navarch.live.gang_history import GangHistory
from navarch.live.half_bound_gangs import HalfBoundGangs
from navarch.live.instructions import (
    AbandonEviction,
    AbandonPreparation,
    BindResult,
    CheckVolumes,
    EndBind,
    EvictPod,
    Instruction,
    MarkGang,
    StartCycle,
    WriteGroupStatus,
    WriteRefusal,
)
from navarch.live.queue.equivalence_classes import occupied_requests
from navarch.live.queue.failed_jobs import FailedJobs, FailedNodes
from navarch.live.queue.rounds import Rounds
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.live.surplus import Surplus
from navarch.live.unconfirmed_decisions import UnconfirmedDecisions
from navarch.model.objects.composite_groups import KIND as COMPOSITE_GROUPS
from navarch.model.objects.last_runs import LAST_RUN, RULES, put_last_runs
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Requests, TaskSpec
from navarch.model.status import TaskStatus

log = logging.getLogger(__name__)


class LiveCore:
    """`emit` gets each instruction at the moment it is decided.

    `unsupported`: see `commit.Unsupported`. `owners_watched(kind)`: whether every owner of this kind is put into the cache sooner or
    later. `starts_gangs()`: whether the policy starts groups as gangs. `prepared_at(job)`: when the preparation of volumes or devices
    for the job last advanced; None if nothing is being prepared. `pod_watcher`: told of each pod that comes, changes or goes.
    `note_job`: see `engine.cycle.decide`. `awaited_groups`: which pods wait for KAI's pod grouper. `surplus_settle`: see
    `Surplus`."""

    def __init__(
        self,
        settings: Settings,
        emit: Callable[[Instruction], None],
        *,
        unsupported: Unsupported = lambda bind, task: "",
        owners_watched: Callable[[str], bool] = lambda kind: False,
        starts_gangs: Callable[[], bool] = lambda: True,
        prepared_at: Callable[[str], float | None] = lambda job: None,
        gang_timeout: float = 120.0,
        queue: SchedulingQueue | None = None,
        pod_watcher: PodWatcher | None = None,
        note_job: Callable[[str], None] | None = None,
        awaited_groups: AwaitedGroups | None = None,
        surplus_settle: float = 0.0,
    ) -> None:
        self._emit = emit
        self._note_job = note_job
        self._gang_timeout = gang_timeout
        self.queue = SchedulingQueue() if queue is None else queue
        self.assumed = AssumedPods()
        self.cache = ClusterCache(
            settings,
            self.assumed,
            self.cluster_event,
            on_job_removed=self.queue.forget,
            on_demand_changed=self.queue.update,
            on_volumes_changed=lambda: emit(CheckVolumes()),
            owners_watched=owners_watched,
            pod_watcher=pod_watcher,
            awaited_groups=awaited_groups,
        )
        self.surplus = Surplus(self.cache, surplus_settle)
        self._commit = Commit(self.cache, self.assumed, self.queue, emit, unsupported)
        history = GangHistory(self.cache, lambda task, complete: emit(MarkGang(task, complete)))
        self.gangs = HalfBoundGangs(self.cache, self._release_gang, gang_timeout, starts_gangs, prepared_at, history)
        self._unconfirmed = UnconfirmedDecisions(self.assumed, self._abandon_eviction, self._end_nomination)
        self._rounds = Rounds()
        self._in_parts = False
        """The cycle under way decides a part of the backlog."""
        self.failed_jobs = FailedJobs()
        self.failed_nodes = FailedNodes()
        self.leading = False
        self.last_cycle: Cycle | None = None
        self.cycles = 0
        """Cycles started so far."""
        self._reusable: Snapshot | None = None
        """The last cycle's snapshot, unless it is still being read."""
        self._void_before = 0.0
        self._set_aside: Collection[str] = ()
        """Jobs that take no part in the cycle under way."""
        self._left_out_nodes: Collection[str] = ()
        """Nodes that take no part in it."""
        self._failed_before: Sequence[JobFailure] = ()
        """Failures of an earlier process that it tells."""

    # leadership

    def start_leading(self, now: float) -> None:
        """Another scheduler may have led since. Binds that were not sent are void, and what was promised or assumed of statuses gives
        way to what the API shows. Every job is tried again."""
        self.leading = True
        self._void_before = now
        nominated, told = list(self.assumed.nominations), list({**self.assumed.statuses, **self.assumed.starts})
        self.assumed.nominations.clear()
        self.assumed.statuses.clear()
        self.assumed.starts.clear()
        for uid in nominated:
            self.cache.refresh(uid)
        for key in told:
            self.cache.refresh_group(key)
        self.queue.activate_all()
        for key in self.cache.groups():
            self._emit(WriteGroupStatus(key))
        self.gangs.start_leading(now)

    def stop_leading(self) -> None:
        self.leading = False

    # what the cache reports

    def cluster_event(self, event: Event, job: str = "", *, urgent: bool = True, freed: Requests | None = None) -> None:
        """An event about this job, or about the cluster if there is none (see `RaiseEvent`)."""
        queue = self.queue
        if job:
            if urgent:
                queue.update(job)
            if event is Event.POD_REMOVED:
                queue.activate_on(event, freed)
            if self.leading and job.count("/") == 1:  # a job that was made in memory has no object to write to
                self._emit(WriteGroupStatus(job))
        elif queue.activate_on(event, freed):
            urgent = True
        if urgent:
            self._emit(StartCycle())

    # cycles

    def decide(
        self,
        policy: Policy,
        registry: Registry,
        wall_time: float,
        *,
        identity: str = "",
        in_parts: bool = False,
        asks: bool = False,
    ) -> Cycle:
        """One cycle over a snapshot of the cache. Nothing is assumed yet: see `commit`. `in_parts`: a backlog is decided in parts (see
        `queue/rounds.py`). `asks`: the record may have a question instead of decisions; answer it by `decide_again`."""
        cluster = self.cache.cluster
        if LAST_RUN not in cluster.objects:
            put_last_runs(cluster, dict.fromkeys(RULES, wall_time))
        self.cycles += 1
        if len(self.queue) and registry.makes_promises(policy):
            self.queue.activate_queues(cluster, all_of_them=True)
        elif len(self.queue) and registry.keeps_order(policy):
            self.queue.activate_queues(cluster)
        if len(self.queue) and cluster.objects.get(COMPOSITE_GROUPS):
            self.queue.activate_composites(cluster)
        for key, inactive in self.queue.pop_changes(cluster):
            cluster.jobs.hold(key, inactive)
        uid = f"{identity}-{self.cycles}"
        self._set_aside = self.failed_jobs.set_aside(cluster, wall_time)
        self._left_out_nodes = self.failed_nodes.left_out(wall_time)
        self._failed_before = self.failed_jobs.unreported(self._set_aside)
        self._in_parts = in_parts
        cycle = run_cycle(
            cluster,
            policy,
            registry,
            wall_time,
            self.cycles,
            uid,
            rounds=self._rounds if in_parts else None,
            instead_of=self._reusable,
            set_aside=self._set_aside,
            left_out_nodes=self._left_out_nodes,
            failed_before=self._failed_before,
            note_job=self._note_job,
            asks=asks,
        )
        return self._decided(cycle)

    def decide_again(self, cycle: Cycle, registry: Registry, exchanges: list[Exchange]) -> Cycle:
        """The same cycle with what servers outside have answered since."""
        aside, nodes, before = self._set_aside, self._left_out_nodes, self._failed_before
        return self._decided(decide_again(cycle, registry, aside, nodes, before, exchanges, self._note_job))

    def _decided(self, cycle: Cycle) -> Cycle:
        self._reusable = cycle.snapshot
        if cycle.record.question is None:
            self.failed_jobs.take(cycle.record, cycle.now)
            self.failed_nodes.take(cycle.record, cycle.now)
            put_last_runs(self.cache.cluster, cycle.record.last_runs)
            if self._in_parts:
                self._rounds.end(cut=cycle.record.cut)
            self.last_cycle = cycle
        return cycle

    def drop_outdated(self, record: CycleRecord) -> None:
        """The cluster may have changed while servers were asked: leave out pods that are gone or have a node, and nodes that are
        gone."""
        cluster = self.cache.cluster

        def stands(bind: Bind) -> bool:
            task, node = cluster.task(bind.uid), cluster.nodes.rows.of.get(bind.node)
            waits = task is not None and task.status == TaskStatus.PENDING and not task.deleting
            return waits and node is not None and bool(cluster.nodes.alive[node])

        record.binds = [bind for bind in record.binds if stands(bind)]

    def keep_snapshot(self) -> None:
        """The last cycle's snapshot is being read: the next cycle must not overwrite it."""
        self._reusable = None

    def commit(self, record: CycleRecord, now: float) -> None:
        """Assume what a cycle decided and emit what carries it out."""
        withheld = self.surplus.withheld(record, now)
        self.gangs.bind({bind.job for bind in record.binds})
        if self._commit.commit(record, now, withheld):
            self._emit(StartCycle())

    # what became of a bind

    def may_send(self, bind: AssumedBind) -> bool:
        """The binding is about to be sent. False: it must not be, and the bind has ended."""
        if not self.is_assumed(bind):
            self._end_unsent(bind)
            return False
        if bind.since < self._void_before:
            del self.assumed.binds[bind.uid]
            self.cache.refresh(bind.uid)
            self._emit(EndBind(bind, BindResult.DROPPED))
            return False
        return True

    def is_assumed(self, bind: AssumedBind) -> bool:
        """Whether the bind still hides what the API shows. It ends when a watch shows the pod on a node, or gone."""
        return self.assumed.binds.get(bind.uid) is bind

    def bind_succeeded(self, bind: AssumedBind) -> None:
        """The API server has the binding. The assumption stays until the watch shows it. A binding that another scheduler made is
        that one's to announce; a request to another binder was announced when it was written."""
        bind.written = True
        self.gangs.bound(bind.job, bind.uid)
        self.queue.forget(bind.job)
        self._emit(EndBind(bind, BindResult.BOUND, announce=not bind.refused and not bind.delegated))

    def request_succeeded(self, bind: AssumedBind, now: float) -> None:
        """A request to another binder was written."""
        self.queue.forget(bind.job)
        self._emit(EndBind(bind, BindResult.BOUND, announce=True))
        bind.written, bind.since = True, now

    def bind_failed(self, bind: AssumedBind, message: str, now: float) -> None:
        """The pod is not bound: free its place and let it be decided again."""
        if not self.is_assumed(bind):
            self._end_unsent(bind)
            return
        del self.assumed.binds[bind.uid]
        self.assumed.postpone(bind.uid, now)
        self.cache.refresh(bind.uid)
        self._emit(EndBind(bind, BindResult.FAILED))
        task = self.cache.cluster.task(bind.uid)
        if task is not None and task.status == TaskStatus.PENDING:
            self._emit(WriteRefusal(task, "SchedulerError", f"binding to {bind.node} failed: {message}", at_once=True))
            self.queue.add_unschedulable(bind.job, (), 1, now)
        self.cluster_event(Event.POD_REMOVED, freed=occupied_requests(task.shape) if task is not None else None)

    def bind_overtaken(self, bind: AssumedBind) -> None:
        """The watch was quicker than the answer: it has shown the pod on a node, or gone."""
        if bind.written:
            return  # its end was emitted when it was written
        task = self.cache.cluster.task(bind.uid)
        if task is not None and task.node == bind.node:
            self.bind_succeeded(bind)
        else:
            self._emit(EndBind(bind, BindResult.DROPPED))

    def resolve_bind(self, bind: AssumedBind, found: Pod | None, now: float) -> None:
        """The outcome of the bind's write was unknown, and the API server answered with this pod; None: it does not exist."""
        if not self.is_assumed(bind):
            self.bind_overtaken(bind)
        elif found is None:
            self.bind_failed(bind, "the pod is gone", now)
        elif found.metadata.uid != bind.uid:
            self.bind_failed(bind, "the pod is gone; another has its name", now)
        elif found.spec.node_name == bind.node:
            if not bind.written:
                self.bind_succeeded(bind)
            bind.since = now
        elif found.spec.node_name:
            # The watch will show the pod on that node.
            self.bind_failed(bind, f"another scheduler bound the pod to {found.spec.node_name}", now)
        else:
            self.bind_failed(bind, bind.answer or "the API server does not have the binding", now)

    def _end_unsent(self, bind: AssumedBind) -> None:
        """The pod has its node, or is gone, and not by this bind. What was prepared stays if the node is the same."""
        bind.refused = True
        self.bind_overtaken(bind)

    # promises

    def check_promises(self, now: float) -> None:
        """End evictions and nominations that the API never shows (see `unconfirmed_decisions`). Called once a second."""
        last = self.last_cycle
        self._unconfirmed.check(now, {each.uid for each in last.record.nominations} if last is not None else ())

    def _abandon_eviction(self, uid: str, seconds: float) -> None:
        self.assumed.end_eviction(uid)
        self.cache.refresh(uid)
        task = self.cache.cluster.task(uid)
        if task is not None:
            reason = f"the pod does not leave {seconds:g} s after its eviction was accepted"
            log.warning("%s: %s; it counts as running", task.key, reason)
            self._emit(AbandonEviction(task, reason))
        self._emit(StartCycle())

    def _end_nomination(self, uid: str) -> None:
        self.assumed.nominations.pop(uid, None)
        self.cache.refresh(uid)
        self._emit(StartCycle())

    # gangs

    def check_gangs(self, now: float) -> None:
        """Release gangs that stayed half bound for too long (see `half_bound_gangs`). Called once a second."""
        self.gangs.check(now)

    def _release_gang(self, job: str, tasks: list[TaskSpec], now: float) -> None:
        message = f"the gang {job} could not be completed within {self._gang_timeout:g} s and is released"
        log.warning("%s: evicting %d pods", message, len(tasks), extra={"job": job, "reason": "GangTimeout"})
        self._emit(AbandonPreparation(job, message))
        for task in tasks:
            if task.uid in self.assumed.evictions:
                continue
            self.assumed.evictions[task.uid] = now
            self.cache.refresh(task.uid)
            self._emit(EvictPod(Eviction(task.key, task.node, task.uid, job, "release", job, "release", message), task))
