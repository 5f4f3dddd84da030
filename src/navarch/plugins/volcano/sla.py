"""SLA: a job that has waited for its maximum time goes first, and plugins of later tiers no longer hold it back.

The maximum time is set by the job (annotation `volcano.sh/sla-waiting-time`, or `sla-waiting-time`), else by the policy. A
rejection always wins over a permit of the same or a later tier, so sla must be in a tier before the plugins that it overrides.
"""

from __future__ import annotations

from navarch.engine.arguments import Argument, WrongKind, duration
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.engine.points.protocols import Vote

ANNOTATIONS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")


class Sla(Plugin):
    """Lets jobs through once they have waited long enough"""

    name = "sla"
    turns_in_one_step = True
    arguments = (Argument("sla-waiting-time", "duration", None, "longest wait of jobs that do not say"),)

    def open(self) -> None:
        given = self.given["sla-waiting-time"]
        self.wait = given if isinstance(given, float) and given > 0 else None

    def deadline(self, job: Job) -> float | None:
        """When the job's patience ends; None: it has no end."""
        wait = next((found for name in ANNOTATIONS if (found := _positive(job.spec.annotations.get(name)))), self.wait)
        return None if wait is None else job.spec.created + wait

    def job_order(self, job: Job) -> OrderKey:
        deadline = self.deadline(job)
        return (True, 0.0) if deadline is None else (False, deadline)

    def job_enqueueable(self, job: Job) -> Vote:
        return self._vote(job)

    def job_pipelined(self, job: Job) -> Vote:
        return self._vote(job)

    def _vote(self, job: Job) -> Vote:
        deadline = self.deadline(job)
        return Vote.PERMIT if deadline is not None and self.session.now >= deadline else Vote.ABSTAIN


def _positive(text: str | None) -> float | None:
    """Seconds of a duration above zero; a text that is none counts as absent."""
    try:
        seconds = duration(text) if text else 0.0
    except WrongKind:
        return None
    return seconds if seconds > 0 else None
