"""Resourcequota: a job is admitted only if its namespace's quotas leave room for its minimum.

Without this a gang would be admitted and then wait for pods that the API server refuses to make.
"""

from __future__ import annotations

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import format_amount
from navarch.model.spec import QuotaSpec


class ResourceQuota(Plugin):
    """Admits jobs within the quotas of their namespace"""

    name = "resourcequota"

    def open(self) -> None:
        self.quotas: dict[str, list[QuotaSpec]] = {}
        for (namespace, _), quota in sorted(self.session.snapshot.quotas.items()):
            self.quotas.setdefault(namespace, []).append(quota)
        self.admitted: dict[str, dict[str, int]] = {}
        """Namespace -> resource -> minimums of the jobs admitted in this cycle."""

    def job_enqueueable(self, job: Job) -> Vote | Reason:
        asked = job.spec.min_resources
        if asked is None:
            return Vote.PERMIT
        for quota in self.quotas.get(job.spec.namespace, ()):
            reason = self._exceeded(quota, asked)
            if reason is not None:
                return reason
        return Vote.PERMIT

    def _exceeded(self, quota: QuotaSpec, asked: tuple[tuple[str, int], ...]) -> Reason | None:
        hard, used, admitted = dict(quota.hard), dict(quota.used), self.admitted.get(quota.namespace, {})
        taken = {name: used.get(name, 0) + admitted.get(name, 0) for name, _ in asked}
        short = [(name, amount) for name, amount in asked if name in hard and taken[name] + amount > hard[name]]
        if not short:
            return None
        figures: dict[str, int | float | str] = {"quota": quota.name}
        for name, amount in short:
            figures[f"{name} asked"], figures[f"{name} used"], figures[f"{name} hard"] = amount, taken[name], hard[name]
        words = [", ".join(f"{name}={format_amount(name, table[name])}" for name, _ in short) for table in (dict(asked), taken, hard)]
        message = f"resource quota insufficient, requested: {words[0]}, used: {words[1]}, limited: {words[2]}"
        return Reason("QuotaExceeded", message, figures=figures, undone_by=(Event.QUOTA_CHANGED, Event.POD_REMOVED))

    def job_enqueued(self, job: Job) -> None:
        admitted = self.admitted.setdefault(job.spec.namespace, {})
        for name, amount in job.spec.min_resources or ():
            admitted[name] = admitted.get(name, 0) + amount
