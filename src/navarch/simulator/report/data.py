"""The figures and series of a simulation as plain data: what `report.json` holds and the page draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from navarch.simulator.measures import Measures
from navarch.simulator.series import TimeSeries
from navarch.simulator.simulate import PolicyRun, SimulationResult, mean_of

MOST_QUEUES = 12
"""Queues that are drawn, those with the most jobs first."""
CDF_POINTS = 200


def report_data(result: SimulationResult, title: str, conditions: Sequence[str] = ()) -> dict[str, Any]:
    """Everything that the page shows. The first seed of a policy stands for it in plots; figures are means over seeds."""
    first = {run.name: run for run in reversed(result.runs)}
    runs = [first[name] for name in dict.fromkeys(run.name for run in result.runs)]
    return {
        "title": title,
        "conditions": list(conditions),
        "order": [run.name for run in runs],
        "policies": result.to_dict()["policies"],
        "seeds": sorted({run.seed for run in result.runs if run.seed is not None}),
        "details": {run.name: mean_of([each.measures.details() for each in result.runs if each.name == run.name]) for run in runs},
        "remarks": result.remarks(),
        "leftOut": {run.name: run.left_out for run in runs},
        "neverStarted": {run.name: len(run.waiting) for run in runs},
        "series": {run.name: _series(run) for run in runs},
        "gpus": runs[0].measures.gpus,
        "cores": runs[0].measures.cores,
        "course": {run.name: run.measures.course for run in runs if run.measures.course},
        "cdf": {"jct": _cdfs(runs, "completion"), "queueing": _cdfs(runs, "queueing")},
        "runs": [{"policy": run.name, "seed": run.seed, **run.measures.to_dict()} for run in result.runs],
        "timing": {run.name: {"seconds": run.seconds, "cycles": run.cycles} for run in runs},
    }


def _series(run: PolicyRun) -> dict[str, Any]:
    measures = run.measures
    end = measures.last
    whole = measures.gpus or measures.cores
    scale = 100 / whole if whole else 1.0
    queues = sorted(measures.queues.values(), key=lambda queue: (-_count(measures, queue.number), queue.name))[:MOST_QUEUES]
    return {
        "allocated": _columns(measures.allocated, end, scale),
        "fragmentation": _columns(measures.fragmented, end, scale),
        "waiting": _columns(measures.waiting, end, 1.0),
        "queues": {
            queue.name: {
                "allocated": _columns(queue.allocated, end, 1.0),
                "waiting": _columns(queue.waiting, end, 1.0),
                "quota": queue.quota,
            }
            for queue in sorted(queues, key=lambda queue: queue.name)
        },
    }


def _count(measures: Measures, number: int) -> int:
    return measures.queue_of.count(number)


def _columns(series: TimeSeries, end: float, scale: float) -> list[list[float]]:
    """[times], [values]; rounded, so that the page stays small."""
    points = series.points(end)
    return [[round(time) for time, _ in points], [round(value * scale, 2) for _, value in points]]


def _cdfs(runs: Sequence[PolicyRun], name: str) -> dict[str, list[list[float]]]:
    """Policy -> [seconds], [percent of jobs that took no longer]."""
    out = {}
    for run in runs:
        values = sorted(getattr(run.measures, name))
        count = len(values)
        picks = sorted({min(count * k // CDF_POINTS, count - 1) for k in range(CDF_POINTS + 1)}) if count else []
        out[run.name] = [[round(values[i], 1) for i in picks], [round(100 * (i + 1) / count, 2) for i in picks]]
    return out
