"""What the actions over a tree of queues share: which jobs take part, and how a failure is noted."""

from __future__ import annotations

from navarch.actions.placing import Placing
from navarch.engine.action import Action
from navarch.engine.fit import FitErrors
from navarch.engine.job import Job
from navarch.engine.lifetimes import Lifetimes
from navarch.engine.reasons import Reason
from navarch.engine.session import Session


class Accounts:
    """Once per session, before its first action: shared devices, and tasks that leave for ever."""

    def __init__(self, session: Session) -> None:
        threshold = session.policy.param("stuckInReleasingThreshold")
        assert isinstance(threshold, int | float)
        session.stop_waiting(float(threshold))
        session.share_devices()


class FairAction(Action):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        session.shared(Accounts)

    @property
    def depth(self) -> int | None:
        return self.session.policy.queue_depth.get(self.name)

    def waiting_jobs(self, *, delayed: bool = True) -> list[Job]:
        """Jobs with pending pods that could start; without those that must wait longer before they evict others."""
        lifetimes = self.session.shared(Lifetimes)
        return [
            job
            for job in self.session.jobs_with_pending()
            if job.tree.has_pending and job.tree.could_start() and not _tried(job) and (delayed or lifetimes.waited(job))
        ]


def _tried(job: Job) -> bool:
    """A job that asked to be tried once has been, as its condition says."""
    return job.spec.tried_once and any(c.type == "UnschedulableOnNodePool" and c.status == "True" for c in job.spec.conditions)


def note_failure(job: Job, placing: Placing) -> None:
    """Say on the job why its next tasks found no place."""
    if placing.failed is None:
        return
    task, why = placing.failed
    if isinstance(why, Reason):
        job.refuse(why)
        if task >= 0:
            job.fit_errors[task] = FitErrors(0, message=why.message)
    else:
        job.fit_errors[task] = why
