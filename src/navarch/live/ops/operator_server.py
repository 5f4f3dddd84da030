"""What operators and clients learn of a scheduler: whether it is ready, its metrics, the policy in force, and the state of the leader.

It reads the scheduler and changes nothing. Pages are served over HTTP (`health`); the state is written to a ConfigMap too
(`state/publisher`).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from navarch.engine.policy.credentials import without_credentials
from navarch.engine.policy.describe import describe
from navarch.kube.auth.access_review import AccessReview
from navarch.live.cycle import undecided
from navarch.live.ops.gauges import Gauges
from navarch.live.ops.health import Health, tls_context
from navarch.live.ops.recording import encoded
from navarch.live.ops.second_loop import Heartbeat, run_in
from navarch.live.ops.state.pages import StatePages
from navarch.live.ops.state.publisher import StatePublisher

if TYPE_CHECKING:
    from navarch.live.scheduler import Scheduler


class OperatorServer:
    """Made in the scheduler's event loop, in which all pages but /livez are made."""

    def __init__(self, scheduler: Scheduler, heartbeat: Heartbeat) -> None:
        self._scheduler = scheduler
        self.gauges = Gauges(scheduler)
        self.pages, self.publisher = StatePages(scheduler), StatePublisher(scheduler)
        loop = asyncio.get_running_loop()
        self.health = Health(
            self.missing,
            scheduler.metrics.registry,
            self.debug_snapshot,
            self.gauges.refresh,
            AccessReview(scheduler.review_client, time.monotonic),
            protect_metrics=scheduler.options.protect_metrics,
            notes=self._notes,
            configuration=self._configuration,
            pages=self.pages.pages,
            key=self.publisher.key,
            silence=heartbeat.silence,
            in_scheduler=lambda work: run_in(loop, work),
        )

    async def start(self) -> None:
        options = self._scheduler.options
        certificate, key = options.tls_certificate, options.tls_key
        tls = tls_context(certificate, key) if certificate is not None and key is not None else None
        await self.health.start(options.listen, tls)

    async def stop(self) -> None:
        await self.health.stop()

    def missing(self) -> list[str]:
        """What keeps the scheduler from being ready; empty: nothing."""
        missing = self._scheduler.informers.missing()
        return [*missing, problem] if (problem := self._scheduler.cycles.problem()) else missing

    def _notes(self) -> list[str]:
        """What is wrong and keeps nothing from working."""
        scheduler = self._scheduler
        load = scheduler.node_load.problem()
        found = [f"the load of nodes could not be fetched: {load}"] if load else []
        found += [usage] if (usage := scheduler.usage.problem()) else []
        extenders = scheduler.cycles.conversations.extenders.problems()
        return [*scheduler.rule_failures.notes(), *scheduler.supervised.notes(), *found, *extenders]

    def _configuration(self) -> dict[str, object]:
        """The policy in force, for /configz."""
        policy, registry = self._scheduler.policy_file.policy, self._scheduler.policy_file.registry
        effect = describe(policy, registry.catalogue())
        return {"policy": without_credentials(policy.document), "effect": without_credentials(effect)}

    async def debug_snapshot(self) -> bytes:
        """The input of the last cycle as `navarch replay` reads it; empty: there was none."""
        scheduler = self._scheduler
        core, cycle = scheduler.core, scheduler.core.last_cycle
        if scheduler.cycles.failed:
            # The failed cycle overwrote the snapshot of the last good one, and the failed one is of interest.
            policy = scheduler.policy_file.policy
            cycle = undecided(scheduler.cache.cluster, policy, scheduler.clock(), core.cycles, f"{core.cycles}")
        if cycle is None:
            return b""
        core.keep_snapshot()
        return await asyncio.to_thread(encoded, cycle, scheduler.options.record_annotations)
