"""Gang: a job starts only when enough of its tasks can start together.

Enough is the minimum of the job, of its roles (where the job's minimum covers them), and of its sub-groups. A gang that does not
reach it gets the Unschedulable condition with the counts and the fit error when the session closes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from navarch.engine.arguments import Arguments
from navarch.engine.close import job_reasons
from navarch.engine.gangs.sub_jobs import SubJob, enough_sub_jobs, missing_sub_jobs
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import NEVER, Event, Reason, dominant, not_admitted, with_next_step
from navarch.model.spec import JobSpec
from navarch.model.status import STATUS_NAMES, TaskStatus

S = TaskStatus
_MORE_PODS = (Event.POD_CHANGED, Event.JOB_CHANGED)


class Gang(Plugin):
    """A job runs when its minimum can, or not at all"""

    name = "gang"
    turns_in_one_step = True
    says_scheduled = True
    waits_for_room = True

    def next_cycle(self) -> bool:
        return True

    def job_valid(self, job: Job) -> Reason | None:
        if not job.roles_valid:
            return Reason("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling", undone_by=_MORE_PODS)
        if job.spec.sub_groups and (few := missing_sub_jobs(job, "is_valid")):
            text = "Not enough valid sub-groups for gang-scheduling"
            if self.session.semantics.refusals_tell_all:
                text += f": {', '.join(few)}"
            return Reason("NotEnoughPodsOfTask", text, undone_by=_MORE_PODS)
        if job.valid_count < job.min_member:
            return Reason(
                "NotEnoughTasks",
                f"Not enough valid tasks for gang-scheduling, valid: {job.valid_count}, min: {job.min_member}",
                figures={"valid": job.valid_count, "min": job.min_member},
                undone_by=_MORE_PODS,
            )
        return None

    def job_order(self, job: Job) -> OrderKey:
        return job.is_ready

    @staticmethod
    def waiting_order(spec: JobSpec, given: Arguments) -> OrderKey:
        """As `job_order` of a job that holds nothing."""
        return False

    def sub_job_order(self, sub_job: SubJob) -> OrderKey:
        return sub_job.is_ready

    def job_ready(self, job: Job) -> bool:
        return job.is_ready and job.roles_ready and (not job.spec.sub_groups or enough_sub_jobs(job, "is_ready"))

    def job_missing(self, job: Job) -> int:
        return max(job.min_member - job.ready_count - job.best_effort_pending, 1)

    def job_pipelined(self, job: Job) -> Vote:
        enough = job.is_pipelined and job.roles_pipelined and (not job.spec.sub_groups or enough_sub_jobs(job, "is_pipelined"))
        return Vote.PERMIT if enough else Vote.REJECT

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        return sub_job.is_ready

    def sub_job_missing(self, sub_job: SubJob) -> int:
        return max(sub_job.missing, 1)

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote:
        return Vote.PERMIT if sub_job.is_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return job.is_starving

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        return self._above_minimum(candidates)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        return self._above_minimum(candidates)

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        return list(candidates)

    def _above_minimum(self, candidates: Sequence[int]) -> list[int]:
        """As many of each job's candidates as it can lose and still be ready."""
        ready: dict[int, int] = {}
        out = []
        for candidate in candidates:
            job = self.session.job_of(candidate)
            if job is None:
                continue
            left = ready.setdefault(job.row, job.ready_count)
            if left > job.min_member:
                ready[job.row] = left - 1
                out.append(candidate)
        return out

    def close(self) -> None:
        for job in self.session.jobs_to_conclude():
            if job.tasks or job.is_refused_without_pods:
                self._conclude(job)

    def _conclude(self, job: Job) -> None:
        if job.is_ready:
            job.set_condition("Scheduled", "True", "tasks in gang are ready to be scheduled", "")
        else:
            self._tell_what_is_missing(job)

    def _tell_what_is_missing(self, job: Job) -> None:
        counts, status, node = job.counts, self.session.status, self.session.node
        leaving = sum(1 for t in job.tasks if status[t] == S.RELEASING and node[t] >= 0) if counts[S.RELEASING] else 0
        scheduled = counts[S.RUNNING] + counts[S.BOUND] + counts[S.SUCCEEDED] + counts[S.FAILED]
        if leaving and not counts[S.PENDING] and not counts[S.PIPELINED] and scheduled + leaving >= job.min_member:
            return
        pending = job.tasks_in(S.PENDING)
        alone = [t for t in pending if job.last_undone.get(t) == S.ALLOCATED]
        message = self._message(job, pending, len(alone))
        job.set_condition("Unschedulable", "True", "NotEnoughResources", message)

    def _message(self, job: Job, pending: list[int], alone: int) -> str:
        if job.is_refused_without_pods:
            return self._not_admitted(job)
        lacking = self._lacking(job, alone)
        if not self.session.semantics.refusals_tell_all:
            return f"{lacking}: {self._fit_text(job, pending, alone)}"
        reason = dominant(job_reasons(self.session, job))
        if reason is None:
            return lacking
        text = reason.message if reason.code == NEVER else f"{lacking}: {reason.message}"
        return with_next_step(text, reason) if self.session.semantics.next_step_is_told else text

    def _not_admitted(self, job: Job) -> str:
        reason = dominant(job_reasons(self.session, job)) or job.reasons[0]
        if not self.session.semantics.refusals_tell_all:
            return f"0/0 tasks in gang unschedulable: {self._fit_text(job, [], 0)}. Origin reason is: {reason.message}"
        return with_next_step(not_admitted(reason), reason) if self.session.semantics.next_step_is_told else not_admitted(reason)

    def _lacking(self, job: Job, alone: int) -> str:
        least, found, total = job.min_member, job.ready_count + alone, len(job.tasks)
        if not self.session.semantics.refusals_tell_all:
            return f"{least - found}/{total} tasks in gang unschedulable"
        plural = "" if least == 1 else "s"
        text = f"the gang needs {least} pod{plural} to start, and a place was found for {found or 'none'} of its {total}"
        return text if found < least else f"{text}, but not for all that its parts need"

    def _fit_text(self, job: Job, pending: list[int], alone: int) -> str:
        counts = [f"{n} {STATUS_NAMES[i]}" for i, n in enumerate(job.counts) if n]
        text = "pod group is not ready, " + ", ".join(sorted([*counts, f"{job.min_member} minAvailable"]))
        if pending:
            kinds = Counter({"Schedulable": alone, "Unschedulable": len(pending) - alone})
            text += "; Pending: " + ", ".join(sorted(f"{n} {kind}" for kind, n in kinds.items() if n))
        for task in self.session.sorted_tasks(list(job.fit_errors)):
            errors = job.fit_errors[task]
            return f"{text}. Origin reason is {self.session.task(task).name}: {errors.text(self.session.semantics)}"
        return text


class KubeBatchGang(Gang):
    """A job runs when its minimum can, as kube-batch counts it"""

    dialect = "kube-batch"
    says_scheduled = False

    def job_valid(self, job: Job) -> Reason | None:
        """Never asked in time there: a gang with too few pods is tried, and holds what it got until the cycle ends."""
        return None

    def job_order(self, job: Job) -> OrderKey:
        return self.job_ready(job)

    def job_ready(self, job: Job) -> bool:
        return job.ready_count >= job.min_member

    def job_missing(self, job: Job) -> int:
        return max(job.min_member - job.ready_count, 1)

    def job_pipelined(self, job: Job) -> Vote:
        return Vote.PERMIT if job.ready_count + job.counts[S.PIPELINED] >= job.min_member else Vote.REJECT

    def _above_minimum(self, candidates: Sequence[int]) -> list[int]:
        """Each candidate whose job could lose one and stay ready: several together may break it. A job of one has no gang."""
        jobs = ((c, self.session.job_of(c)) for c in candidates)
        return [c for c, job in jobs if job is not None and (job.min_member <= job.ready_count - 1 or job.min_member == 1)]

    def _conclude(self, job: Job) -> None:
        if not self.job_ready(job):
            self._tell_what_is_missing(job)
