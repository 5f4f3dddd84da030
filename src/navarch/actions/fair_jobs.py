"""What the actions over a tree of queues share: which jobs take part, and how a failure is noted."""

from __future__ import annotations

from navarch.actions.placing import Placing
from navarch.engine.action import Action
from navarch.engine.fit import FitErrors
from navarch.engine.job import Job
from navarch.engine.lifetimes import Lifetimes
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session

_ROOM = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)
_NO_NODES = "no nodes with enough resources were found"
_NAMES = {"cpu": "CPU cores", "memory": "memory", "nvidia.com/gpu": "GPUs", "amd.com/gpu": "GPUs"}


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
        found = []
        for job in self.session.jobs_with_pending():
            if not job.tree.has_pending or _tried(job):
                continue
            if not job.tree.could_start():
                job.refuse(_not_ready(job))
            elif not delayed and not self.session.shared(Lifetimes).waited(job):
                job.refuse(_delayed(job))
            else:
                found.append(job)
        return found


def _tried(job: Job) -> bool:
    """A job that asked to be tried once has been, as its condition says."""
    return job.spec.tried_once and any(c.type == "UnschedulableOnNodePool" and c.status == "True" for c in job.spec.conditions)


def _not_ready(job: Job) -> Reason:
    gated = sum(1 for task in job.tasks if job.session.snapshot.tasks.gated[task])
    needed = sum(job.tree.required(leaf) for leaf in job.tree.leaves)
    text = f"Waiting for {needed} pods, currently {len(job.tasks)} exist, {gated} are gated"
    return Reason("NotReady", text, undone_by=(Event.POD_CHANGED, Event.JOB_CHANGED))


def _delayed(job: Job) -> Reason:
    text = f"Workload is within its preemption delay window ({job.spec.preemption_delay:g}s) and may not trigger evictions"
    return Reason("PreemptionDelay", text, undone_by=(Event.TIME_PASSED,))


def note_failure(job: Job, placing: Placing) -> None:
    """Say on the job, in words that its users know, why its next tasks found no place."""
    if placing.failed is None:
        return
    task, why = placing.failed
    if task < 0:
        assert isinstance(why, Reason)
        job.refuse(why)
        return
    text = why.message if isinstance(why, Reason) else _no_nodes(why)
    leaf = job.tree.leaf_of(task)
    needed = 0 if leaf is None else job.tree.required(leaf)
    pod = job.session.task(task).key
    if needed > 1 and leaf is not None and not job.tree.satisfied(leaf):
        found = f"Resources were found for {placing.placed} pods"
        if job.spec.sub_groups:
            found += f" from all sub-groups while sub-group {leaf.name} requires {needed} pods for gang scheduling. "
            text = f"{found}Additional pods cannot be scheduled in this sub-group due to: {text}"
        else:
            found += f" while {needed} are required for gang scheduling. "
            text = f"{found}Additional pods cannot be scheduled due to: {text}"
    else:
        text = f"Resources were not found for pod {pod} due to: {text}"
    nodes = why.nodes if isinstance(why, FitErrors) else {}
    job.fit_errors[task] = FitErrors(len(nodes), message=text)
    job.refuse(Reason("PodSchedulingErrors", text, nodes, undone_by=_ROOM if nodes else why_undone(why)))


def why_undone(why: FitErrors | Reason) -> tuple[Event, ...]:
    return why.undone_by if isinstance(why, Reason) else _ROOM


def _no_nodes(errors: FitErrors) -> str:
    """How many nodes lack what."""
    parts = [f"{count} {_lacks(reason)}." for reason, count in sorted(errors.nodes.items())]
    return " \n".join(["no nodes with enough resources were found: " + parts[0], *parts[1:]]) if parts else _NO_NODES


def _lacks(reason: str) -> str:
    name = reason.removeprefix("Insufficient ")
    if name == reason:
        return reason
    if name.startswith("nvidia.com/mig-"):
        return f"node(s) didn't have enough of mig profile: {name}"
    return f"node(s) didn't have enough resources: {_NAMES.get(name, name)}"
