"""Figures of a simulation for people: one column a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from navarch.cli.tables.text import print_table

Show = Callable[[Sequence[Any]], list[str]]
"""The figures of one row, policy by policy, as text."""


def durations(values: Sequence[Any]) -> list[str]:
    """Figures that are compared have one unit, that of the longest.

    >>> durations([90]), durations([5400, None]), durations([600, 172800]), durations([864000])
    (['90 s'], ['90.0 min', '-'], ['0.2 h', '48.0 h'], ['10.0 d'])
    """
    longest = max((value for value in values if value is not None), default=0)
    units = ((120, 1, "s"), (7200, 60, "min"), (259200, 3600, "h"))
    unit, name = next(((unit, name) for limit, unit, name in units if longest < limit), (86400, "d"))
    places = 0 if unit == 1 else 1
    return ["-" if value is None else f"{value / unit:.{places}f} {name}" for value in values]


def each(formatted: Callable[[Any], str]) -> Show:
    return lambda values: [formatted(value) for value in values]


def percent(value: Any) -> str:
    return "-" if value is None else f"{value:.2f} %"


def count(value: Any) -> str:
    return "-" if value is None else f"{value:,.0f}"


def ratio(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"


ROWS: tuple[tuple[str, str, Show], ...] = (
    ("jobs", "jobs", each(count)),
    ("done", "finished", each(count)),
    ("completion, mean", "jct.mean", durations),
    ("completion, p50", "jct.p50", durations),
    ("completion, p99", "jct.p99", durations),
    ("queueing, mean", "queueing.mean", durations),
    ("queueing, p50", "queueing.p50", durations),
    ("queueing, p90", "queueing.p90", durations),
    ("queueing, p99", "queueing.p99", durations),
    ("makespan", "makespan", durations),
    ("GPUs allocated, mean", "gpuAllocated.mean", each(percent)),
    ("GPUs allocated at 100 % asked", "gpuAllocated.at.100", each(percent)),
    ("GPUs allocated at 130 % asked", "gpuAllocated.at.130", each(percent)),
    ("fragmentation, mean", "fragmentation", each(percent)),
    ("preemptions", "preemptions", each(count)),
    ("GPU seconds lost", "lostGpuSeconds", each(count)),
    ("finish-time fairness, p99", "fairness.finishTime.p99", each(ratio)),
    ("Jain index over queues", "fairness.jain", each(ratio)),
)


def show(console: Console, policies: Mapping[str, Any]) -> None:
    """Rows that no policy has a figure for are left out."""
    rows = []
    for name, path, formatted in ROWS:
        values = [_at(figures, path) for figures in policies.values()]
        if any(value is not None for value in values):
            rows.append([name, *formatted(values)])
    print_table(console, "SIMULATION", ["", *policies], rows)


def _at(figures: Any, path: str) -> Any:
    for name in path.split("."):
        figures = figures[name] if figures is not None else None
    return figures
