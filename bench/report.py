"""Figures as people want them: one table, each row with its target and the ratio to what ran beside it."""

from __future__ import annotations

import platform
import resource
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    target: float | None = None
    beside: float | None = None
    beside_what: str = ""
    note: str = ""

    @property
    def met(self) -> str:
        if self.target is None:
            return ""
        return "yes" if self.value <= self.target else "no"


def best_of(runs: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs: the others measure the machine's noise."""
    times = []
    for _ in range(runs):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)


def peak_memory_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def show(title: str, figures: list[Figure]) -> None:
    table = Table(title=f"{title} ({platform.python_implementation()} {platform.python_version()})", title_justify="left")
    for column in ("what", "figure", "target", "met", "beside", "ratio", "note"):
        table.add_column(column, justify="right" if column in ("figure", "target", "ratio") else "left")
    for f in figures:
        ratio = f"{f.beside / f.value:.2f}x" if f.beside and f.value else ""
        beside = f"{f.beside:.4g} {f.unit} {f.beside_what}".strip() if f.beside is not None else ""
        target = "" if f.target is None else f"{f.target:g} {f.unit}"
        table.add_row(f.what, f"{f.value:.4g} {f.unit}", target, f.met, beside, ratio, f.note)
    Console(width=180).print(table)
