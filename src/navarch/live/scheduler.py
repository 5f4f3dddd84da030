"""`navarch run`: the shell around the live core. It owns the sockets, the tasks and the clocks.

    scheduler = Scheduler(endpoint, RunOptions(scheduler_names=("navarch",)))
    await scheduler.run()        # until cancelled; writes in flight are finished first

Informers put objects into the core's cache. `cycle_loop` says when a cycle runs, and `leader_cycles` runs it. Writers carry out the
core's instructions and report the outcomes.

The informers run on every replica, so that a replica that takes over can decide at once. Only the leader decides and writes. It checks
its lease before each cycle, because a process can be stopped for longer than its lease lasts.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import time
from collections.abc import Callable

from navarch.apis.dialect import Settings
from navarch.apis.kai.awaited_groups import AwaitedGroups
from navarch.engine.reasons import Event
from navarch.engine.record import Bind
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.kube.auth.access_review import REVIEWS_AT_ONCE
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.resources import NODES, PODS
from navarch.kube.watch.comparison import Comparison
from navarch.kube.watch.patience import Patience
from navarch.kube.write.pool import WritePool
from navarch.live.cache.informers import Informers
from navarch.live.cache.invalid_objects import InvalidObjects
from navarch.live.core import LiveCore
from navarch.live.cycle_loop import CycleLoop
from navarch.live.half_bound_gangs import starts_gangs
from navarch.live.hangs.crash_folder import CrashFolder
from navarch.live.hangs.recovery import CrashRecovery
from navarch.live.hangs.watchdog import Watchdog
from navarch.live.instructions import AbandonPreparation, BindResult, CheckVolumes, EndBind, Instruction, ReleaseClaim, StartCycle
from navarch.live.leader_cycles import LeaderCycles
from navarch.live.node_load.feed import NodeLoadFeed
from navarch.live.ops.cycle_reports import CycleReports
from navarch.live.ops.dry_run.comparison import DryRun
from navarch.live.ops.dry_run.report import DryRunReport
from navarch.live.ops.election import Elector, make_identity
from navarch.live.ops.garbage_collection import collect_rarely
from navarch.live.ops.lease import ApiLeaseLock
from navarch.live.ops.metric_names.systems import followed_metrics
from navarch.live.ops.metrics import Metrics, counting
from navarch.live.ops.operator_server import OperatorServer
from navarch.live.ops.periodic_tasks import PeriodicTasks
from navarch.live.ops.policy_file import PolicyFile
from navarch.live.ops.recording import CycleRecorder
from navarch.live.ops.rule_failures import RuleFailures
from navarch.live.ops.second_loop import Heartbeat, SecondLoop, run_in
from navarch.live.ops.state.cycle_log import CycleLog
from navarch.live.ops.supervised_tasks import SupervisedTasks
from navarch.live.prebind.steps import PrebindSteps
from navarch.live.run_options import RunOptions
from navarch.live.usage.job_recorder import JobRecorder
from navarch.live.usage.queue_usage import QueueUsage
from navarch.live.usage.usage_over_time import UsageOverTime
from navarch.live.writers.bind_outcomes import BindOutcomes
from navarch.live.writers.bind_requests import RESOURCE as REQUESTS
from navarch.live.writers.bind_requests import BindRequests
from navarch.live.writers.events import Events, Regarding
from navarch.live.writers.request_turns import is_fraction
from navarch.live.writers.resync import Resync
from navarch.live.writers.writers import make_writers
from navarch.model.spec import TaskSpec

log = logging.getLogger(__name__)

FLUSH_INTERVAL = 0.1
"""Seconds between two looks for statuses that are due."""
MAX_BINDINGS_AHEAD = 1000
"""Start the next batch of the backlog only while fewer bindings than this have no outcome. The API server needs a second for them."""
DRAIN_TIMEOUT = 5.0
"""Seconds to wait for answers after the last write was sent."""
LAST_EVENTS = 0.3
"""Seconds to wait for events and statuses once every binding has its outcome. The next leader waits for the lease meanwhile."""
BUSY_BINDINGS = 200
"""While more bindings than this have no outcome, cycles that no event asks for are skipped."""


class Scheduler:
    """`clock` is seconds since the epoch: the time of policies and of the API. All waiting is on the event loop's clock. `make_pool`
    makes the pool of connections for writes. `crash_folder`: what the last process left, and where this one notes the job at hand."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: RunOptions,
        *,
        clock: Callable[[], float] = time.time,
        patience: Patience | None = None,
        policy_text: str | None = None,
        make_pool: type[WritePool] = WritePool,
        crash_folder: CrashFolder | None = None,
    ) -> None:
        self.options = options
        self.clock = clock
        self.identity = make_identity()
        self.metrics = Metrics()
        self.followed_metrics = followed_metrics(options.metrics_names, self.metrics.registry)
        self.policy_file = PolicyFile(
            options.policy, installed(options.plugin_dirs), options.plugin_dirs, text=policy_text, shard=options.shard
        )
        self.follows_shard = policy_text is not None
        """The policy is a SchedulingShard of the cluster, which may change."""
        self.elector: Elector | None = None
        rng = random.Random(options.seed)
        self.client = Client(endpoint, rng=rng, may_write=self.may_write)
        # The lease has a client of its own, used in the second loop alone: holding the lease is what allows other writes, and it must
        # not wait behind them.
        self.lease_client = Client(endpoint, rng=rng)
        # So do reviews of tokens: anyone who reaches the operators' port can cause them.
        self.review_client = Client(endpoint, rng=rng, connections=REVIEWS_AT_ONCE)
        self.pool = make_pool(endpoint, connections=options.write_connections, patience=20.0, rng=rng, may_write=self.may_write)

        self.job_recorder = None if options.history is None else JobRecorder(options.history, lambda: self.core.cache.cluster, clock)
        note_job = None if crash_folder is None else crash_folder.note_job
        self.core = LiveCore(
            self.read_settings(),
            self._carry_out,
            unsupported=self._unsupported,
            owners_watched=lambda kind: self.informers.watches_owners(kind),
            starts_gangs=lambda: starts_gangs(self.policy_file.policy, self.policy_file.registry),
            prepared_at=self._prepared_at,
            gang_timeout=options.gang_timeout,
            pod_watcher=self.job_recorder,
            note_job=note_job,
            awaited_groups=AwaitedGroups(clock, lambda: self.informers.kai_is_installed),
            surplus_settle=options.surplus_settle,
        )
        self.recovery = CrashRecovery(crash_folder, self.identity, self.core.failed_jobs, clock)
        self.cache, self.queue, self.assumed = self.core.cache, self.core.queue, self.core.assumed
        self.rule_failures = RuleFailures(
            self.metrics.job_failures,
            self.metrics.node_failures,
            self.metrics.plugin_failures,
            lambda job: job in self.cache.cluster.jobs.rows.of,
            lambda node, message: self.events.emit(Regarding("Node", "", node), "Warning", "InternalError", "Scheduling", message),
        )
        self.cycle_log = CycleLog()
        self.queue_usage = QueueUsage(lambda: self.cache.cluster.queues)
        self.watchdog = Watchdog(options.cycle_timeout)
        self.dry_run = DryRun(clock) if options.dry_run else None
        self.recorder = (
            CycleRecorder(options.record, more_annotations=options.record_annotations) if options.record is not None else None
        )
        self.cycles = LeaderCycles(
            self.core,
            self.policy_file,
            self.watchdog,
            CycleReports(
                self.core,
                self.metrics,
                self.followed_metrics,
                self.rule_failures,
                self.cycle_log,
                self.queue_usage,
                self.recorder,
            ),
            name=self.identity[-12:],
            clock=clock,
            may_run=lambda: self.leading and not self.rereading,
            prepare=lambda cycle: self.preparations.plan(cycle),
            trigger=lambda: self.cycle_loop.trigger(),
            dry_run=self.dry_run,
            ask_extenders=options.ask_extenders,
        )
        self.cycle_loop = CycleLoop(
            self.queue,
            self.cycles.run,
            period=options.period,
            settle=options.settle,
            busy=lambda: len(self.writers.binder.outbox) > BUSY_BINDINGS,
        )
        self.events = Events(
            self.pool,
            controller=options.scheduler_names[0],
            scheduler_of=self._scheduler_of,
            instance=self.identity,
            clock=clock,
            enabled=not options.dry_run,
            count=counting(self.metrics.events),
        )
        self.bind_outcomes = BindOutcomes(self.metrics, self.followed_metrics, self.events, lambda: self.cache.cluster, clock)
        self.invalid_objects = InvalidObjects(self.events, self.metrics, options.scheduler_names[0])
        self.supervised = SupervisedTasks(self.metrics.task_failures, rng)
        self.informers = Informers(self.client, self.cache, self.invalid_objects.report, patience, rng, self.supervised.run)
        self.comparison = Comparison(
            lambda: self.informers.group.informers,
            lambda resource, count: self.metrics.cache_drift.labels(resource.plural).inc(count),
            {PODS: self.cache.agrees_with_pod, NODES: self.cache.agrees_with_node},
            rng,
        )

        self.steps = PrebindSteps(
            self.client,
            self.core,
            self.policy_file,
            self.cycles.conversations.extenders,
            clock,
            claim_resource=lambda: self.informers.resources["ResourceClaim"],
            volume_timeout=options.volume_timeout,
            note_job=note_job,
        )
        self.preparations = self.steps.preparations
        self.bind_requests = BindRequests(
            self.client,
            self.cache,
            lambda: self.informers.serves(REQUESTS),
            enabled=options.bind_requests and not options.dry_run,
            devices=self.steps.for_request,
        )
        self.resync = Resync(self.client, self.core, rng)
        self.writers = make_writers(
            options,
            self.core,
            self.client,
            self.pool,
            self.events,
            self.metrics,
            clock,
            resync=self.resync,
            prepare=self.preparations.when_prepared,
            requests=self.bind_requests,
            evictions=lambda: self.policy_file.policy.evictions,
        )
        report = options.report
        self.report = None if report is None else DryRunReport(report, options.scheduler_names, self.policy_file.policy.source)

        self.usage = UsageOverTime(clock, self.supervised.run)
        self.node_load = NodeLoadFeed(
            self.client,
            lambda: self.cache.cluster,
            clock,
            lambda: self.core.cluster_event(Event.NODE_LOAD_CHANGED, urgent=False),
            self.supervised.run,
        )
        self.periodic_tasks = PeriodicTasks(self)
        self.heartbeat = Heartbeat(lambda: self.watchdog.limit)
        self._second_loop = SecondLoop()
        self._first_loop = asyncio.get_running_loop()
        self.operator_server = OperatorServer(self, self.heartbeat)
        self.rereading = False
        """The cache is being filled again and is not complete."""
        self._stopping = asyncio.Event()

    # life

    async def run(self) -> None:
        """Watch the cluster, and lead whenever elected, until stopped or cancelled."""
        listen, elected = self.options.listen, self.options.leader_elect and not self.options.dry_run
        if listen or elected:
            self._second_loop.start()
        if listen:
            await self._second_loop.run(self.operator_server.start)
        supervised = self.supervised.run
        tasks = [
            asyncio.create_task(supervised("heartbeat", self.heartbeat.run), name="heartbeat"),
            asyncio.create_task(supervised("informers", self.informers.run), name="informers"),
            asyncio.create_task(supervised("comparison", self.comparison.run), name="comparison"),
            asyncio.create_task(supervised("leading", self.lead_when_elected), name="leading"),
        ]
        try:
            await self._stopping.wait()
        finally:
            for task in reversed(tasks):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            if self.recorder is not None:
                await self.recorder.finish()
            if self.report is not None and self.dry_run is not None:
                self.report.write(self.dry_run, self.clock())
            if self.job_recorder is not None:
                await self.job_recorder.close()
            await self.steps.close()
            await self.pool.close()
            await self.client.close()
            await self._second_loop.run(self.operator_server.stop)
            await self._second_loop.run(self.review_client.close)
            await self._second_loop.run(self.lease_client.close)
            await self._second_loop.stop()

    def stop(self) -> None:
        """Let `run` finish the writes in flight, release the lease, and return."""
        self._stopping.set()

    async def lead_when_elected(self) -> None:
        """Lead in each term in which this replica holds the lease; without an election, until cancelled."""
        options = self.options
        if not options.leader_elect or options.dry_run:
            # If a process that writes nothing held the lease, the cluster would have no scheduler.
            await self.lead()
            return
        namespace = options.lock_namespace or self.client.endpoint.namespace
        lock = ApiLeaseLock(self.lease_client, namespace, options.lock_name)
        self.elector = Elector(
            lock,
            self.identity,
            lease_duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry_period=options.retry_period,
            on_new_leader=lambda leader: log.info("leader: %s", leader),
            alive=lambda: self.heartbeat.alive,
        )
        elector = self.elector
        await self._second_loop.run(lambda: self.recovery.announce(lock))
        # A replica that has not read the cluster leaves the lease to one that has.
        await self.informers.wait_for_sync()
        while True:
            await self._second_loop.run(lambda: elector.run(lambda: run_in(self._first_loop, self.lead)))

    async def lead(self) -> None:
        """Decide and write until cancelled; then finish the writes in flight."""
        await self.informers.wait_for_sync()
        # What was read at the start stays for the life of the process: the collector need not visit it again. A collection before that
        # would cost half a second with a hundred thousand pods, and find next to nothing.
        gc.freeze()
        collect_rarely()
        self.recovery.start_leading()
        supervised, tasks = self.supervised.run, list[asyncio.Task[None]]()
        try:
            await self.periodic_tasks.check_policy()
            await self.usage.open(self.policy_file.policy.usage)
            self.usage.put_into(self.cache.cluster)
            await self.node_load.open(self.policy_file.policy)
            log.info("leading: %d nodes, %d pods", len(self.cache.cluster.nodes.rows), len(self.cache.cluster.tasks.rows))
            self.metrics.leading.set(1)
            self.writers.forget_all()
            self.core.start_leading(_now())
            self.writers.resume()
            self.invalid_objects.set_leading(True)
            tasks += [
                asyncio.create_task(supervised("cycles", self.cycle_loop.run), name="cycles"),
                asyncio.create_task(supervised("resync", self.resync.run), name="resync"),
                asyncio.create_task(supervised("statuses", self.flush_statuses), name="statuses"),
                asyncio.create_task(supervised("periodic tasks", self.periodic_tasks.run), name="periodic tasks"),
                asyncio.create_task(supervised("publisher", self.operator_server.publisher.run), name="publisher"),
            ]
            await asyncio.wait(tasks)
        finally:
            for task in tasks[:1]:  # no more cycles; the others finish what is under way
                task.cancel()
            await self.finish_writes()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.cycles.conversations.close()
            await self.usage.close()
            await self.node_load.close()
            self.core.stop_leading()
            self.cycle_log.forget()
            self.queue_usage.forget()
            self.invalid_objects.set_leading(False)
            self.metrics.leading.set(0)

    async def forget_hung_jobs(self) -> None:
        """Other rules are in force: jobs that ended a process may be tried again."""
        if self.recovery.rules_changed():
            await self._second_loop.run(self.recovery.tell_lease)

    async def finish_writes(self) -> None:
        """Finish writes while we still lead; after a lost lease send nothing more. Decisions that were not sent in time are void: the
        next leader decides again. A binding without an answer may still be carried out, and no other scheduler knows of it. The lease
        is then not released: it runs out."""
        if self.leading:
            log.info("finishing %d writes", self.writers.busy() + len(self.events.outbox))
            try:
                async with asyncio.timeout(self.options.shutdown_timeout):
                    while self.writers.busy() and self.leading:
                        await asyncio.sleep(0.02)
                await self.pool.drain(LAST_EVENTS)
            except TimeoutError:
                log.warning("%d writes were not finished in time", self.writers.busy())
                self.writers.pause()
                await self.pool.drain(DRAIN_TIMEOUT)
            if self.elector is not None and (self.writers.binder.outbox.inside or self.writers.evictor.on_the_wire):
                self.elector.keep()
        self.writers.pause()

    # the lead

    @property
    def leading(self) -> bool:
        return self.core.leading and (self.elector is None or self.elector.leading)

    def may_write(self) -> bool:
        """Checked before each write: between decision and write a process can be stopped for longer than its lease lasts."""
        return not self.options.dry_run and (self.elector is None or self.elector.leading)

    # instructions of the core

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case StartCycle():
                self.cycle_loop.trigger()
            case CheckVolumes():
                self.steps.volumes.look()
            case EndBind(bind=bind, result=result):
                self.preparations.ended(bind, bound=result is BindResult.BOUND)
                self.bind_outcomes.take(instruction)
            case AbandonPreparation(job=job, reason=reason):
                self.metrics.gangs_released.inc()
                self.preparations.give_up(job, reason)
                for waiting in self.bind_requests.turns.give_up(job):
                    self.core.bind_failed(waiting, reason, _now())
            case ReleaseClaim(namespace=namespace, name=name, uid=uid) if self.dry_run is None:
                self.steps.device_claims.release(namespace, name, uid)
            case _ if self.dry_run is None:
                self.writers.carry_out(instruction)

    def _prepared_at(self, job: str) -> float | None:
        """When the job last came nearer to its bindings, while volumes or devices are prepared for it or its requests wait."""
        advanced = self.preparations.advanced_at(job), self.bind_requests.turns.advanced_at(job)
        return max((each for each in advanced if each is not None), default=None)

    def _scheduler_of(self, about: Regarding) -> str:
        """The scheduler that a pod names, or the first pod of a group; empty: it is none of ours."""
        cluster = self.cache.cluster
        task = cluster.task(about.uid) if about.kind == "Pod" else cluster.first_task(f"{about.namespace}/{about.name}")
        return task.scheduler_name if task is not None and task.scheduler_name in self.options.scheduler_names else ""

    def _unsupported(self, bind: Bind, task: TaskSpec) -> str:
        if not is_fraction(task) or self.options.gpu_sharing == "annotations" or self.bind_requests.used_for(bind.job):
            return ""
        return "sharing a GPU needs KAI's binder, or --gpu-sharing=annotations"

    # beside the cycles

    async def flush_statuses(self) -> None:
        """Write the statuses that are due, and start the next cycle of a backlog, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_INTERVAL)
            self.writers.flush(_now(), self.supervised.contained)
            if self.core.surplus.is_due(_now()):
                self.cycle_loop.trigger()
            if self.cycles.backlog_left and len(self.writers.binder.outbox) < MAX_BINDINGS_AHEAD:
                self.cycle_loop.trigger()

    def read_settings(self) -> Settings:
        """How objects are read under the policy in force. A node pool given on the command line overrides the policy's."""
        options = self.options
        return settings_for(
            self.policy_file.policy,
            options.scheduler_names,
            options.namespace_as_queue,
            options.node_pool_label_key,
            options.partition_label_value,
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
