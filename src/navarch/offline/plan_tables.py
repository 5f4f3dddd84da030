"""A plan for notebooks: one row a pod that is bound or evicted and a job that waits, as HTML and as a data frame."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from navarch.engine.record import CycleRecord, JobDecision
from navarch.ingest.groups import shown_key

COLUMNS = ("cycle", "decision", "pod", "job", "node", "reason")
_FRAMES = ("pandas", "polars")
_MOST_ROWS = 200


def waiting_jobs(records: list[CycleRecord]) -> list[JobDecision]:
    """Jobs with pods that found no place by the end of the last cycle."""
    return [job for job in records[-1].jobs if job.pods.get("Pending")] if records else []


def rows(records: list[CycleRecord]) -> list[dict[str, Any]]:
    """Binds and evictions of every cycle, then the jobs that wait."""
    found: list[tuple[Any, ...]] = []
    for number, record in enumerate(records, start=1):
        found += [(number, "bind", each.pod, shown_key(each.job), each.node, "") for each in record.binds]
        found += [
            (number, "evict", each.pod, shown_key(each.job), each.node, each.message or each.reason) for each in record.evictions
        ]
    found += [(len(records), "wait", "", shown_key(job.job), "", why(job)) for job in waiting_jobs(records)]
    return [dict(zip(COLUMNS, row)) for row in found]


def why(job: JobDecision) -> str:
    return job.reasons[0].message if job.reasons else ""


def summary(records: list[CycleRecord]) -> str:
    binds, evictions = (sum(len(getattr(record, name)) for record in records) for name in ("binds", "evictions"))
    waiting = len(waiting_jobs(records))
    return f"{_count(binds, 'pod')} bound, {evictions} evicted, {_count(waiting, 'job')} pending"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def as_html(records: list[CycleRecord]) -> str:
    """A table. All text comes from objects and is escaped."""
    found = rows(records)
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    body = "".join(f"<tr>{_cells(row.values())}</tr>" for row in found[:_MOST_ROWS])
    more = f"<p>and {len(found) - _MOST_ROWS} more</p>" if len(found) > _MOST_ROWS else ""
    return f"<p>{escape(summary(records))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cells(values: Iterable[object]) -> str:
    return "".join(f"<td>{escape(str(value))}</td>" for value in values)


def as_dataframe(records: list[CycleRecord]) -> Any:
    """The rows as a data frame of pandas, or of polars where pandas is not installed."""
    for name in _FRAMES:
        if find_spec(name) is not None:
            found = rows(records)
            return import_module(name).DataFrame({column: [row[column] for row in found] for column in COLUMNS})
    raise ImportError("to_dataframe needs pandas or polars: pip install pandas")
