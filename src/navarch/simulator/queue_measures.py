"""What a queue holds and waits for over time, and how that compares with what it is owed."""

from __future__ import annotations

from typing import Any

from navarch.simulator.series import TimeSeries


class QueueMeasures:
    """`quota`: GPUs that the queue is owed; None: nothing is said."""

    def __init__(self, name: str, number: int, quota: float | None) -> None:
        self.name = name
        self.number = number
        self.quota = quota
        self.allocated = TimeSeries()
        self.waiting = TimeSeries()
        self._held = 0.0
        self._jobs = 0
        self._wanted = 0.0
        """GPUs that its waiting jobs ask for."""
        self._since: float | None = None
        self.above = 0.0
        """Seconds above its quota."""
        self.below = 0.0
        """Seconds below its quota while jobs of it waited."""
        self.missed_gpu_seconds = 0.0
        """GPUs below its quota that its waiting jobs asked for, times seconds."""

    def holds(self, now: float, change: float) -> None:
        self._account(now)
        self._held += change
        self.allocated.note(now, self._held)

    def waits(self, now: float, jobs: int, gpus: float) -> None:
        self._account(now)
        self._jobs += jobs
        self._wanted += gpus
        self.waiting.note(now, self._jobs)

    def _account(self, now: float) -> None:
        since, self._since = self._since, now
        if self.quota is None or since is None or now <= since:
            return
        if self._held > self.quota:
            self.above += now - since
        elif self._held < self.quota and self._jobs:
            self.below += now - since
            self.missed_gpu_seconds += min(self.quota - self._held, self._wanted) * (now - since)

    def to_dict(self, end: float) -> dict[str, Any]:
        self._account(end)
        return {
            "quota": self.quota,
            "secondsAbove": self.above,
            "secondsBelowWhileWaiting": self.below,
            "missedGpuSeconds": self.missed_gpu_seconds,
            "kept": self.missed_gpu_seconds == 0,
        }
