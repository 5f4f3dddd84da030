"""What a simulation is judged by: completion and waiting times, allocation over time, preemptions, fairness.

Figures are taken as things happen, so a year of jobs needs a few numbers a job and a bounded number of points over time.
`percentile` is sorted[int(p * n)], as the field's simulators have it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from navarch.engine.record import CycleRecord
from navarch.simulator.jobs import TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.series import TimeSeries


class Measures:
    """An `Observer` that keeps figures. `gpus`: how many the cluster has."""

    def __init__(self, gpus: float) -> None:
        self.gpus = gpus
        self.jobs = 0
        self.finished = 0
        self.ended = 0
        self.first: float | None = None
        self.last = 0.0
        self.completion = array("d")
        """Of jobs that are done: seconds from submission to the end."""
        self.queueing = array("d")
        """Of the same jobs: seconds in which they did not run."""
        self.preemptions = 0
        self.lost_gpu_seconds = 0.0
        self.decision_seconds = 0.0
        self.placements = 0
        self.allocated = TimeSeries()
        self.at: dict[str, float | None] = {"100": None, "130": None}
        """Percent of GPUs allocated where so many percent were asked for (`arrivals`)."""
        self._holds: dict[str, float] = {}
        self._allocated = 0.0

    # what happens

    def arrived(self, now: float, job: TraceJob) -> None:
        if self.first is None:
            self.first = now
        self.jobs += 1

    def moved(self, now: float, job: SimulatedJob) -> None:
        self._hold(now, job, job.held_gpus)

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        self._hold(now, job, 0.0)
        self.last = max(self.last, now)
        self.ended += 1
        self.preemptions += job.preemptions
        self.lost_gpu_seconds += job.lost_gpu_seconds
        if done:
            self.finished += 1
            total = now - job.job.submit
            self.completion.append(total)
            self.queueing.append(total - job.ran)

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        self.decision_seconds += seconds
        self.placements += len(record.binds)

    def _hold(self, now: float, job: SimulatedJob, gpus: float) -> None:
        key = job.spec.key
        self._allocated += gpus - self._holds.get(key, 0.0)
        if gpus:
            self._holds[key] = gpus
        else:
            self._holds.pop(key, None)
        self.allocated.note(now, self._allocated)

    # figures

    def held(self) -> dict[str, float]:
        """GPUs that jobs hold now, by name of the job."""
        return {key.rpartition("/")[2]: gpus for key, gpus in self._holds.items()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "jobs": self.jobs,
            "finished": self.finished,
            "jct": summary(self.completion),
            "queueing": summary(self.queueing),
            "makespan": self.last - self.first if self.first is not None else 0.0,
            "gpuAllocated": {"mean": self._mean_allocated(), "at": self.at},
            "fragmentation": None,
            "preemptions": self.preemptions,
            "lostGpuSeconds": self.lost_gpu_seconds,
            "fairness": None,
        }

    def _mean_allocated(self) -> float | None:
        """Percent of the cluster's GPUs, over the whole time."""
        if self.first is None or not self.gpus or self.last <= self.first:
            return None
        return 100 * self.allocated.integral(self.first, self.last) / (self.last - self.first) / self.gpus


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and percentiles; nothing where there are no values.

    >>> summary([3.0, 1.0])
    {'mean': 2.0, 'p50': 3.0, 'p90': 3.0, 'p99': 3.0}
    """
    if not values:
        return {"mean": None, "p50": None, "p90": None, "p99": None}
    ordered = sorted(values)
    return {"mean": sum(ordered) / len(ordered), **{f"p{int(100 * p)}": percentile(ordered, p) for p in (0.5, 0.9, 0.99)}}


def percentile(ordered: Sequence[float], p: float) -> float:
    return ordered[min(int(p * len(ordered)), len(ordered) - 1)]
