"""Writes a report: `report.json`, `index.html` (one page that needs nothing else and no network), and CSV files with the data.

jobs.csv      one row for each job that is done: times in seconds
series.csv    one row for each point of each series: what the plots show
runs.csv      one row for each policy and seed: the figures of `-o json`
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from navarch.simulator.report.data import report_data
from navarch.simulator.simulate import SimulationResult

JOB_COLUMNS = ("policy", "seed", "job", "queue", "gpus", "pods", "submit", "queueing", "run", "completion")
_HERE = files("navarch.simulator.report")


def write_report(result: SimulationResult, folder: Path, title: str, conditions: Sequence[str] = ()) -> None:
    """Into a folder that is made if it is not there. `conditions`: what else decides the figures, for people."""
    folder.mkdir(parents=True, exist_ok=True)
    data = report_data(result, title, conditions)
    (folder / "report.json").write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(page(data), encoding="utf-8")
    _write(folder / "jobs.csv", JOB_COLUMNS, _jobs(result))
    _write(folder / "series.csv", ("policy", "series", "queue", "time", "value"), _points(data["series"]))
    _write(folder / "runs.csv", ("policy", "seed", "figure", "value"), _figures(data["runs"]))


def page(data: dict[str, Any]) -> str:
    """The HTML page with everything in it."""
    vendor = _HERE / "vendor"
    text = json.dumps(data, sort_keys=True).replace("<", "\\u003c")  # no name of a job or queue ends or comments out the script
    html = (_HERE / "page.html").read_text(encoding="utf-8")
    parts = {
        "/*UPLOT_CSS*/": (vendor / "uPlot.min.css").read_text(encoding="utf-8"),
        "/*PAGE_CSS*/": (_HERE / "page.css").read_text(encoding="utf-8"),
        "/*UPLOT_JS*/": (vendor / "uPlot.iife.min.js").read_text(encoding="utf-8"),
        "/*PAGE_JS*/": (_HERE / "page.js").read_text(encoding="utf-8"),
        "/*DATA*/": text,
    }
    for place, content in parts.items():
        html = html.replace(place, content)
    return html


def _jobs(result: SimulationResult) -> Iterable[Sequence[object]]:
    for run in result.runs:
        measures = run.measures
        queues = {queue.number: name for name, queue in measures.queues.items()}
        columns = (measures.sizes, measures.pods, measures.submits, measures.queueing, measures.durations, measures.completion)
        for name, number, *rest in zip(measures.names, measures.queue_of, *columns):
            yield run.name, "" if run.seed is None else run.seed, name, queues[number], *rest


def _points(series: dict[str, Any]) -> Iterable[Sequence[object]]:
    for policy, found in series.items():
        for name in ("allocated", "fragmentation", "waiting"):
            yield from ((policy, name, "", time, value) for time, value in zip(*found[name]))
        for queue, figures in found["queues"].items():
            for name in ("allocated", "waiting"):
                yield from ((policy, name, queue, time, value) for time, value in zip(*figures[name]))


def _figures(runs: Iterable[dict[str, Any]]) -> Iterable[Sequence[object]]:
    for run in runs:
        for name, value in flat(run):
            if name not in ("policy", "seed"):
                yield run["policy"], "" if run["seed"] is None else run["seed"], name, "" if value is None else value


def flat(figures: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """
    >>> dict(flat({"jct": {"mean": 2}, "jobs": 1}))
    {'jct.mean': 2, 'jobs': 1}
    """
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
