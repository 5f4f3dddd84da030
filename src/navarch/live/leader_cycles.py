"""The cycles of a leader: each is decided under the watchdog, committed, and reported.

A cycle that fails is counted and logged, and the process goes on. A cycle that asks an extender is concluded when it has its answers;
no other cycle starts until then. A dry run compares instead of committing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from navarch.engine.points.conversation import Exchange, not_asked
from navarch.engine.policy.values import Policy
from navarch.live.conversations import Conversations
from navarch.live.cycle import Cycle
from navarch.live.ops.cycle_log import log_decisions

if TYPE_CHECKING:
    from navarch.live.scheduler import Scheduler

log = logging.getLogger(__name__)

BATCH_PODS = 5000
"""Pending pods of a queue that one cycle tries. This takes about a second if each is a job of its own."""
UNHEALTHY_AFTER = 5
"""After this many failed cycles in a row we are not ready."""


class LeaderCycles:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.conversations = Conversations(scheduler.cache, self._decide_again, self._answered, self._conversation_ended)
        self.failed = 0
        """Cycles that failed in a row until now; `failure` says how the last one failed."""
        self.failure = ""
        self.backlog_left = False
        """The last cycle left a part of the backlog to the next."""
        self._due = False
        """A cycle was due while another one waited for the answers of an extender."""
        self._named_extenders_of: Policy | None = None
        """The policy whose extenders a dry run has named as not asked."""

    def problem(self) -> str:
        """Why cycles keep us from being ready; empty: they do not."""
        return f"the last {self.failed} cycles failed: {self.failure}" if self.failed >= UNHEALTHY_AFTER else ""

    def run(self) -> None:
        """Run one cycle if we may. Nothing else runs between the snapshot and the last assumption."""
        if not self._may_run():
            return
        if self.conversations.under_way:
            self._due = True
            return
        try:
            self._decide()
        except Exception as error:
            # A plugin or a policy that fails on this cluster must not end the process: it would fail again after a restart.
            self._fail(error)
            return
        self.failed = 0

    def _may_run(self) -> bool:
        return self._scheduler.leading and not self._scheduler.rereading

    def _fail(self, error: BaseException) -> None:
        self.failed += 1
        self.failure = f"{type(error).__name__}: {error}"
        self._scheduler.metrics.failed_cycles.inc()
        log.error("cycle %d failed", self._scheduler.core.cycles, exc_info=error)

    def _decide(self) -> None:
        scheduler, dry = self._scheduler, self._scheduler.dry_run is not None
        policy, registry = scheduler.policy_file.policy, scheduler.policy_file.registry
        scheduler.queue.set_backoff(*policy.backoff)
        asks = not dry or scheduler.options.ask_extenders  # else an extender hears of placements that are not made
        if not asks and policy is not self._named_extenders_of:
            self._named_extenders_of = policy
            for url in registry.asked_servers(policy):
                log.warning("dry run: %s (--ask-extenders asks it)", not_asked(url))
        batch, identity = None if dry else BATCH_PODS, scheduler.identity[-12:]
        with scheduler.watchdog.watch():
            cycle = scheduler.core.decide(policy, registry, scheduler.clock(), identity=identity, batch=batch, asks=asks)
        if cycle.record.question is not None or cycle.record.notices:
            self.conversations.start(cycle)
        else:
            self._conclude(cycle)

    def _decide_again(self, cycle: Cycle, exchanges: list[Exchange]) -> Cycle:
        with self._scheduler.watchdog.watch():
            return self._scheduler.core.decide_again(cycle, self._scheduler.policy_file.registry, exchanges)

    def _answered(self, cycle: Cycle) -> None:
        """A cycle has no more questions. The lead may be lost since it began."""
        if self._may_run():
            self._scheduler.core.drop_outdated(cycle.record)
            self._conclude(cycle)

    def _conversation_ended(self, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
        if self._due:
            self._due = False
            self._scheduler.loop.trigger()

    def _conclude(self, cycle: Cycle) -> None:
        scheduler, record = self._scheduler, cycle.record
        scheduler.rule_failures.take(record)
        self.backlog_left = cycle.more
        started = time.perf_counter()
        news = True
        if scheduler.dry_run is not None:
            news = scheduler.dry_run.take(cycle)
        else:
            scheduler.preparations.plan(cycle)
            scheduler.core.commit(record, asyncio.get_running_loop().time())
            log_decisions(log, cycle)
        committed = time.perf_counter() - started
        scheduler.metrics.cycle(record, cycle.snapshot_seconds, cycle.seconds, committed)
        scheduler.followed_metrics.cycle(cycle, committed, scheduler.core)
        scheduler.cycle_log.take(cycle, committed, news=news)
        scheduler.queue_usage.take(cycle.now, record.queues)
        if news and (record.binds or record.evictions):
            bound, evicted, promised = len(record.binds), len(record.evictions), len(record.nominations)
            spent = (cycle.seconds + committed) * 1e3
            text, fields = "cycle %d: %d bound, %d evicted, %d nominated in %.1f ms", {"cycle": cycle.number}
            log.info(text, cycle.number, bound, evicted, promised, spent, extra=fields)
        if scheduler.recorder is not None and news and scheduler.recorder.take(cycle):
            scheduler.core.keep_snapshot()
