"""Jobs that come after now: those of a past span come again.

A span begins at a random moment of the history; where the history is a week or longer, at the same time of day as now. When its end is
reached it goes on at the beginning. Jobs of the span that have finished run as long as they did, others as long as their class.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from navarch.job_history import GPU, JobRun
from navarch.simulator.jobs import PodSet, TraceJob

DAY = 86400.0
FEWEST = 50
"""Jobs that a history needs to tell what comes."""


class PastArrivals:
    """`runs` in order of submission, none after `now`."""

    def __init__(self, runs: Sequence[JobRun], now: float) -> None:
        self._runs = [run for run in runs if run.submitted <= now and run.pods]
        self._now = now
        self.span = now - self._runs[0].submitted if self._runs else 0.0
        """Seconds that the history reaches back."""
        if self.span >= 7 * DAY:
            self.span = self.span // DAY * DAY
            self._runs = [run for run in self._runs if run.submitted >= now - self.span]
        self._times = [run.submitted for run in self._runs]

    @property
    def known(self) -> bool:
        return self.span >= DAY and len(self._runs) >= FEWEST

    def draw(self, random: np.random.Generator, run_time: Callable[[JobRun], float | None]) -> Iterator[TraceJob]:
        """Jobs in order of submission, without end. `run_time`: for a job that has not finished; None: it is left out."""
        if self.span >= 7 * DAY:
            back = DAY * int(random.integers(1, int(self.span // DAY) + 1))
        else:
            back = float(random.uniform(0.0, self.span))
        place, number = bisect_left(self._times, self._now - back), 0
        while True:
            for run in self._runs[place:]:
                number += 1
                length = run.finished - run.started if run.finished is not None and run.started is not None else run_time(run)
                if length is not None:
                    yield _job(run, f"arrival-{number}", max(run.submitted + back, self._now), max(length, 0.0))
            place, back = 0, back + self.span


def _job(run: JobRun, name: str, submit: float, length: float) -> TraceJob:
    pods = []
    for count, requests, selector in run.pods:
        asked = dict(requests)
        gpus = asked.get(GPU, 0)
        pods.append(
            PodSet(
                count,
                cpu=asked.get("cpu", 0),
                memory=asked.get("memory", 0),
                gpus=gpus // 1000,
                gpu_milli=gpus % 1000 if gpus < 1000 else 0,
                node_selector=selector,
            )
        )
    return TraceJob(
        name=name,
        submit=submit,
        duration=length,
        pods=tuple(pods),
        queue=run.queue,
        min_pods=run.needed,
        priority=run.priority,
        user=run.owner,
    )
