"""What a leader looks after beside its cycles, once a second: the policy file, what cycles warn of, half-bound gangs, pods without
group or queue, queues, stale requests."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from navarch.apis.dialect import Settings
from navarch.kube.errors import KubeError
from navarch.live.writers.absent_jobs import AbsentJobs
from navarch.live.writers.bind_requests import NOBODY
from navarch.live.writers.default_queue import make_default_queue
from navarch.live.writers.events import pod_reference
from navarch.live.writers.queue_status import QUEUES

if TYPE_CHECKING:
    from navarch.live.scheduler import Scheduler

log = logging.getLogger(__name__)

PERIOD = 1.0


class PeriodicTasks:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._absent_jobs = AbsentJobs(scheduler.cache, scheduler.pod_statuses, scheduler.group_statuses, scheduler.clock)
        self._queue_task: asyncio.Task[bool] | None = None
        self._warned: frozenset[str] = frozenset()
        """What the last cycle warned of, and the log has."""

    def begin(self) -> None:
        """We lead from now on, and no cycle has run yet."""
        if self._scheduler.dry is None:
            self._scheduler.half_bound_gangs.begin(asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Until cancelled."""
        scheduler = self._scheduler
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(PERIOD)
            await self.check_policy()
            self._look_at_usage()
            self._look_at_warnings()
            if scheduler.leading and scheduler.dry is None:
                scheduler.half_bound_gangs.look(clock())
                scheduler.bind_requests.clean()
                self._look_at_requests(clock())
                if not scheduler.reading:
                    self._absent_jobs.report(clock())
                self._look_for_default_queue()

    async def check_policy(self) -> None:
        """Take a policy file that changed. Whoever waits to lead does so only when its turn comes, before its first cycle."""
        scheduler = self._scheduler
        file, before = scheduler.policy_file, scheduler.policy_file.refused
        taken = file.look()
        if taken:
            scheduler.metrics.policy_loads.labels("ok").inc()
            await scheduler.usage.open(file.policy.usage)
        elif file.refused != before:
            scheduler.metrics.policy_loads.labels("refused").inc()
        if taken or scheduler.reading:
            settings = scheduler.read_settings()
            if scheduler.reading or settings != scheduler.cache.settings:
                await self._read_all_again(settings)
            scheduler.queue.activate_all()
            scheduler.loop.trigger()

    def _look_at_usage(self) -> None:
        scheduler = self._scheduler
        if scheduler.last is not None:
            scheduler.usage.record(scheduler.last.record, scheduler.cache.cluster)
        scheduler.usage.put_into(scheduler.cache.cluster)

    def _look_at_requests(self, now: float) -> None:
        for task in self._scheduler.bind_requests.unanswered(now):
            note = f"the BindRequest for {task.node} is not taken up: {NOBODY}"
            self._scheduler.events.emit(
                pod_reference(task.namespace, task.name, task.uid), "Warning", "FailedBinding", "Binding", note
            )

    def _look_at_warnings(self) -> None:
        """What cycles warn of (a queue that no plugin can use, say), once for as long as it lasts."""
        if self._scheduler.last is not None:
            warnings = dict.fromkeys(self._scheduler.last.record.warnings)
            for warning in warnings:
                if warning not in self._warned:
                    log.warning("%s", warning)
            self._warned = frozenset(warnings)

    async def _read_all_again(self, settings: Settings) -> None:
        """The new policy reads objects differently: the cache is filled afresh, and no cycle runs meanwhile. Whoever loses the
        lead in the midst of it has half a cache: `reading` stays, and it is filled when the lead comes back. Nor is anything bound
        meanwhile: of a pod whose group is not known nobody can say whether it is for KAI's binder."""
        scheduler = self._scheduler
        scheduler.reading = True
        scheduler.binder.outbox.pause()
        while scheduler.reading:
            scheduler.cache.configure(settings)
            try:
                await scheduler.informers.read_again()
                scheduler.reading = False
            except KubeError as error:
                log.warning("the cluster could not be read again for the new policy: %s", error)
                await asyncio.sleep(PERIOD)
        if scheduler.leading:
            scheduler.binder.outbox.resume()

    def _look_for_default_queue(self) -> None:
        scheduler = self._scheduler
        name = scheduler.cache.settings.default_queue
        queue = scheduler.cache.cluster.queues.get(name)
        if scheduler.informers.serves(QUEUES) and (queue is None or queue.dialect == "implied"):
            if self._queue_task is None or self._queue_task.done():
                self._queue_task = asyncio.create_task(make_default_queue(scheduler.client, name))
