"""How long jobs are expected to run, for policies that order by it or promise starts.

`exact`: as long as they will. `walltime`: what users said or asked for, and as long as they will where they said nothing.
`history`: the median of the last jobs of the same user and size that ended, else what the user said, else nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median

from navarch.simulator.jobs import TraceJob

LAST = 100
"""Jobs of a user and size that count."""
KINDS = ("walltime", "exact", "history")


class Estimates:
    def __init__(self, kind: str = "walltime") -> None:
        kinds: dict[str, Callable[[TraceJob], float | None]] = {
            "exact": lambda job: job.duration,
            "walltime": self._by_owner,
            "history": self._from_history,
        }
        self._of = kinds[kind]
        self._learns = kind == "history"
        self._history: dict[tuple[str, float], deque[float]] = {}

    def expected(self, job: TraceJob) -> float | None:
        return self._of(job)

    def ended(self, job: TraceJob, ran: float) -> None:
        if self._learns:
            self._history.setdefault((job.user, job.gpus), deque(maxlen=LAST)).append(ran)

    def _by_owner(self, job: TraceJob) -> float:
        said = job.walltime if job.expected is None else job.expected
        return job.duration if said is None else said

    def _from_history(self, job: TraceJob) -> float | None:
        known = self._history.get((job.user, job.gpus))
        if not known:
            return job.walltime if job.expected is None else job.expected
        return median(known) if job.walltime is None else min(median(known), job.walltime)
