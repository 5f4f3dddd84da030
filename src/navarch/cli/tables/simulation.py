"""Figures of a simulation for people: one column a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console

from navarch.cli.tables.text import print_table

Show = Callable[[Any], str]
UNITS = ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (259200.0, 3600.0, "h"))
"""Up to so many seconds a figure is shown in this unit. Longer ones are in days."""


def unit_of(values: Iterable[float | None]) -> tuple[float, str]:
    """The unit for all durations of a table, by the longest of some of them: figures that stand below each other are compared.

    >>> unit_of([90]), unit_of([5400, None]), unit_of([600, 172800]), unit_of([864000])
    ((1.0, 's'), (60.0, 'min'), (3600.0, 'h'), (86400.0, 'd'))
    """
    longest = max((value for value in values if value is not None), default=0.0)
    return next(((unit, name) for limit, unit, name in UNITS if longest < limit), (86400.0, "d"))


def duration(seconds: float | None, unit: float, name: str) -> str:
    """Three digits that count, so that a short time in a long unit is not shown as zero.

    >>> duration(5025.6, 3600, "h"), duration(43, 3600, "h"), duration(864000, 3600, "h"), duration(None, 1, "s")
    ('1.40 h', '0.012 h', '240 h', '-')
    """
    if seconds is None:
        return "-"
    value = seconds / unit
    places = 0 if value >= 100 or not value else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{places}f} {name}"


def percent(value: Any) -> str:
    return "-" if value is None else f"{value:.2f} %"


def count(value: Any) -> str:
    return "-" if value is None else f"{value:,.0f}"


def ratio(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"


ROWS: tuple[tuple[str, str, Show | None], ...] = (
    ("jobs", "jobs", count),
    ("done", "finished", count),
    ("completion, mean", "jct.mean", None),
    ("completion, p50", "jct.p50", None),
    ("completion, p99", "jct.p99", None),
    ("queueing, mean", "queueing.mean", None),
    ("queueing, p50", "queueing.p50", None),
    ("queueing, p90", "queueing.p90", None),
    ("queueing, p99", "queueing.p99", None),
    ("makespan", "makespan", None),
    ("GPUs allocated, mean", "gpuAllocated.mean", percent),
    ("CPU allocated, mean", "cpuAllocated.mean", percent),
    ("GPUs allocated at 100 % asked", "gpuAllocated.at.100", percent),
    ("GPUs allocated at 130 % asked", "gpuAllocated.at.130", percent),
    ("fragmentation, mean", "fragmentation", percent),
    ("preemptions", "preemptions", count),
    ("GPU seconds lost", "lostGpuSeconds", count),
    ("evicted again too soon", "repeatedEvictions", count),
    ("evictions in vain", "evictionsInVain", count),
    ("finish-time fairness, p99", "fairness.finishTime.p99", ratio),
    ("Jain index over queues", "fairness.jain", ratio),
)
"""Name, place in the figures, how it is shown; None: as a duration."""


_ENDS = ("finished", "makespan", "preemptions", "lostGpuSeconds", "repeatedEvictions", "evictionsInVain")
"""Without a meaning where jobs come and stay."""


def show(console: Console, policies: Mapping[str, Any]) -> None:
    """Rows that no policy has a figure for are left out."""
    found = {path: [_at(figures, path) for figures in policies.values()] for _, path, _ in ROWS}
    unit, symbol = unit_of(found["jct.mean" if any(found["jct.mean"]) else "makespan"])
    jobs_stay = any(value is not None for value in found["gpuAllocated.at.100"])
    rows = []
    for name, path, formatted in ROWS:
        values = found[path]
        if any(value is not None for value in values) and not (jobs_stay and path in _ENDS):
            rows.append([name, *(duration(value, unit, symbol) if formatted is None else formatted(value) for value in values)])
    print_table(console, "SIMULATION", ["", *policies], rows)


def _at(figures: Any, path: str) -> Any:
    for name in path.split("."):
        figures = figures.get(name) if figures is not None else None
    return figures
