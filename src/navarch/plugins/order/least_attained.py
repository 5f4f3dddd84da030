"""Least attained service: jobs that have had the least go first (Tiresias, NSDI 2019). No duration has to be known.

What a job has had is its GPUs times the seconds that it held them. Levels keep jobs from overtaking each other all the time: a job
belongs to the first level whose bound exceeds what it has had, and inside a level the other plugins' orders decide. With an action
that evicts, a job may take from jobs of higher levels.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.model.status import TaskStatus


class LeastAttainedService(Plugin):
    """Orders jobs by the GPU time that they have had, least first; jobs that have had much are preemptable"""

    name = "least-attained-service"
    arguments = (
        Argument("levels", "str", "3600, 36000", "GPU seconds at which a job falls to the next level, rising"),
        Argument("resource", "str", "nvidia.com/gpu", "what counts as service"),
    )

    def open(self) -> None:
        self._bounds = sorted(float(each) for each in self.given.text("levels").split(",") if each.strip())
        names = self.session.snapshot.resource_names
        resource = self.given.text("resource")
        self._dim = names.index(resource) if resource in names else None

    def next_cycle(self) -> bool:
        return True

    def attained(self, job: Job) -> float:
        """GPU seconds, those of its present run included."""
        started, spec = job.spec.last_started, job.spec
        if self._dim is None or started is None or not job.counts[TaskStatus.RUNNING]:
            return spec.attained_service
        return spec.attained_service + max(self.session.now - started, 0.0) * float(job.allocated[self._dim]) / 1000

    def level(self, job: Job) -> int:
        return bisect_right(self._bounds, self.attained(job))

    def job_order(self, job: Job) -> OrderKey:
        return self.level(job)

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        job = self.session.job_of(preemptor)
        return None if job is None else self._above(job, candidates)

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        return list(candidates) if reclaim else self._above(job, candidates)

    def _above(self, job: Job, candidates: Sequence[int]) -> list[int]:
        level = self.level(job)
        others = ((candidate, self.session.job_of(candidate)) for candidate in candidates)
        return [candidate for candidate, other in others if other is not None and self.level(other) > level]
