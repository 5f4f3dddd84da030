"""What the condition PodScheduled of a waiting pod gives as its reason, by the code of what refuses it.

Autoscalers buy nodes for pods whose reason is `Unschedulable`, and for no others. So a pod says `Unschedulable` if and only if it
would run now if suitable nodes were added. Every other pod names what stands in its way.

The table has every code that Navarch gives a refusal (docs/autoscaling.md says why each stands where it does). A code that is not in
it is a plugin's own: a job that such a plugin refuses says that code, because nodes do not change a rule that nobody here knows; a
node that such a filter refuses is one node, and another may suit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from navarch.engine.reasons import Reason, dominant
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.job import Job
    from navarch.engine.session import Session

UNSCHEDULABLE = "Unschedulable"
PROMISED = "Schedulable"
"""Only beside a nominated node: autoscalers leave pods alone that have one."""
GATED = "SchedulingGated"
NOT_TRIED = "Skipped"
TOO_FEW_PODS = "NotEnoughTasks"
QUEUE_LIMIT = "QueueLimit"
_FAILED = "SchedulerError"
_WITHOUT_NODE = (TaskStatus.PENDING, TaskStatus.PIPELINED)

_SAYS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            # no room
            UNSCHEDULABLE,
            "NeverStarts",
            "PodSchedulingErrors",
            "GpuNotShared",
            "NoHyperNode",
            "NoTopologyDomain",
            # only a share is used up, or the cluster is full
            "ClusterFull",
            "ClusterOverused",
            "OverFairShare",
            "QueueOverDeserved",
            "QueueOverused",
            # only evicting others is not allowed, or not yet
            "PreemptionDelay",
            "VictimsProtected",
            # room is promised, to this job or to another
            "BehindFirstJob",
            "NotReserved",
            "Reserved",
            "ReservedAfter",
            "ReservedForAnother",
            # what single nodes say
            "DynamicResources",
            "ExistingPodsAntiAffinity",
            "Gpu",
            "GpuKind",
            "GpuMemory",
            "GpuMemoryKnown",
            "GpuNumber",
            "GpuUnknown",
            "InsufficientResources",
            "NoRoom",
            "LegacySlices",
            "NUMA",
            "NodeAffinity",
            "NodeCondition",
            "NodeDeclaredFeatures",
            "NodeGroup",
            "NodeGroupLimit",
            "NodeLoad",
            "NodeName",
            "NodePorts",
            "NodeUnschedulable",
            "NodeVolumeLimits",
            "Numa",
            "NumaPolicy",
            "PodAffinity",
            "PodAntiAffinity",
            "PodNumber",
            "PodTopologySpread",
            "PodTopologySpreadLabel",
            "Proportional",
            "RevocableZone",
            "TaintToleration",
            "Vgpu",
            "VgpuMode",
            "VgpuType",
            "VgpuUnknown",
            "VolumeBinding",
            "VolumeRestrictions",
            "VolumeZone",
            "WorkerKind",
        ),
        UNSCHEDULABLE,
    ),
    **dict.fromkeys((QUEUE_LIMIT, "OverLimit", "QueueDeviceQuota"), QUEUE_LIMIT),
    **dict.fromkeys((_FAILED, "ExtenderFailed", "InternalError", "PluginFailed"), _FAILED),
    **dict.fromkeys((NOT_TRIED, "NotReached"), NOT_TRIED),
    "KeptForAnother": "NotReserved",
    **{
        code: code
        for code in (
            # an object is missing, closed, or not for this job
            "ClaimUnusable",
            "ConfigMapNotFound",
            "PodGroupNotFound",
            "QueueClosed",
            "QueueDoesNotExist",
            "QueueNotFound",
            "QueueNotLeaf",
            "QueueNotPermitted",
            "QueueTreeInvalid",
            "TopologyLevelNotFound",
            "TopologyNotFound",
            "VolumeUnusable",
            # pods are missing, or wait for others
            TOO_FEW_PODS,
            "NotEnoughPodsOfTask",
            "NotReady",
            GATED,
            # hard bounds that are not the limit of a queue
            "NonPreemptibleOverQuota",
            "QueueQuotaInsufficient",
            "QuotaExceeded",
            # what somebody else has to change
            "ExtenderRefused",
            "NoNodeInShard",
            "NotAdmitted",
            "StaleCards",
            "UnservedCards",
            "Unsupported",
            # tried again soon
            "SearchCutShort",
        )
    },
}


def pod_reason(code: str, unknown: str = "") -> str:
    """What a pod gives as its reason if a refusal with this code keeps it waiting. `unknown`: for codes that are not Navarch's; empty:
    the code itself.

    >>> pod_reason("OverFairShare"), pod_reason("OverLimit"), pod_reason("QueueClosed"), pod_reason("QuietHours")
    ('Unschedulable', 'QueueLimit', 'QueueClosed', 'QuietHours')
    """
    return _SAYS.get(code) or unknown or code or NOT_TRIED


def known_codes() -> frozenset[str]:
    """The codes of the table."""
    return frozenset(_SAYS)


def obstacle(reasons: Iterable[Reason]) -> Reason | None:
    """Of these reasons the first to tell that no node would undo."""
    lasting = [reason for reason in reasons if pod_reason(reason.origin) != UNSCHEDULABLE]
    return dominant(lasting) if lasting else None


def node_obstacle(codes: Iterable[str]) -> str:
    """The same for the codes of one pod that no node takes: one of these that holds on every node, also on new ones. Empty: none."""
    return next((said for code in codes if (said := pod_reason(code, UNSCHEDULABLE)) != UNSCHEDULABLE), "")


class WaitingPods:
    """What the waiting pods of one job say at the end of a cycle. A gang waits as a whole: as long as it holds less than its minimum,
    what keeps it from its minimum is what each of its pods says."""

    def __init__(self, session: Session, job: Job) -> None:
        self._session = session
        self._own = {
            task: node_obstacle(errors.codes) or UNSCHEDULABLE
            for task, errors in job.fit_errors.items()
            if session.status[task] == TaskStatus.PENDING
        }
        """Of pods that no node took in this cycle."""
        self._has_minimum = job.ready_count >= job.min_member
        self.lasting: Reason | None = None
        """Of the job's reasons the first to tell that no node would undo."""
        self.of_job = self._find(job)
        """What a pod says that has no refusal of its own."""

    def reason(self, task: int, status: int) -> str:
        """Of one waiting pod without gates. `status`: its TaskStatus."""
        session = self._session
        if status == TaskStatus.PIPELINED:
            stands = task in session.promised_by_eviction or session.task(task).nominated_node
            return PROMISED if stands else UNSCHEDULABLE
        own = self._own.get(task, self.of_job)
        return own if self._has_minimum or self.of_job == UNSCHEDULABLE else self.of_job

    def _find(self, job: Job) -> str:
        waiting = job.tasks_in(*_WITHOUT_NODE)
        if self._session.any_gated:
            gated = self._session.snapshot.tasks.gated
            waiting = [task for task in waiting if not gated[task]]
        if job.ready_count + len(waiting) < job.min_member:
            self.lasting = obstacle(job.reasons)
            return pod_reason(self.lasting.origin) if self.lasting is not None else TOO_FEW_PODS
        self._own.update(self._rejected(waiting))
        stuck = {task: said for task, said in self._own.items() if said != UNSCHEDULABLE}
        self.lasting = obstacle(job.reasons)
        if stuck and self.lasting is not None:  # those of single pods are among the reasons of the job
            self.lasting = obstacle(reason for reason in job.reasons if pod_reason(reason.origin) not in stuck.values())
        if self.lasting is not None:
            return pod_reason(self.lasting.origin)
        if stuck and job.ready_count + len(waiting) - len(stuck) < max(job.min_member, 1):
            return min(stuck.values())
        tried = job.reasons or job.fit_errors or job.last_undone or not job.counts[TaskStatus.PENDING]
        return UNSCHEDULABLE if tried else NOT_TRIED

    def _rejected(self, tasks: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Of tasks for which no node was looked at, because their job was refused before: those whose claims no node can serve."""
        session = self._session
        for task in tasks:
            shape = session.task(task).shape
            if (shape.volumes is None and not shape.claims) or task in self._own:
                continue
            refusal = session.pre_predicate(session.class_of(task))
            if refusal is not None and (said := node_obstacle((refusal.origin,))):
                yield task, said
