"""Figures of a simulation for people: one column a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console

from navarch.cli.tables.text import print_table

Show = Callable[[Any], str]


def duration(seconds: Any) -> str:
    """
    >>> [duration(each) for each in (90, 5400, 172800, 864000, None)]
    ['90 s', '90.0 min', '48.0 h', '10.0 d', '-']
    """
    if seconds is None:
        return "-"
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (259200, 3600, "h")):
        if seconds < limit:
            return f"{seconds:.0f} s" if unit == 1 else f"{seconds / unit:.1f} {name}"
    return f"{seconds / 86400:.1f} d"


def percent(value: Any) -> str:
    return "-" if value is None else f"{value:.2f} %"


def count(value: Any) -> str:
    return "-" if value is None else f"{value:,.0f}"


def ratio(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"


ROWS: tuple[tuple[str, str, Show], ...] = (
    ("jobs", "jobs", count),
    ("done", "finished", count),
    ("completion, mean", "jct.mean", duration),
    ("completion, p50", "jct.p50", duration),
    ("completion, p99", "jct.p99", duration),
    ("queueing, mean", "queueing.mean", duration),
    ("queueing, p50", "queueing.p50", duration),
    ("queueing, p90", "queueing.p90", duration),
    ("queueing, p99", "queueing.p99", duration),
    ("makespan", "makespan", duration),
    ("GPUs allocated, mean", "gpuAllocated.mean", percent),
    ("GPUs allocated at 100 % asked", "gpuAllocated.at.100", percent),
    ("GPUs allocated at 130 % asked", "gpuAllocated.at.130", percent),
    ("fragmentation, mean", "fragmentation", percent),
    ("preemptions", "preemptions", count),
    ("GPU seconds lost", "lostGpuSeconds", count),
    ("finish-time fairness, p99", "fairness.finishTime.p99", ratio),
    ("Jain index over queues", "fairness.jain", ratio),
)


def show(console: Console, policies: Mapping[str, Any]) -> None:
    """Rows that no policy has a figure for are left out."""
    rows = []
    for name, path, formatted in ROWS:
        values = [_at(figures, path) for figures in policies.values()]
        if any(value is not None for value in values):
            rows.append([name, *map(formatted, values)])
    print_table(console, "SIMULATION", ["", *policies], rows)


def _at(figures: Any, path: str) -> Any:
    for name in path.split("."):
        figures = figures[name] if figures is not None else None
    return figures
