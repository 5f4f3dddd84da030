"""How far a simulated job is: which pods run where, how much work is done, how much of it an eviction would lose.

Work is counted in seconds at full size. A job runs while at least its minimum of pods does; an elastic job with half of its pods
works half as fast. A job that falls below its minimum stops and starts again from its last checkpoint.
"""

from __future__ import annotations

import math

from navarch.model.spec import JobSpec, TaskSpec
from navarch.simulator.jobs import TraceJob


class SimulatedJob:
    __slots__ = (
        "away",
        "checkpoint",
        "first_start",
        "job",
        "lost_gpu_seconds",
        "nodes",
        "preemptions",
        "ran",
        "rate",
        "saved",
        "since",
        "spec",
        "started",
        "tasks",
        "version",
        "work",
    )

    def __init__(self, job: TraceJob, spec: JobSpec, tasks: list[TaskSpec], checkpoint: float | None) -> None:
        self.job = job
        self.spec = spec
        self.tasks = {task.uid: task for task in tasks}
        """By uid, as the cluster has them."""
        self.nodes: dict[str, str] = {}
        """Pods that run: uid -> node."""
        self.away: list[str] = []
        """Pods that were evicted and are not made again yet."""
        self.checkpoint = checkpoint if job.checkpoint is None else job.checkpoint
        self.work = 0.0
        self.saved = 0.0
        """Work that the last checkpoint holds."""
        self.rate = 0.0
        self.ran = 0.0
        """Seconds in which it ran, lost ones included."""
        self.since = 0.0
        """When `work` was brought up to date."""
        self.started: float | None = None
        """When it last began to run, None while it does not."""
        self.first_start: float | None = None
        self.preemptions = 0
        self.lost_gpu_seconds = 0.0
        self.version = 0
        """Grows with every change of its end: events planned before are out of date."""

    def place(self, uid: str, node: str) -> None:
        self.nodes[uid] = node

    def displace(self, uid: str) -> None:
        self.nodes.pop(uid, None)

    def settle(self, now: float) -> float | None:
        """Bring the work up to date and return when it ends at the present rate; None: it does not run."""
        self.account(now)
        running = len(self.nodes)
        size = self.job.size
        self.version += 1
        if running < max(self.job.needed, 1):
            self.stop(now)
            return None
        if self.started is None:
            self.started = now
            if self.first_start is None:
                self.first_start = now
        self.rate = running / size
        end = now + (self.job.duration - self.work) / self.rate
        return end if self.job.walltime is None else min(end, self.started + self.job.walltime)

    def account(self, now: float) -> None:
        if self.started is not None:
            self.work += (now - self.since) * self.rate
            self.ran += now - self.since
        self.since = now

    def stop(self, now: float) -> None:
        """Lose what no checkpoint holds."""
        if self.started is None:
            return
        interval = self.checkpoint
        if interval:
            self.saved = max(self.saved, math.floor(self.work / interval) * interval)
        self.lost_gpu_seconds += (self.work - self.saved) * self.job.gpus
        self.work = self.saved
        self.rate = 0.0
        self.started = None
        self.preemptions += 1

    @property
    def held_gpus(self) -> float:
        """GPUs of the pods that run."""
        if len(self.nodes) == len(self.tasks):
            return self.job.gpus
        return self._of_running([each.gpu_amount for each in self.job.pods])

    @property
    def held_cores(self) -> float:
        """CPU cores of the pods that run."""
        return self._of_running([each.cpu / 1000 for each in self.job.pods])

    def _of_running(self, amounts: list[float]) -> float:
        """`amounts`: of one pod of each set."""
        sizes = [amount for amount, each in zip(amounts, self.job.pods) for _ in range(each.count)]
        return sum(size for uid, size in zip(self.tasks, sizes) if uid in self.nodes)

    @property
    def is_done(self) -> bool:
        return self.work >= self.job.duration - 1e-6
