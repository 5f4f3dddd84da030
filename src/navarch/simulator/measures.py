"""What a simulation is judged by: completion and waiting times, allocation over time, preemptions, fairness.

Figures are taken as things happen, so a year of jobs needs a few numbers a job (about 65 bytes) and a bounded number of points over
time.
`percentile` is sorted[int(p * n)], as the field's simulators have it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from navarch.engine.record import CycleRecord
from navarch.engine.victims.evicted_again import evicted_in_a_row
from navarch.simulator.jobs import TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.queue_measures import QueueMeasures
from navarch.simulator.series import TimeSeries

SHORT = 10.0
"""Seconds: slowdowns of jobs shorter than this are counted as if they ran so long."""
SIZES = ((0, "no GPU"), (1, "1 GPU"), (2, "2 to 4 GPUs"), (5, "5 to 8 GPUs"), (9, "9 to 32 GPUs"), (33, "more than 32 GPUs"))


class Names:
    """Names in one buffer, in the order in which they were added. A list of texts would take four times the memory.

    >>> names = Names()
    >>> names.append("a-1"); names.append("b")
    >>> list(names), len(names)
    (['a-1', 'b'], 2)
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("q")

    def append(self, name: str) -> None:
        self._text += name.encode(errors="surrogatepass")
        self._ends.append(len(self._text))

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends:
            yield self._text[start:end].decode(errors="surrogatepass")
            start = end

    def __len__(self) -> int:
        return len(self._ends)


class Measures:
    """An `Observer` that keeps figures. `gpus`: how many the cluster has. `quota`: GPUs that a queue is owed, None for no quota.
    `cores`: CPU cores of the cluster. Where it has no GPUs, their allocation is kept instead."""

    def __init__(self, gpus: float, quota: Callable[[str], float | None] | None = None, cores: float = 0.0) -> None:
        self.gpus = gpus
        self.cores = 0.0 if gpus else cores
        self.jobs = 0
        self.finished = 0
        self.ended = 0
        """Jobs that left, done or not: a walltime may have ended them, or they had no patience."""
        self.first: float | None = None
        self.last = 0.0
        self.completion = array("d")
        """Of jobs that are done, in order of their ends: seconds from submission to the end."""
        self.queueing = array("d")
        """Of the same jobs: seconds in which they did not run."""
        self.durations = array("d")
        self.sizes = array("d")
        """GPUs."""
        self.pods = array("i")
        self.queue_of = array("i")
        self.submits = array("d")
        self.names = Names()
        self.preemptions = 0
        self.lost_gpu_seconds = 0.0
        self.repeated_evictions = 0
        """Evictions of jobs that were evicted shortly before."""
        self._vain = 0
        self._gains: dict[str, int] = {}
        """Job -> evictions for it since it last moved."""
        self.failures = 0
        self.decision_seconds = 0.0
        self.placements = 0
        self.allocated = TimeSeries()
        self.fragmented = TimeSeries()
        """GPUs that are free and of no use to the pods that come."""
        self.waiting = TimeSeries()
        """Jobs that wait."""
        self.queues: dict[str, QueueMeasures] = {}
        self.at: dict[str, float | None] = {"100": None, "130": None}
        """Percent of GPUs allocated where so many percent were asked for (`arrivals`)."""
        self.course: list[list[float]] = []
        """[percent asked for], [percent allocated], from the first arrival to the last (`arrivals`)."""
        self._quota = quota if quota is not None and gpus else _no_quota
        self._holds: dict[str, float] = {}
        self._allocated = 0.0
        self._waiting = 0
        self._waits: set[str] = set()

    # what happens

    def arrived(self, now: float, job: TraceJob) -> None:
        if self.first is None:
            self.first = now
        self.jobs += 1
        self._wait(now, job.name, job, True)

    def moved(self, now: float, job: SimulatedJob) -> None:
        self._hold(now, job, job.held_cores if self.cores else job.held_gpus)
        self._wait(now, job.job.name, job.job, not job.nodes)
        if job.nodes:
            self._gains.pop(job.spec.key, None)

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        self._hold(now, job, 0.0)
        self._vain += self._gains.pop(job.spec.key, 0)
        self._wait(now, job.job.name, job.job, False)
        self.last = max(self.last, now)
        self.preemptions += job.preemptions
        self.lost_gpu_seconds += job.lost_gpu_seconds
        self.ended += 1
        if not done:
            return
        self.finished += 1
        trace = job.job
        total = now - trace.submit
        self.completion.append(total)
        self.queueing.append(total - job.ran)
        self.durations.append(job.ran)
        self.sizes.append(trace.gpus)
        self.pods.append(trace.size)
        self.queue_of.append(self._queue(trace.queue).number)
        self.submits.append(trace.submit)
        self.names.append(trace.name)

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        self.decision_seconds += seconds
        self.placements += len(record.binds)
        self.repeated_evictions += len(evicted_in_a_row(record, now))
        for eviction in record.evictions:
            if eviction.for_:
                self._gains[eviction.for_] = self._gains.get(eviction.for_, 0) + 1

    def fragmented_by(self, now: float, gpus: float) -> None:
        self.fragmented.note(now, gpus)

    def _queue(self, name: str) -> QueueMeasures:
        found = self.queues.get(name)
        if found is None:
            found = self.queues[name] = QueueMeasures(name, len(self.queues), self._quota(name))
        return found

    def _hold(self, now: float, job: SimulatedJob, gpus: float) -> None:
        key = job.spec.key
        before = self._holds.get(key, 0.0)
        self._allocated += gpus - before
        if gpus:
            self._holds[key] = gpus
        else:
            self._holds.pop(key, None)
        self.allocated.note(now, self._allocated)
        self._queue(job.job.queue).holds(now, gpus - before)

    def _wait(self, now: float, name: str, job: TraceJob, waits: bool) -> None:
        if waits == (name in self._waits):
            return
        (self._waits.add if waits else self._waits.discard)(name)
        sign = 1 if waits else -1
        self._waiting += sign
        self.waiting.note(now, self._waiting)
        self._queue(job.queue).waits(now, sign, sign * job.gpus)

    # figures

    def forget_quota(self) -> None:
        """The simulation is over: let go of its cluster, so that the figures can be sent to another process."""
        self._quota = _no_quota

    def held(self) -> dict[str, float]:
        """GPUs that jobs hold now, by name of the job."""
        return {key.rpartition("/")[2]: gpus for key, gpus in self._holds.items()}

    @property
    def evictions_in_vain(self) -> int:
        """Pods that were evicted for a job that then got no place."""
        return self._vain + sum(self._gains.values())

    @property
    def slowdown(self) -> list[float]:
        """Bounded slowdown of jobs that are done: completion over duration."""
        return [max(total / max(ran, SHORT), 1.0) for total, ran in zip(self.completion, self.durations)]

    @property
    def finish_time_fairness(self) -> list[float]:
        """Completion over what it would be alone on an equal share of the cluster: above 1, sharing costs the job time."""
        share = self.gpus / max(len(self.queues), 1)
        return [
            total / max(ran * max(1.0, size / share if share else 1.0), SHORT)
            for total, ran, size in zip(self.completion, self.durations, self.sizes)
        ]

    def to_dict(self) -> dict[str, Any]:
        """The figures that `-o json` gives."""
        return {
            "jobs": self.jobs,
            "finished": self.finished,
            "jct": summary(self.completion),
            "queueing": summary(self.queueing),
            "makespan": max(self.last - self.first, 0.0) if self.first is not None else 0.0,
            "gpuAllocated": {"mean": self._mean_share(self.allocated, self.gpus), "at": self.at},
            **({"cpuAllocated": {"mean": self._mean_share(self.allocated, self.cores)}} if self.cores else {}),
            "fragmentation": self._mean_share(self.fragmented, self.gpus),
            "preemptions": self.preemptions,
            "lostGpuSeconds": self.lost_gpu_seconds,
            "repeatedEvictions": self.repeated_evictions,
            "evictionsInVain": self.evictions_in_vain,
            "fairness": {"jain": self._jain(), "finishTime": summary(self.finish_time_fairness)},
        }

    def details(self) -> dict[str, Any]:
        """Everything else: what the report shows beside them."""
        by_size = self._grouped([_bucket(size) for size in self.sizes])
        numbers = {found.number: name for name, found in self.queues.items()}
        return {
            "slowdown": summary(self.slowdown),
            "endedEarly": self.ended - self.finished,
            "nodeFailures": self.failures,
            "bySize": {name: by_size[name] for _, name in SIZES if name in by_size},
            "byQueue": dict(sorted(self._grouped([numbers[number] for number in self.queue_of]).items())),
            "gangWait": dict(sorted(self._gang_wait().items())),
            "quota": {name: found.to_dict(self.last) for name, found in sorted(self.queues.items()) if found.quota is not None},
            "decisionMicrosecondsPerPod": 1e6 * self.decision_seconds / self.placements if self.placements else None,
        }

    def _grouped(self, groups: Sequence[str]) -> dict[str, Any]:
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(groups):
            rows.setdefault(name, []).append(row)
        slowdown = self.slowdown
        return {
            name: {
                "jobs": len(found),
                "jct": summary([self.completion[row] for row in found]),
                "queueing": summary([self.queueing[row] for row in found]),
                "slowdown": summary([slowdown[row] for row in found]),
            }
            for name, found in rows.items()
        }

    def _gang_wait(self) -> dict[int, Any]:
        """Pods of a gang -> how long such gangs waited."""
        waits: dict[int, list[float]] = {}
        for size, waited in zip(self.pods, self.queueing):
            waits.setdefault(size, []).append(waited)
        return {size: {"jobs": len(found), **summary(found)} for size, found in waits.items()}

    def _mean_share(self, series: TimeSeries, whole: float) -> float | None:
        """Percent of what the cluster has, over the whole time."""
        if self.first is None or not whole or self.last <= self.first or series.start is None:
            return None
        return 100 * series.integral(self.last) / (self.last - self.first) / whole

    def _jain(self) -> float | None:
        """Jain's index over queues: 1 if jobs of all queues are slowed down alike, 1/n if those of one queue alone are."""
        slowed: dict[int, list[float]] = {}
        for number, rho in zip(self.queue_of, self.finish_time_fairness):
            slowed.setdefault(number, []).append(rho)
        means = [sum(each) / len(each) for _, each in sorted(slowed.items())]
        squares = sum(mean * mean for mean in means)
        return sum(means) ** 2 / (len(means) * squares) if squares else None


def _no_quota(queue: str) -> float | None:
    return None


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


def _bucket(gpus: float) -> str:
    return next(name for least, name in reversed(SIZES) if gpus >= least or not least)
