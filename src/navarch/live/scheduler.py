"""`navarch run`: every part of the live scheduler, wired together, from the first list to the last write.

    scheduler = Scheduler(endpoint, RunOptions(scheduler_names=("navarch",)))
    await scheduler.run()        # until cancelled; writes under way are finished first

The informers run whether we lead or not, so that a replica that takes over decides at once. Only the leader decides and
writes; it asks its elector before each cycle, since a process can be stopped for longer than its lease lasts.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import time
from collections.abc import Callable

from msgspec.structs import replace

from navarch.apis.dialect import Settings
from navarch.engine.reasons import Event
from navarch.engine.record import Bind, Eviction
from navarch.installed import installed
from navarch.kube.auth.access_review import AccessReview
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.watch.informer import Patience
from navarch.kube.write.pool import WritePool
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cache.informers import Informers
from navarch.live.cache.invalid_objects import InvalidObjects
from navarch.live.commit import Commit
from navarch.live.cycle import Cycle, run_cycle, undecided
from navarch.live.gang_history import GangHistory
from navarch.live.half_bound_gangs import HalfBoundGangs, starts_gangs
from navarch.live.loop import Loop
from navarch.live.ops.election import Elector, make_identity
from navarch.live.ops.gauges import Gauges
from navarch.live.ops.health import Health, tls_context
from navarch.live.ops.lease import ApiLeaseLock
from navarch.live.ops.metrics import Metrics
from navarch.live.ops.periodic_tasks import PeriodicTasks
from navarch.live.ops.policy_file import PolicyFile
from navarch.live.ops.recording import Recorder, encoded
from navarch.live.prebind.device_claims import DeviceClaims
from navarch.live.prebind.preparation import Preparations
from navarch.live.prebind.volumes import Volumes
from navarch.live.queue.equivalence_classes import footprint
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.live.settings import RunOptions
from navarch.live.usage.usage_over_time import UsageOverTime
from navarch.live.writers.bind_requests import RESOURCE as REQUESTS
from navarch.live.writers.bind_requests import BindRequests, is_fraction
from navarch.live.writers.binder import Binder, BindHooks
from navarch.live.writers.events import Events
from navarch.live.writers.evictor import Evictor
from navarch.live.writers.group_status import GroupStatuses
from navarch.live.writers.pod_status import PodStatuses
from navarch.live.writers.queue_status import QueueStatuses
from navarch.live.writers.resync import Resync
from navarch.live.writers.writers import DryWriters, LiveWriters
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Requests, TaskSpec
from navarch.model.status import TaskStatus
from navarch.offline.plan import settings_for

log = logging.getLogger(__name__)

FLUSH_INTERVAL = 0.1
GC_THRESHOLDS = (20_000, 20, 50)
"""Fewer, larger collections: next to nothing here is cyclic, and a full one holds everything up."""
UNHEALTHY_AFTER = 5
"""Failed cycles in a row from which on we are not healthy."""
BATCH_PODS = 5000
"""Waiting pods of a queue that one cycle looks at: a second or so, where each is a job of its own."""
MAX_BINDINGS_AHEAD = 1000
"""Bindings under way from which on the next piece of a backlog can wait: the API server has enough to do for a second."""
DRAIN_TIMEOUT = 5.0
"""Seconds for the answers to what was sent, when nothing more is."""
BUSY_BINDINGS = 200
"""Bindings under way from which on idle cycles can wait."""


class Scheduler:
    """`clock` is seconds since the epoch: what policies and the API see. Waiting is always on the event loop's clock."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: RunOptions,
        *,
        clock: Callable[[], float] = time.time,
        patience: Patience | None = None,
    ) -> None:
        self.options = options
        self.clock = clock
        self.identity = make_identity()
        self.metrics = Metrics()
        self.registry = installed(options.plugin_dirs)
        self.policy_file = PolicyFile(options.policy, self.registry)
        rng = random.Random(options.seed)
        live = not options.dry_run
        self.client = Client(endpoint, rng=rng, may_write=self.may_write)
        # The lease has a client of its own: it is how we come to be allowed to write, and it waits for nothing else.
        self.lease_client = Client(endpoint, rng=rng)
        self.pool = WritePool(endpoint, connections=options.write_connections, patience=20.0, rng=rng, may_write=self.may_write)
        self.assumed = AssumedPods()
        self.queue = SchedulingQueue()
        self.loop = Loop(
            self.queue, self.cycle, period=options.period, settle=options.settle, busy=lambda: len(self.binder.outbox) > BUSY_BINDINGS
        )
        self.cache = ClusterCache(self.read_settings(), self.assumed, self._notice)
        self.cache.on_gone = self.queue.forget
        self.cache.on_wish = self.queue.update
        self.events = Events(self.pool, controller=options.scheduler_names[0], instance=self.identity, clock=clock, enabled=live)
        self.invalid_objects = InvalidObjects(self.events, self.metrics)
        hooks = BindHooks(bound=self._bound, failed=self._bind_failed, dropped=self._bind_dropped)
        self.binder = Binder(self.pool, self.cache, self.assumed, self.events, hooks)
        self.bind_requests = BindRequests(self.client, self.cache, self._serves_requests, enabled=options.bind_requests and live)
        self.binder.requests = self.bind_requests
        self.binder.label_gpus = options.gpu_sharing == "annotations"
        self.volumes = Volumes(self.client, self.cache, options.volume_timeout)
        self.cache.on_volume = self.volumes.look
        self.device_claims = DeviceClaims(self.client, self.cache, lambda: self.informers.resources["ResourceClaim"])
        self.preparations = Preparations(
            (self.volumes, self.device_claims), self.binder.forget, lambda job: self.half_bound_gangs.starts(job)
        )
        self.volumes.on_progress = self.preparations.progress
        self.binder.before = self.preparations.before
        self.resync = self.binder.resync = Resync(self.client, self.binder, self.assumed, rng)
        self.evictor = Evictor(
            self.pool,
            self.cache,
            self.assumed,
            self.events,
            clock,
            rate=options.eviction_rate,
            timeout=options.eviction_timeout,
        )
        self.pod_statuses = PodStatuses(self.pool, self.cache, self.events, clock, enabled=live)
        self.group_statuses = GroupStatuses(
            self.pool,
            self.client,
            self.cache,
            self.assumed,
            self.events,
            clock,
            enabled=live,
        )
        self.queue_statuses = QueueStatuses(self.pool, self.cache, enabled=live)
        self.writers = LiveWriters(
            self.cache,
            self.binder,
            self.evictor,
            self.pod_statuses,
            self.group_statuses,
            self.queue_statuses,
        )
        self.dry = DryWriters(log.info) if options.dry_run else None
        self.commit = Commit(self.cache, self.assumed, self.queue, self.writers, self._obstacle)
        self.half_bound_gangs = HalfBoundGangs(
            self.cache,
            self._release,
            options.gang_timeout,
            lambda: starts_gangs(self.policy_file.policy, self.registry),
            self.preparations.got_on,
            GangHistory(self.cache, self.pool, clock),
        )
        self.informers = Informers(self.client, self.cache, self.invalid_objects.take, patience, rng)
        self.usage = UsageOverTime(clock)
        self.periodic_tasks = PeriodicTasks(self)
        self.health = Health(
            self.missing,
            self.metrics.registry,
            self.debug_snapshot,
            lambda: self.gauges.refresh(),
            AccessReview(self.lease_client, time.monotonic),
            protect_metrics=options.protect_metrics,
        )
        self.elector: Elector | None = None
        self.last: Cycle | None = None
        self._spare: Snapshot | None = None
        """The last cycle's snapshot, unless somebody still reads it."""
        self.failing = 0
        """Cycles that failed, one after the other, up to now; `failure` says how."""
        self.failure = ""
        self.reading = False
        """The cache is being filled anew and is not complete."""
        self.recorder = Recorder(options.record, more_annotations=options.record_annotations) if options.record is not None else None
        self._bound_ok = self.metrics.binds.labels("ok")
        self._number = 0
        self._more = False
        """The last cycle left a part of the backlog for the next."""
        self._stopping = asyncio.Event()
        self._leads = False
        self.gauges = Gauges(self)

    # life

    async def run(self) -> None:
        """Mirror, lead when it is our turn, until stopped or cancelled."""
        if self.options.listen:
            certificate, key = self.options.tls_certificate, self.options.tls_key
            tls = tls_context(certificate, key) if certificate is not None and key is not None else None
            await self.health.start(self.options.listen, tls)
        tasks = [
            asyncio.create_task(self._stopping.wait(), name="stopping"),
            asyncio.create_task(self.informers.run(), name="informers"),
            asyncio.create_task(self._lead_when_elected(), name="leading"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in reversed(tasks):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            if self.recorder is not None:
                await self.recorder.finish()
            await self.preparations.close()
            await self.pool.close()
            await self.client.close()
            await self.lease_client.close()
            await self.health.stop()

    def stop(self) -> None:
        """Let `run` finish the writes under way, hand the lease over, and return."""
        self._stopping.set()

    async def _lead_when_elected(self) -> None:
        options = self.options
        if not options.leader_elect or options.dry_run:
            # A lease held by one that writes nothing would leave the cluster without a scheduler.
            await self._lead()
            return
        namespace = options.lock_namespace or self.client.endpoint.namespace
        lock = ApiLeaseLock(self.lease_client, namespace, options.lock_name)
        self.elector = Elector(
            lock,
            self.identity,
            lease_duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry_period=options.retry_period,
            on_new_leader=lambda who: log.info("leader: %s", who),
        )
        # Whoever cannot read the cluster, or has not read it yet, leaves the lease to one that has.
        await self.informers.wait_for_sync()
        while True:
            await self.elector.run(self._lead)

    async def _lead(self) -> None:
        """Decide and write until cancelled; then finish what is under way."""
        await self.informers.wait_for_sync()
        # What was read at the start lives as long as we do: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        await self.periodic_tasks.check_policy()
        await self.usage.open(self.policy_file.policy.usage)
        self.usage.put_into(self.cache.cluster)
        log.info("leading: %d nodes, %d pods", len(self.cache.cluster.nodes.rows), len(self.cache.cluster.tasks.rows))
        self._leads = True
        self.metrics.leading.set(1)
        self.queue.activate_all()
        now = asyncio.get_running_loop().time()
        self.writers.resume(now)
        for key in self.cache.groups():
            self.group_statuses.mark(key, now)
        self.invalid_objects.lead(True)
        self.periodic_tasks.begin()
        tasks = [
            asyncio.create_task(self.loop.run(), name="cycles"),
            asyncio.create_task(self.resync.run(), name="resync"),
            asyncio.create_task(self._flush(), name="status"),
            asyncio.create_task(self.periodic_tasks.run(), name="periodic_tasks"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            tasks[0].cancel()
            await self._finish()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.usage.close()
            self._leads = False
            self.invalid_objects.lead(False)
            self.metrics.leading.set(0)

    async def _finish(self) -> None:
        """Finish writes while we still lead; after a lost lease send nothing more. What was not sent in time is void, and decided
        anew by whoever leads next. A binding without an answer may come about at any moment, and nobody else can know of it: the
        lease is then left to run out."""
        if self.leading:
            log.info("finishing %d writes", self.writers.busy() + len(self.events.outbox))
            try:
                async with asyncio.timeout(self.options.shutdown_timeout):
                    while self.writers.busy() and self.leading:
                        await asyncio.sleep(0.02)
                await self.pool.drain(1.0)
            except TimeoutError:
                log.warning("%d writes were not finished in time", self.writers.busy())
                self.writers.pause()
                await self.pool.drain(DRAIN_TIMEOUT)
            if self.elector is not None and (self.binder.outbox.inside or self.evictor.on_the_wire):
                self.elector.keep()
        self.writers.pause()

    # deciding

    @property
    def leading(self) -> bool:
        return self._leads and (self.elector is None or self.elector.leading)

    def may_write(self) -> bool:
        """Asked before each write: between decision and write a process can be stopped for longer than its lease lasts."""
        return not self.options.dry_run and (self.elector is None or self.elector.leading)

    def cycle(self) -> None:
        """One cycle, if we may. Everything between the snapshot and the last assumption happens without a pause."""
        if not self.leading or self.reading:
            return
        self._number += 1
        try:
            self._decide()
        except Exception as error:
            # A plugin or a policy that fails on one cluster must not take the process with it: it would only fail again.
            self.failing += 1
            self.failure = f"{type(error).__name__}: {error}"
            self.metrics.failed_cycles.inc()
            log.exception("cycle %d failed", self._number)
            return
        self.failing = 0

    def _decide(self) -> None:
        cluster = self.cache.cluster
        for key, held in self.queue.pop_changes(cluster):
            cluster.jobs.hold(key, held)
        cycle = self.last = run_cycle(
            cluster,
            self.policy_file.policy,
            self.registry,
            self.clock(),
            self._number,
            f"{self.identity[-12:]}-{self._number}",
            batch=BATCH_PODS if self.dry is None else None,
            instead_of=self._spare,
        )
        self._spare = cycle.snapshot
        self._more = cycle.more
        started = time.perf_counter()
        news = True
        if self.dry is not None:
            news = self._tell_dry(cycle)
        else:
            self.preparations.plan(cycle)
            if self.commit.take(cycle.record, asyncio.get_running_loop().time()):
                self.loop.trigger()
        committed = time.perf_counter() - started
        record = cycle.record
        self.metrics.cycle(record, cycle.snapshot_seconds, cycle.seconds, committed)
        if news and (record.binds or record.evictions):
            bound, evicted, promised = len(record.binds), len(record.evictions), len(record.nominations)
            spent = (cycle.seconds + committed) * 1e3
            log.info("cycle %d: %d bound, %d evicted, %d promised in %.1f ms", cycle.number, bound, evicted, promised, spent)
        if self.recorder is not None and news and self.recorder.take(cycle):
            self._spare = None

    def _tell_dry(self, cycle: Cycle) -> bool:
        """Whether the cycle decided anything that no cycle before did: what nobody carries out is decided again each second."""
        assert self.dry is not None
        told = [self.dry.tell("bind", bind.pod, f"to {bind.node}") for bind in cycle.record.binds]
        told += [self.dry.tell("evict", each.pod, f"from {each.node} for {each.for_}") for each in cycle.record.evictions]
        return any(told)

    # what happens beside the cycles

    async def _flush(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(FLUSH_INTERVAL)
            try:
                self.writers.flush(clock())
            except Exception:
                # One object whose status cannot be made must not end the process: it is passed over, and the rest is written next.
                log.exception("a status could not be written")
            if self._more and len(self.binder.outbox) < MAX_BINDINGS_AHEAD:
                self.loop.trigger()

    def _serves_requests(self) -> bool:
        return self.informers.serves(REQUESTS)

    def _obstacle(self, bind: Bind, task: TaskSpec) -> str:
        if not is_fraction(task) or self.binder.label_gpus or self.bind_requests.used_for(bind.job):
            return ""
        return "sharing a GPU needs KAI's binder, or --gpu-sharing=annotations"

    # what the parts tell each other

    def read_settings(self) -> Settings:
        """How objects are read under the policy in force. A pool of nodes that the command line names goes before the policy's."""
        options = self.options
        settings = settings_for(self.policy_file.policy, options.scheduler_names, options.namespace_as_queue)
        if not options.node_pool_label_key:
            return settings
        return replace(settings, node_pool_key=options.node_pool_label_key, node_pool=options.partition_label_value)

    def _notice(self, event: Event, job: str = "", *, urgent: bool = True, freed: Requests | None = None) -> None:
        self.loop.notice(event, job, urgent=urgent, freed=freed)
        if job and self._leads and job.count("/") == 1:
            self.group_statuses.mark(job, asyncio.get_running_loop().time())

    def _bound(self, bind: AssumedBind) -> None:
        self.preparations.ended(bind, bound=True)
        self.queue.forget(bind.job)
        self._bound_ok.inc()
        self.metrics.bind_seconds.observe(asyncio.get_running_loop().time() - bind.since)
        task = self.cache.cluster.task(bind.uid)
        if task is not None:
            self.metrics.wait_seconds.observe(max(0.0, self.clock() - task.created))

    def _bind_dropped(self, bind: AssumedBind) -> None:
        self.preparations.ended(bind, bound=False)
        self.metrics.binds.labels("dropped").inc()

    def _bind_failed(self, bind: AssumedBind, why: str) -> None:
        self.preparations.ended(bind, bound=False)
        self.metrics.binds.labels("failed").inc()
        now = asyncio.get_running_loop().time()
        task = self.cache.cluster.task(bind.uid)
        if task is not None and task.status == TaskStatus.PENDING:
            message = f"binding to {bind.node} failed: {why}"
            self.pod_statuses.refuse(task, "SchedulerError", message, now, at_once=True)
            self.queue.add_unschedulable(bind.job, (), 1, now)
        self.loop.notice(Event.POD_REMOVED, freed=footprint(task.shape) if task is not None else None)

    def _release(self, job: str, tasks: list[TaskSpec]) -> None:
        """A gang stays half bound: give up what it holds."""
        self.metrics.gangs_released.inc()
        message = f"the gang {job} could not be completed within {self.options.gang_timeout:g} s and is released"
        log.warning("%s: %d pods are evicted", message, len(tasks))
        self.preparations.give_up(job, message)
        now = asyncio.get_running_loop().time()
        for task in tasks:
            if task.uid in self.assumed.evictions:
                continue
            self.assumed.evictions[task.uid] = now
            self.cache.refresh(task.uid)
            eviction = Eviction(task.key, task.node, task.uid, job, "release", job, "release", message)
            self.evictor.evict(eviction, task)

    # what operators see

    def missing(self) -> list[str]:
        """What keeps us from working; empty: nothing."""
        missing = self.informers.missing()
        if self.failing >= UNHEALTHY_AFTER:
            missing.append(f"the last {self.failing} cycles failed: {self.failure}")
        return missing

    async def debug_snapshot(self) -> bytes:
        cycle = self.last
        if self.failing:
            # What the last good cycle read has been written over by the one that failed, and that is the one to look at.
            cycle = undecided(self.cache.cluster, self.policy_file.policy, self.clock(), self._number, f"{self._number}")
        if cycle is None:
            return b""
        self._spare = None
        return await asyncio.to_thread(encoded, cycle, self.options.record_annotations)
