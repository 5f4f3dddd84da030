"""Ageing: a job that has waited long goes first, so that no order starves it.

Waiting counts in steps. Jobs that waited more steps come before jobs that waited fewer, `most` steps at the most; within a step the
other plugins' orders decide. It stands before them in the policy.
"""

from __future__ import annotations

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey

HOUR = 3600.0


class Ageing(Plugin):
    """Jobs that have waited long go first"""

    name = "ageing"
    turns_in_one_step = True
    arguments = (
        Argument("step", "duration", 6 * HOUR, "a job moves up when it has waited this long, and again after as long"),
        Argument("most", "int", 4, "steps that count", minimum=1),
    )

    def open(self) -> None:
        step = self.given["step"]
        self._step = float(step) if isinstance(step, int | float) and step > 0 else 6 * HOUR
        self._most = self.given.integer("most")

    def next_cycle(self) -> bool:
        return True

    def job_order(self, job: Job) -> OrderKey:
        since = max(job.spec.created, job.spec.last_evicted or 0.0)
        return -min(int(max(self.session.now - since, 0.0) / self._step), self._most)
