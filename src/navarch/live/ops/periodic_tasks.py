"""What a leader does once a second beside its cycles: check the policy file, half-bound gangs, promises that nothing confirms, jobs
that no cycle sees, Volcano Jobs that no controller takes up, queues that must exist and stale BindRequests. A check that fails does
not keep the others from being made."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING

from navarch.apis.dialect import Settings
from navarch.engine.policy import PolicyError
from navarch.ingest.queues import ROOT
from navarch.kube.errors import KubeError
from navarch.live.ops.dry_run.comparison import SUMMARY_SECONDS, DryRun
from navarch.live.ops.shard_policy import EVERY, read_shard
from navarch.live.writers.absent_jobs import AbsentJobs
from navarch.live.writers.bind_requests import NO_BINDER
from navarch.live.writers.events import pod_reference
from navarch.live.writers.first_queues import make_queues
from navarch.live.writers.queue_status import QUEUES
from navarch.live.writers.unattended_jobs import UnattendedJobs

if TYPE_CHECKING:
    from navarch.live.scheduler import Scheduler

log = logging.getLogger(__name__)

PERIOD = 1.0
MARKS_AFTER = 60.0
"""Seconds after which a leader takes back what an earlier one left on pods that it does not evict."""


class PeriodicTasks:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._absent_jobs = AbsentJobs(scheduler.cache, scheduler.writers.pods, scheduler.writers.groups, scheduler.clock)
        self._unattended_jobs = UnattendedJobs(scheduler.cache, scheduler.events)
        self._marks_due: float | None = None
        """When conditions that an earlier leader left on victims are taken back; None: not leading."""
        self._queue_task: asyncio.Task[None] | None = None
        self._next_report = 0.0
        self._next_shard = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        scheduler, contained = self._scheduler, self._scheduler.supervised.contained
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(PERIOD)
            with contained("policy file"):
                await self.check_policy()
            with contained("usage"):
                self._record_usage()
            with contained("job history"):
                if scheduler.job_recorder is not None:
                    await scheduler.job_recorder.write()
            with contained("awaited groups"):
                scheduler.cache.end_waits()
            with contained("dry run"):
                if scheduler.dry_run is not None and not scheduler.rereading:
                    self._compare(scheduler.dry_run)
            if not scheduler.leading or scheduler.dry_run is not None:
                self._marks_due = None
                continue
            with contained("marks of victims"):
                self._take_back_marks(clock())
            with contained("half-bound gangs"):
                scheduler.core.check_gangs(clock())
            with contained("promises"):
                scheduler.core.check_promises(clock())
            with contained("bind requests"):
                scheduler.bind_requests.clean()
                self._report_unanswered_requests(clock())
            with contained("absent jobs"):
                if not scheduler.rereading:
                    self._absent_jobs.report(clock())
            with contained("unattended jobs"):
                if not scheduler.rereading:
                    self._unattended_jobs.report(scheduler.clock())
            with contained("first queues"):
                self._check_first_queues()

    def _take_back_marks(self, now: float) -> None:
        """Once for each time as leader."""
        if self._marks_due is None:
            self._marks_due = now + MARKS_AFTER
        elif now >= self._marks_due and not self._scheduler.rereading:
            self._marks_due = math.inf
            self._scheduler.writers.evictor.take_back_marks()

    def _compare(self, dry_run: DryRun) -> None:
        """Compare with the scheduler in charge, and write the report once a minute."""
        scheduler = self._scheduler
        dry_run.compare(scheduler.cache.cluster)
        now = asyncio.get_running_loop().time()
        if scheduler.report is not None and now >= self._next_report:
            self._next_report = now + SUMMARY_SECONDS
            scheduler.report.write(dry_run, scheduler.clock())

    async def check_policy(self) -> None:
        """Load the policy file if it changed. A replica that does not lead does this only when it starts to lead, before its first
        cycle."""
        scheduler = self._scheduler
        file, before = scheduler.policy_file, scheduler.policy_file.refused
        await self._read_shard()
        loaded = file.look()
        if loaded:
            scheduler.metrics.policy_loads.labels("ok").inc()
            await scheduler.forget_hung_jobs()
            await scheduler.usage.open(file.policy.usage)
            await scheduler.node_load.open(file.policy)
        elif file.refused != before:
            scheduler.metrics.policy_loads.labels("refused").inc()
        if loaded or scheduler.rereading:
            settings = scheduler.read_settings()
            if scheduler.rereading or settings != scheduler.cache.settings:
                await self.reread(settings)
            scheduler.queue.activate_all()
            scheduler.cycle_loop.trigger()

    async def _read_shard(self) -> None:
        """Offer the SchedulingShard as it is now. While it cannot be read, the last one holds."""
        scheduler, now = self._scheduler, asyncio.get_running_loop().time()
        if not scheduler.follows_shard or now < self._next_shard:
            return
        self._next_shard = now + EVERY
        try:
            scheduler.policy_file.offer(await read_shard(scheduler.client, scheduler.options.shard))
        except (KubeError, PolicyError) as error:
            log.warning("the SchedulingShard cannot be read now, the last policy stays: %s", error)

    def _record_usage(self) -> None:
        scheduler = self._scheduler
        if scheduler.core.last_cycle is not None:
            scheduler.usage.record(scheduler.core.last_cycle.record, scheduler.cache.cluster)
        scheduler.usage.put_into(scheduler.cache.cluster)

    def _report_unanswered_requests(self, now: float) -> None:
        for task in self._scheduler.bind_requests.unanswered(now):
            note = f"no binder has taken up the BindRequest for {task.node}: {NO_BINDER}"
            self._scheduler.events.emit(
                pod_reference(task.namespace, task.name, task.uid), "Warning", "FailedBinding", "Binding", note
            )

    async def reread(self, settings: Settings) -> None:
        """The new policy reads objects differently: fill the cache again. No cycle runs meanwhile. A replica that loses the lead
        meanwhile has an incomplete cache: `rereading` stays set, and the cache is filled when it leads again. Nothing is bound
        meanwhile either: whether a pod is for KAI's binder is known only after its group was read."""
        scheduler = self._scheduler
        scheduler.rereading = True
        scheduler.writers.binder.outbox.pause()
        while scheduler.rereading:
            scheduler.cache.configure(settings)
            try:
                await scheduler.informers.read_again()
                scheduler.rereading = False
            except KubeError as error:
                log.warning("the cluster could not be read again for the new policy: %s", error)
                await asyncio.sleep(PERIOD)
        if scheduler.leading:
            scheduler.writers.binder.outbox.resume()

    def _check_first_queues(self) -> None:
        """A queue that only the model has (`implied`) gets its object."""
        scheduler = self._scheduler
        if not scheduler.informers.serves(QUEUES) or (self._queue_task is not None and not self._queue_task.done()):
            return
        queues, names = scheduler.cache.cluster.queues, (ROOT, scheduler.cache.settings.default_queue)
        missing = [name for name in names if name not in queues or queues[name].dialect == "implied"]
        if missing:
            self._queue_task = asyncio.create_task(make_queues(scheduler.client, missing))
