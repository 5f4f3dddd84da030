"""What only the scheduler knows: its leader, the time of its cycles, its last decisions, its failed writes.

The pages under /state come from the leader's endpoint: through the API server's proxy, or from the URL that the user names
(`views/leader_pages.py`). The name of the leader comes from the config map that it publishes. The scheduler is asked every few seconds
while pages are open. Where its pages may not be read, /metrics gives the time of cycles and the rates; `reason` says what is missing
and why.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from navarch.apis.core.objects import seconds
from navarch.kube.client import Client
from navarch.kube.errors import KubeError
from navarch.views.leader_pages import LeaderPages, PagesUnavailable
from navarch.views.published_state import CyclesPage, CycleSummary, Decided, DecisionsPage, StateAddress, UsagePage
from navarch.web.recent_viewers import RecentViewers
from navarch.web.scheduler.metrics_page import SchedulerMetrics, parse_metrics

ASK_SECONDS: Final = 2.0
VIEWER_SECONDS: Final = 30.0
"""The scheduler is asked while a viewer asked within this time."""
TOLD: Final = 50
"""Decisions that the overview shows."""
RATE_SECONDS: Final = 60.0
FEW_NODES: Final = 5
NOT_ASKED: Final = "the scheduler has not been asked yet"
_KINDS: Final = {"bind": "bind", "eviction": "evict", "nomination": "nominate"}


class SchedulerLink:
    """`url`: of the scheduler's metrics port; empty: it is asked through the API server. `on_change` is called when cycles or
    decisions are new."""

    def __init__(self, client: Client, url: str = "", address: StateAddress | None = None) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.on_usage: Callable[[UsagePage], None] = lambda page: None
        """Called with what queues held in the last hour, once for each leader."""
        self.pages = LeaderPages(client, StateAddress() if address is None else address, url)
        self.reason = NOT_ASKED
        self.leader: str | None = None
        self._cycles: list[CycleSummary] = []
        self._decisions: list[dict[str, Any]] | None = None
        self._metrics = SchedulerMetrics()
        self._metrics_at = 0.0
        self._rate: float | None = None
        self.viewers = RecentViewers(VIEWER_SECONDS)
        self._usage_of: str | None = ""
        """The leader whose usage was read."""

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.viewers.wait()
            if await self.ask():
                self.on_change()
            await asyncio.sleep(ASK_SECONDS)

    async def ask(self) -> bool:
        """Returns whether something is new."""
        before = (self.reason, self.leader, self._cycles[:1], self._metrics)
        self.leader = await self._leader()
        await self._read_metrics()
        try:
            cycles = await self.pages.read(CyclesPage)
            decisions = await self.pages.read(DecisionsPage)
            self._cycles, self._decisions, self.reason = cycles.cycles, merged(decisions.decisions), ""
            await self._read_usage()
        except PagesUnavailable as error:
            self.reason = str(error)
            self._cycles, self._decisions = [], None
        return before != (self.reason, self.leader, self._cycles[:1], self._metrics)

    async def _read_usage(self) -> None:
        if self.leader == self._usage_of:
            return
        self._usage_of = self.leader
        try:
            self.on_usage(await self.pages.read(UsagePage))
        except PagesUnavailable:
            return  # a scheduler of an earlier version has no such page; usage is then known since the dashboard was started

    async def _leader(self) -> str | None:
        try:
            state = await self.pages.state()
        except KubeError:
            return self.leader
        return state.leader if state is not None else None

    async def _read_metrics(self) -> None:
        now = time.monotonic()
        try:
            found = parse_metrics((await self.pages.read_bytes("/metrics")).decode(errors="replace"))
        except PagesUnavailable:
            found = SchedulerMetrics()  # /metrics may need a token of its own
        if not found.leading:
            return  # the Service may lead to the leader next time
        before, was = self._metrics, self._metrics_at
        if found.binds is not None and before.binds is not None and now > was and found.binds >= before.binds:
            self._rate = round((found.binds - before.binds) / (now - was), 3)
        self._metrics, self._metrics_at = found, now

    @property
    def available(self) -> bool:
        """Whether its pages can be read."""
        return not self.reason

    async def last_cycle(self) -> bytes:
        """The input of its last cycle, as `navarch replay` reads it."""
        return await self.pages.read_bytes("/debug/snapshot")

    def summary(self) -> dict[str, Any]:
        times = sorted(cycle.seconds for cycle in self._cycles)
        cycle_seconds: dict[str, float] | None = None
        if times:
            cycle_seconds = {"p50": _part(times, 0.5), "p99": _part(times, 0.99)}
        elif self._metrics.p50 is not None and self._metrics.p99 is not None:
            cycle_seconds = {"p50": self._metrics.p50, "p99": self._metrics.p99}
        return {
            "available": self.available,
            "reason": self.reason,
            "leader": self.leader,
            "cycleSeconds": cycle_seconds,
            "bindsPerSecond": binds_per_second(self._cycles) if self._cycles else self._rate,
            "failedWrites": self._metrics.failed_writes,
        }

    def decisions(self) -> list[dict[str, Any]] | None:
        return self._decisions

    def cycles(self) -> list[dict[str, Any]] | None:
        """Newest first; None: the scheduler cannot be asked."""
        return None if self.reason else [_cycle(each) for each in self._cycles]


def merged(decisions: Sequence[Decided]) -> list[dict[str, Any]]:
    """Decisions of one cycle about one job are one entry. Reservations for one job, cycle after cycle, are one entry too, with the
    number of cycles and the first moment. In the order given: newest first."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    reserved: dict[str, dict[str, Any]] = {}
    """Job -> its nominations, until an older decision about it is of another kind."""
    for each in decisions:
        if each.kind != "nomination":
            reserved.pop(each.job, None)
        elif (repeated := reserved.get(each.job)) is not None and each.cycle != repeated["cycle"]:
            when = _moment(each.time)
            repeated["times"] += when != repeated["since"]
            repeated["since"] = when
            continue
        key = (each.cycle, each.kind, each.job, each.action, each.for_)
        entry = found.get(key)
        if entry is None:
            if len(found) == TOLD:
                break
            entry = found[key] = {
                "time": _moment(each.time),
                "since": _moment(each.time),
                "times": 1,
                "cycle": each.cycle,
                "kind": _KINDS.get(each.kind, each.kind),
                "job": each.job,
                "pods": 0,
                "nodes": [],
                "action": each.action,
                "for": each.for_,
                "message": each.message,
            }
            if each.kind == "nomination":
                reserved[each.job] = entry
        entry["pods"] += 1
        if each.node not in entry["nodes"] and len(entry["nodes"]) < FEW_NODES:
            entry["nodes"].append(each.node)
    return list(found.values())


def binds_per_second(cycles: Sequence[CycleSummary]) -> float:
    """Over the last minute before the newest cycle, or over as much of it as is known."""
    moments = [_moment(cycle.time) for cycle in cycles]
    newest = max(moments)
    recent = [(when, cycle.bound) for when, cycle in zip(moments, cycles, strict=True) if newest - when <= RATE_SECONDS]
    span = RATE_SECONDS if len(recent) < len(cycles) else max(1.0, newest - min(moments))
    return round(sum(bound for _, bound in recent) / span, 3)


def _cycle(each: CycleSummary) -> dict[str, Any]:
    return {
        "number": each.cycle,
        "time": _moment(each.time),
        "seconds": each.seconds,
        "timings": each.parts,
        "binds": each.bound,
        "evictions": each.evicted,
        "nominations": each.nominated,
        "tried": each.tried,
        "waiting": each.waiting,
        "failures": each.failures,
    }


def _part(times: Sequence[float], part: float) -> float:
    return times[min(len(times) - 1, int(part * len(times)))]


def _moment(text: str) -> float:
    try:
        return seconds(datetime.datetime.fromisoformat(text))
    except ValueError:
        return 0.0
