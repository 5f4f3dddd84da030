"""What the dashboard reads of the scheduler's /metrics: the time of cycles, bindings, and writes that failed."""

from __future__ import annotations

import math
import re
from typing import Final

from msgspec import Struct

_WRITES: Final = re.compile(r'^navarch_(?:binds|evictions|status_writes)_total\{.*result="([^"]*)".*\} ([0-9.e+]+)$', re.M)
FAILED: Final = frozenset({"error", "failed", "given up"})
"""Results that count as a failed write."""


_STANDS_BY: Final = re.compile(r"^navarch_leading 0(?:\.0)?$", re.M)
_BINDS: Final = re.compile(r'^navarch_binds_total\{result="ok"\} ([0-9.e+]+)$', re.M)
_CYCLES: Final = re.compile(r'^navarch_cycle_duration_seconds_bucket\{le="([^"]+)"\} ([0-9.e+]+)$', re.M)


class SchedulerMetrics(Struct, frozen=True):
    """Since the scheduler started; None: not known. `p50`, `p99`: seconds of a cycle, as the bound of a histogram's bucket."""

    failed_writes: int | None = None
    binds: int | None = None
    p50: float | None = None
    p99: float | None = None
    leading: bool = True
    """False: a replica that stands by answered, which has decided nothing."""


def parse_metrics(text: str) -> SchedulerMetrics:
    """
    >>> parse_metrics('navarch_binds_total{result="ok"} 5.0\\nnavarch_binds_total{result="failed"} 2.0')
    SchedulerMetrics(failed_writes=2, binds=5, p50=None, p99=None, leading=True)
    """
    binds = _BINDS.search(text)
    buckets = [(float(bound), float(count)) for bound, count in _CYCLES.findall(text)]
    return SchedulerMetrics(
        failed_writes=round(sum(float(count) for result, count in _WRITES.findall(text) if result in FAILED)),
        binds=round(float(binds[1])) if binds else None,
        p50=_bound(buckets, 0.5),
        p99=_bound(buckets, 0.99),
        leading=_STANDS_BY.search(text) is None,
    )


def _bound(buckets: list[tuple[float, float]], part: float) -> float | None:
    """The bound of the first bucket that holds this part of all cycles."""
    total = buckets[-1][1] if buckets else 0.0
    found = next((bound for bound, count in buckets if total and count >= part * total), None)
    return found if found is not None and math.isfinite(found) else None
