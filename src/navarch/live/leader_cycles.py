"""The cycles of a leader: each is decided under the watchdog, committed, and reported.

A cycle that fails is counted and logged, and the process goes on. A cycle that asks an extender is concluded when it has its answers;
no other cycle starts until then. A dry run compares instead of committing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from navarch.engine.points.conversation import Exchange, not_asked
from navarch.engine.policy.values import Policy
from navarch.live.conversations import Conversations
from navarch.live.core import LiveCore
from navarch.live.cycle import Cycle
from navarch.live.hangs.watchdog import Watchdog
from navarch.live.ops.cycle_reports import CycleReports
from navarch.live.ops.dry_run.comparison import DryRun
from navarch.live.ops.policy_file import PolicyFile
from navarch.live.ops.state.cycle_log import log_decisions

log = logging.getLogger(__name__)

UNHEALTHY_AFTER = 5
"""After this many failed cycles in a row we are not ready."""


class LeaderCycles:
    """`name` tells cycles of this process from others'. `may_run`: we lead, and the cache is complete. `prepare` is called with each
    cycle before its commit. `trigger` asks for another cycle. `dry_run` compares cycles instead of committing them. It asks extenders
    only if `ask_extenders`."""

    def __init__(
        self,
        core: LiveCore,
        policy_file: PolicyFile,
        watchdog: Watchdog,
        reports: CycleReports,
        *,
        name: str,
        clock: Callable[[], float],
        may_run: Callable[[], bool],
        prepare: Callable[[Cycle], None],
        trigger: Callable[[], None],
        dry_run: DryRun | None = None,
        ask_extenders: bool = False,
    ) -> None:
        self._core, self._policy_file, self._watchdog, self._reports = core, policy_file, watchdog, reports
        self._name, self._clock, self._may_run, self._prepare, self._trigger = name, clock, may_run, prepare, trigger
        self._dry_run, self._ask_extenders = dry_run, ask_extenders
        self.conversations = Conversations(core.cache, self._decide_again, self._answered, self._conversation_ended)
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

    def _fail(self, error: BaseException) -> None:
        self.failed += 1
        self.failure = f"{type(error).__name__}: {error}"
        self._reports.failed(error)

    def _decide(self) -> None:
        dry = self._dry_run is not None
        policy, registry = self._policy_file.policy, self._policy_file.registry
        self._core.queue.set_backoff(*policy.backoff)
        asks = not dry or self._ask_extenders  # else an extender hears of placements that are not made
        if not asks and policy is not self._named_extenders_of:
            self._named_extenders_of = policy
            for url in registry.asked_servers(policy):
                log.warning("dry run: %s (--ask-extenders asks it)", not_asked(url))
        with self._watchdog.watch():
            cycle = self._core.decide(policy, registry, self._clock(), identity=self._name, in_parts=not dry, asks=asks)
        if cycle.record.question is not None or cycle.record.notices:
            self.conversations.start(cycle)
        else:
            self._conclude(cycle)

    def _decide_again(self, cycle: Cycle, exchanges: list[Exchange]) -> Cycle:
        with self._watchdog.watch():
            return self._core.decide_again(cycle, self._policy_file.registry, exchanges)

    def _answered(self, cycle: Cycle) -> None:
        """A cycle has no more questions. The lead may be lost since it began."""
        if self._may_run():
            self._core.drop_outdated(cycle.record)
            self._conclude(cycle)

    def _conversation_ended(self, error: BaseException | None) -> None:
        if error is not None:
            self._fail(error)
        if self._due:
            self._due = False
            self._trigger()

    def _conclude(self, cycle: Cycle) -> None:
        self._reports.decided(cycle.record)
        self.backlog_left = cycle.more
        started = time.perf_counter()
        news = True
        if self._dry_run is not None:
            news = self._dry_run.take(cycle)
        else:
            self._prepare(cycle)
            self._core.commit(cycle.record, asyncio.get_running_loop().time())
            log_decisions(log, cycle)
        self._reports.concluded(cycle, time.perf_counter() - started, news=news)
