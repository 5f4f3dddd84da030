"""The tables of `navarch plan`: what was placed where, what waits and why, what was evicted for whom, how queues stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from navarch.plan import Plan

_MOST_ROWS = 200
"""Beyond this many lines the rest of a table is only counted."""


def show(plan: Plan, *, verbose: bool = False, console: Console | None = None) -> None:
    console = console or Console(highlight=False, soft_wrap=False)
    cycles = plan.to_dict()["cycles"]
    for cycle in cycles:
        if len(cycles) > 1:
            console.rule(f"cycle {cycle['cycle']}", align="left")
        _placed(console, cycle["binds"])
        _evicted(console, cycle["evictions"])
        _promised(console, cycle["nominations"])
        _waiting(console, cycle["jobs"], verbose=verbose)
        _queues(console, cycle["queues"])
    if verbose:
        console.print(_timings(plan.timings))


def _table(console: Console, title: str, columns: Iterable[str], rows: list[tuple[Any, ...]]) -> None:
    if not rows:
        return
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows[:_MOST_ROWS]:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    console.print(table)
    if len(rows) > _MOST_ROWS:
        console.print(f"... and {len(rows) - _MOST_ROWS} more (-o json shows all)")
    console.print()


def _placed(console: Console, binds: list[dict[str, str]]) -> None:
    _table(console, f"Placed: {len(binds)}", ("POD", "NODE"), [(bind["pod"], bind["node"]) for bind in binds])


def _evicted(console: Console, evictions: list[dict[str, str]]) -> None:
    rows = [(e["pod"], e["node"], e["action"], e["for"], e["reason"]) for e in evictions]
    _table(console, f"Evicted: {len(rows)}", ("POD", "FROM", "BY", "FOR", "REASON"), rows)


def _promised(console: Console, nominations: list[dict[str, str]]) -> None:
    rows = [(n["pod"], n["node"]) for n in nominations]
    _table(console, f"Promised, once what they wait for is released: {len(rows)}", ("POD", "NODE"), rows)


def _waiting(console: Console, jobs: list[dict[str, Any]], *, verbose: bool) -> None:
    rows = []
    for job in jobs:
        pending = job["pods"].get("Pending", 0)
        if pending:
            rows.append((job["job"], job["queue"], pending, job["minMember"], job["phase"], _why(job, verbose=verbose)))
    _table(console, f"Waiting: {len(rows)}", ("JOB", "QUEUE", "PENDING", "MIN", "PHASE", "WHY"), rows)


def _why(job: Mapping[str, Any], *, verbose: bool) -> Text:
    texts = [reason["message"] for reason in job["reasons"]]
    if not texts:
        texts = [c["message"] or c["reason"] for c in job["conditions"] if c["type"] == "Unschedulable"]
    texts = list(dict.fromkeys(texts))
    if not verbose and len(texts) > 2:
        texts = [*texts[:2], f"... and {len(texts) - 2} more (-v shows all)"]
    return Text("\n".join(texts) or "not reached in this cycle")


def _queues(console: Console, queues: list[dict[str, Any]]) -> None:
    rows = [
        (q["queue"], _amounts(q["deserved"]), _amounts(q["allocated"]), _amounts(q["request"]), f"{q['share']:.2f}")
        for q in queues
    ]
    _table(console, "Queues", ("QUEUE", "DESERVED", "ALLOCATED", "REQUEST", "SHARE"), rows)


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items()) or "-"


def _timings(timings: Mapping[str, float]) -> str:
    return "Timings: " + ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in timings.items())
