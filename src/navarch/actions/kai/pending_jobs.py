"""What KAI's actions share: which pending jobs take part, and the reasons of the others."""

from __future__ import annotations

from navarch.engine.action import Action
from navarch.engine.gangs.job_times import JobTimes
from navarch.engine.job import Job
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session
from navarch.model.status import TaskStatus
from navarch.model.timestamps import go_duration, rfc3339


class SessionPreparation:
    """Done once per session, before its first action: starts the accounts of shared devices and ignores tasks stuck in deletion."""

    def __init__(self, session: Session) -> None:
        threshold = session.policy.param("stuckInReleasingThreshold")
        assert isinstance(threshold, int | float)
        session.ignore_stuck_tasks(float(threshold))
        session.share_devices()


class KaiAction(Action):
    starts_gangs = True

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        session.shared(SessionPreparation)

    @property
    def depth(self) -> int | None:
        return self.session.policy.queue_depth.get(self.name)

    def waiting_jobs(self, *, delayed: bool = True) -> list[Job]:
        """Jobs with pending pods that could start. `delayed` False leaves out jobs that must wait before they may evict others."""
        found = []
        for job in self.session.jobs_with_pending():
            if not job.tree.has_pending or _tried(job):
                continue
            if not job.tree.could_start():
                job.refuse(not_ready(job))
            elif not delayed and not self.session.shared(JobTimes).waited(job):
                job.refuse(_delayed(job))
            else:
                found.append(job)
        return found


def _tried(job: Job) -> bool:
    """Whether a job that wants only one attempt had it, as its condition says."""
    return job.spec.tried_once and any(c.type == "UnschedulableOnNodePool" and c.status == "True" for c in job.spec.conditions)


def not_ready(job: Job) -> Reason:
    gated = sum(1 for task in job.tasks if job.session.snapshot.tasks.gated[task])
    needed = sum(job.tree.required(leaf) for leaf in job.tree.leaves)
    text = f"Waiting for {needed} pods, currently {len(job.tasks)} exist, {gated} are gated"
    figures = {"needed": needed, "exist": len(job.tasks), "gated": gated}
    if leaving := int(job.counts[TaskStatus.RELEASING]):
        text += f", {leaving} are leaving"
        figures["leaving"] = leaving
    if job.spec.sub_groups:
        few = [leaf for leaf in job.tree.leaves if not job.tree.could_start(leaf)]
        text += "".join(f", sub-group {leaf.name} has {len(leaf.tasks)} of {job.tree.required(leaf)}" for leaf in few)
    return Reason("NotReady", text, figures=figures, undone_by=(Event.POD_CHANGED, Event.JOB_CHANGED))


def _delayed(job: Job) -> Reason:
    delay, until = job.spec.preemption_delay, job.session.shared(JobTimes).may_evict_from(job)
    window = f"preemption delay window ({go_duration(delay)})"
    text = f"Workload is within its {window} and may not trigger evictions before {rfc3339(until)}"
    return Reason("PreemptionDelay", text, figures={"delay": delay, "until": until}, undone_by=(Event.TIME_PASSED,))
