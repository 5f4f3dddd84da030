"""The last cycles and decisions, and why each job waits: what the endpoint shows under /state.

Everything is bounded: a ring of cycles, a ring of decisions, and one cause for each job that waits. Taking a cycle costs a few
microseconds and as much for each decision about a job; texts are made when a page is read.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from navarch.engine.reasons import Reason, dominant
from navarch.engine.record import Bind, CycleRecord, Eviction, JobDecision, Nomination
from navarch.ingest.groups import shown_key
from navarch.live.cycle import Cycle

CYCLES_KEPT: Final = 200
DECISIONS_KEPT: Final = 1000


def log_decisions(log: logging.Logger, cycle: Cycle) -> None:
    """A line with fields for each eviction, and at the level debug for each bind."""
    for each in cycle.record.evictions:
        fields = {"pod": each.pod, "node": each.node, "job": shown_key(each.job), "cycle": cycle.number, "reason": each.reason}
        log.info("evicting %s from %s: %s for %s", each.pod, each.node, each.reason, shown_key(each.for_), extra=fields)
    if log.isEnabledFor(logging.DEBUG):
        queues = {decision.job: decision.queue for decision in cycle.record.jobs}
        for bind in cycle.record.binds:
            where = {"pod": bind.pod, "node": bind.node, "job": shown_key(bind.job), "queue": queues.get(bind.job, "")}
            log.debug("binding %s to %s", bind.pod, bind.node, extra={**where, "cycle": cycle.number})


class LoggedCycle(Struct, frozen=True):
    number: int
    uid: str
    now: float
    seconds: float
    parts: dict[str, float]
    tried: int
    bound: int
    evicted: int
    nominated: int
    waiting: int
    failures: int


class LoggedDecision(Struct, frozen=True):
    cycle: int
    now: float
    decision: Bind | Eviction | Nomination


class WaitingCause(Struct, frozen=True):
    """Why a job waits, since when its reason has this code, and when it was tried last."""

    reason: Reason
    since: float
    cycle: int
    now: float
    place: int
    """As which job of that cycle it was tried, from 1; 0: the cycle did not look for room on its behalf."""


class CycleLog:
    def __init__(self) -> None:
        self.cycles: deque[LoggedCycle] = deque(maxlen=CYCLES_KEPT)
        self.decisions: deque[LoggedDecision] = deque(maxlen=DECISIONS_KEPT)
        self.refused: dict[str, WaitingCause] = {}

    def take(self, cycle: Cycle, committed: float, *, news: bool = True) -> None:
        """`committed`: seconds. `news` False: the cycle repeats decisions that are logged already (a dry run)."""
        record = cycle.record
        places = {job: place for place, job in enumerate(record.tried, start=1)}
        waiting = sum([self._job(decision, cycle, places) for decision in record.jobs])
        parts = {"snapshot": cycle.snapshot_seconds, **record.timings, "commit": committed}
        self.cycles.append(
            LoggedCycle(
                cycle.number,
                cycle.uid,
                cycle.now,
                cycle.seconds,
                parts,
                len(record.tried),
                len(record.binds),
                len(record.evictions),
                len(record.nominations),
                waiting,
                len(record.failures),
            )
        )
        if news:
            self._decided(cycle, record)

    def keep(self, waiting: Iterable[str]) -> None:
        """Forget the causes of all other jobs: they run, or are gone."""
        self.refused = {job: self.refused[job] for job in waiting if job in self.refused}

    def forget(self) -> None:
        """We do not lead any more, and do not know what the next leader decides."""
        self.refused.clear()

    def _decided(self, cycle: Cycle, record: CycleRecord) -> None:
        parts: tuple[Sequence[Bind | Eviction | Nomination], ...] = (record.nominations, record.evictions, record.binds)
        for found in parts:
            for each in islice(found, max(0, len(found) - DECISIONS_KEPT), None):
                self.decisions.append(LoggedDecision(cycle.number, cycle.now, each))

    def _job(self, decision: JobDecision, cycle: Cycle, places: dict[str, int]) -> bool:
        """Returns whether the job waits."""
        reason = dominant(decision.reasons) if decision.pods.get("Pending") else None
        if reason is None:
            self.refused.pop(decision.job, None)
            return False
        before = self.refused.get(decision.job)
        since = before.since if before is not None and before.reason.code == reason.code else cycle.now
        self.refused[decision.job] = WaitingCause(reason, since, cycle.number, cycle.now, places.get(decision.job, 0))
        return True
