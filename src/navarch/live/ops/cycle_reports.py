"""What is told of each cycle of a leader: failed rules, metrics, the pages under /state, a line in the log, the recording."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from navarch.engine.record import CycleRecord
from navarch.engine.victims.evicted_again import evicted_in_a_row
from navarch.live.core import LiveCore
from navarch.live.cycle import Cycle
from navarch.live.ops.metric_names.followed_metrics import FollowedMetrics
from navarch.live.ops.metrics import Metrics
from navarch.live.ops.recording import CycleRecorder
from navarch.live.ops.rule_failures import RuleFailures
from navarch.live.ops.state.cycle_log import CycleLog
from navarch.live.usage.queue_usage import QueueUsage

log = logging.getLogger(__name__)

REMEMBERED_FOR: Final = 600.0
"""A warning of a cycle is logged again when no cycle gave it for so many seconds."""
LINES_A_MINUTE: Final = 20
"""New warnings that are logged in a minute. Groups that come one after another have a warning each."""


class CycleWarnings:
    """Logs what cycles warn of (a queue that no plugin can use, for example) once for as long as it lasts. Every cycle counts: a pod
    that is bound at once is in one cycle only."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        """Warning -> when a cycle gave it last."""
        self._minute = 0
        self._lines = 0

    def take(self, warnings: Iterable[str], now: float) -> None:
        if self._seen and now - min(self._seen.values()) > REMEMBERED_FOR:
            self._seen = {text: at for text, at in self._seen.items() if now - at <= REMEMBERED_FOR}
        if int(now // 60) != self._minute:
            self._minute, self._lines = int(now // 60), 0
        for warning in warnings:
            if warning in self._seen or self._may_log():
                if warning not in self._seen:
                    log.warning("%s", warning)
                self._seen[warning] = now

    def _may_log(self) -> bool:
        self._lines += 1
        if self._lines == LINES_A_MINUTE + 1:
            log.warning("more than %d new warnings in a minute: the others of this minute are not logged", LINES_A_MINUTE)
        return self._lines <= LINES_A_MINUTE


class CycleReports:
    def __init__(
        self,
        core: LiveCore,
        metrics: Metrics,
        followed_metrics: FollowedMetrics,
        rule_failures: RuleFailures,
        cycle_log: CycleLog,
        queue_usage: QueueUsage,
        recorder: CycleRecorder | None = None,
    ) -> None:
        self._core, self._metrics, self._followed_metrics = core, metrics, followed_metrics
        self._rule_failures, self._cycle_log, self._queue_usage, self._recorder = rule_failures, cycle_log, queue_usage, recorder
        self._warnings = CycleWarnings()

    def decided(self, record: CycleRecord) -> None:
        """A cycle has its decisions; none is carried out yet."""
        self._rule_failures.take(record)

    def concluded(self, cycle: Cycle, committed: float, *, news: bool) -> None:
        """`committed`: seconds. `news` False: the cycle repeats decisions that were told already (a dry run)."""
        record = cycle.record
        self._metrics.cycle(record, cycle.snapshot_seconds, cycle.seconds, committed)
        self._followed_metrics.cycle(cycle, committed, self._core)
        self._cycle_log.take(cycle, committed, news=news)
        self._queue_usage.take(cycle.now, record.queues)
        self._warnings.take(record.warnings, cycle.now)
        if not news:
            return
        self._metrics.repeated_evictions.inc(len(evicted_in_a_row(record, cycle.now)))
        if record.binds or record.evictions:
            bound, evicted, promised = len(record.binds), len(record.evictions), len(record.nominations)
            spent = (cycle.seconds + committed) * 1e3
            text, fields = "cycle %d: %d bound, %d evicted, %d nominated in %.1f ms", {"cycle": cycle.number}
            log.info(text, cycle.number, bound, evicted, promised, spent, extra=fields)
        if self._recorder is not None and self._recorder.take(cycle):
            self._core.keep_snapshot()

    def failed(self, error: BaseException) -> None:
        self._metrics.failed_cycles.inc()
        log.error("cycle %d failed", self._core.cycles, exc_info=error)
