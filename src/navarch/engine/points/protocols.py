"""The extension points: one small protocol each, which says when it is called and what the answers mean.

A plugin implements a point by having its methods. The plugin runner finds the plugins of a point, skips those that the policy
switches off there, and combines the answers (`combine`). Candidates, tasks and victims are task rows; `session.task(row)` gives
the pod.

All actions that place gangs use filters, scores, events and the orders of jobs and tasks. The actions for batch work (allocate,
backfill, preempt, ...) ask the other points of this module; KAI's actions ask those of `gang_protocols`. kube-scheduler's
`schedule` asks only for filters, scores and events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from math import inf
from typing import Protocol, runtime_checkable

from msgspec import Struct

from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.points.gang_protocols import GANG_POINTS
from navarch.engine.points.order_key import OrderKey
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.record import QueueFigures
from navarch.engine.victims.owed import QueueShares
from navarch.model.resources import BoolArray, IntArray


class Purpose(IntEnum):
    """The purpose of a search for domains."""

    ALLOCATE = 0
    EVICT = 1


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Change(Struct, frozen=True):
    """Tasks of one job and one class that were placed on nodes, promised nodes, or removed from them. `undone`: a statement undoes
    an earlier change."""

    job: Job
    tasks: Sequence[int]
    nodes: Sequence[int]
    task: TaskClass
    total: IntArray
    """(R,): the sum of what they count for in the accounts of jobs and queues (`TaskClass.charge`)."""
    pipelined: bool = False
    undone: bool = False
    view: bool = True
    """Whether the node's view of its future pods (`Figures.requested`, ports, pod counts) changes too."""


class EachChange(Struct, frozen=True):
    """One task of each of several jobs of one queue, `tasks[i]` of `jobs[i]`: placed in one step, or `undone`."""

    jobs: Sequence[Job]
    tasks: Sequence[int]
    nodes: Sequence[int]
    classes: Sequence[TaskClass]
    total: IntArray
    """As in `Change`, the sum over all tasks."""
    undone: bool = False

    def changes(self) -> list[Change]:
        """One change a task, in the order of the moves."""
        moves = zip(self.jobs, self.tasks, self.nodes, self.classes)
        found = [Change(job, [task], [node], kind, kind.charge, undone=self.undone) for job, task, node, kind in moves]
        return found[::-1] if self.undone else found


@runtime_checkable
class QueueOrder(Protocol):
    """Which queue is served first. Negative: `left`; positive: `right`; zero: no preference. The first preference decides."""

    def queue_order(self, left: Queue, right: Queue) -> int: ...


@runtime_checkable
class VictimQueueOrder(Protocol):
    """Which queue loses pods first when `preemptor` needs resources. Without a preference, the reverse of the queue order."""

    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int: ...


@runtime_checkable
class JobOrder(Protocol):
    """A sort key for jobs of one queue, smaller first. Keys of all plugins are compared in policy order. A plugin class whose keys
    for jobs that hold nothing depend on their specs alone may say so by a static method `waiting_order(spec, given)`."""

    def job_order(self, job: Job) -> OrderKey: ...


@runtime_checkable
class SubJobOrder(Protocol):
    """A sort key for the sub-groups of one job, smaller first."""

    def sub_job_order(self, sub_job: SubJob) -> OrderKey: ...


@runtime_checkable
class TaskOrder(Protocol):
    """A sort key for tasks, smaller first; the reverse is the order of eviction."""

    def task_order(self, task: int) -> OrderKey: ...


@runtime_checkable
class JobValid(Protocol):
    """Asked before an action places or evicts for a job. A Reason excludes the job and becomes its condition."""

    def job_valid(self, job: Job) -> Reason | None: ...


@runtime_checkable
class JobEnqueueable(Protocol):
    """Whether a pending job is admitted. A Reason is a rejection; `combine.votes` combines the votes. While `session.beyond_shares` is
    set, idle resources are offered to jobs that were not admitted: only hard limits count, not what other jobs were admitted for."""

    def job_enqueueable(self, job: Job) -> Vote | Reason: ...


@runtime_checkable
class JobEnqueued(Protocol):
    """Called for each job that was admitted."""

    def job_enqueued(self, job: Job) -> None: ...


@runtime_checkable
class JobReady(Protocol):
    """Whether the job has enough tasks placed to start. When every plugin agrees, its statement is committed."""

    def job_ready(self, job: Job) -> bool: ...


@runtime_checkable
class JobMissing(Protocol):
    """A lower bound on the further placements that `job_ready` needs. It lets the engine place equal tasks in one step."""

    def job_missing(self, job: Job) -> int: ...


@runtime_checkable
class JobPipelined(Protocol):
    """Whether the job has enough tasks placed or promised to start once the resources in release are free."""

    def job_pipelined(self, job: Job) -> Vote: ...


@runtime_checkable
class SubJobReady(Protocol):
    """Whether the sub-group has enough tasks placed to start. Every plugin must agree."""

    def sub_job_ready(self, sub_job: SubJob) -> bool: ...


@runtime_checkable
class SubJobMissing(Protocol):
    """A lower bound on the further placements that `sub_job_ready` needs."""

    def sub_job_missing(self, sub_job: SubJob) -> int: ...


@runtime_checkable
class SubJobPipelined(Protocol):
    """Whether the sub-group has enough tasks placed or promised to start once the resources in release are free."""

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote: ...


@runtime_checkable
class JobStarving(Protocol):
    """Whether the job may evict others to get the resources it lacks."""

    def job_starving(self, job: Job) -> bool: ...


@runtime_checkable
class JobTurn(Protocol):
    """Jobs take turns in `allocate`, in order. A Reason from `turn_refusal` passes a job over in this cycle. `turn_failed` is told
    of a job that had its turn and neither started nor was promised room."""

    def turn_refusal(self, job: Job) -> Reason | None: ...

    def turn_failed(self, job: Job) -> None: ...


@runtime_checkable
class Overused(Protocol):
    """Whether the queue has its share already. A Reason excludes its jobs from `allocate` and `reclaim` in this cycle. It does not
    affect pods without requests or preemption inside the queue; use `job_valid` to exclude a job from every action. While
    `session.beyond_shares` is set, what shares leave over is offered: only hard limits count."""

    def overused(self, queue: Queue) -> Reason | None: ...


@runtime_checkable
class Allocatable(Protocol):
    """How many of `count` such tasks the queue may take now. A Reason means none. While `session.beyond_shares` is set, only hard
    limits count."""

    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> int | Reason: ...


@runtime_checkable
class Preemptive(Protocol):
    """Asked before the queue reclaims from other queues for this task. A Reason refuses."""

    def preemptive(self, queue: Queue, task: TaskClass) -> Reason | None: ...


@runtime_checkable
class Preemptable(Protocol):
    """Which candidates may be evicted for the task. They are on one node and in the preemptor's queue. None: no opinion."""

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None: ...


@runtime_checkable
class Reclaimable(Protocol):
    """Which candidates of other queues may be evicted for the task. None: no opinion."""

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None: ...


@runtime_checkable
class UnifiedEvictable(Protocol):
    """Which candidates may be evicted for a whole gang. `reclaim` is true across queues, false inside one. None: no opinion."""

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None: ...


@runtime_checkable
class VictimTasks(Protocol):
    """Running tasks that `shuffle` evicts. None: no opinion."""

    def victim_tasks(self, candidates: Sequence[int]) -> list[int] | None: ...


@runtime_checkable
class NodeFilters(Protocol):
    """The filters of this plugin. Asked once, when the session opens. Switched by `predicate`."""

    def node_filters(self) -> list[NodeFilter]: ...


@runtime_checkable
class NodeScorers(Protocol):
    """The scorers of this plugin. Asked once, when the session opens. Switched by `node_order`."""

    def node_scorers(self) -> list[NodeScorer]: ...


@runtime_checkable
class HyperNodeOrder(Protocol):
    """A score for each of these domains (numbers in the HyperNode tree), all of which can hold the sub-group. Higher is better.
    Scores of all plugins are added."""

    def hyper_node_order(self, sub_job: SubJob, domains: Sequence[int]) -> Sequence[float]: ...


@runtime_checkable
class HyperNodeGradient(Protocol):
    """Which domains inside `root` to try for a job or one of its sub-groups. The answer is a list of lists, best list first;
    domains in one list are equally good. The first list with a solution is used. An empty answer means no domain. The first
    plugin that has this point answers; without one, `root` is the only domain."""

    def hyper_node_gradient_for_job(self, job: Job, root: int, purpose: Purpose) -> list[list[int]]: ...

    def hyper_node_gradient_for_sub_job(self, sub_job: SubJob, root: int, purpose: Purpose) -> list[list[int]]: ...


@runtime_checkable
class PrePredicate(Protocol):
    """Asked for a task before any node is filtered. A Reason refuses the task on all nodes. Switched by `predicate`."""

    def pre_predicate(self, task: TaskClass) -> Reason | None: ...


@runtime_checkable
class AllocateEvents(Protocol):
    """Called for every placement, promise and eviction in the session, and for each one that is undone. Placements of many jobs in one
    step come job by job, unless the class has a method `on_allocate_each(change: EachChange)` too."""

    def on_allocate(self, change: Change) -> None: ...

    def on_deallocate(self, change: Change) -> None: ...


class AllocateEachEvents(AllocateEvents, Protocol):
    """`AllocateEvents` that takes the placements of many jobs in one step as one change."""

    def on_allocate_each(self, change: EachChange) -> None: ...


class FeasibleAnswer(Struct, frozen=True):
    """What is left of feasible nodes. `refusals`: node row -> the reason, and whether no eviction could change it. `error`: the
    attempt at the task fails."""

    feasible: BoolArray
    refusals: Mapping[int, tuple[str, bool]]
    error: str = ""


@runtime_checkable
class FeasibleNodes(Protocol):
    """Asked by `schedule` after all filters, about the nodes that they leave for a task. What it refuses is not used."""

    def filter_feasible(self, task: TaskClass, feasible: BoolArray) -> FeasibleAnswer: ...


@runtime_checkable
class PreemptionReview(Protocol):
    """Asked by `schedule` after its search for victims: node row -> the victims there, and how many of them break a disruption
    budget. Returns the nodes that stay, with their victims. A text: the preemption fails."""

    def review_preemption(
        self, row: int, victims: Mapping[int, tuple[Sequence[int], int]]
    ) -> Mapping[int, tuple[Sequence[int], int]] | str: ...


@runtime_checkable
class QueuesOwed(Protocol):
    """What each queue is owed of the cluster, and which queues stand above it: who may evict whom in strict mode follows from it
    (`engine/victims/eviction_rule.py`). It must not depend on what queues hold. The first plugin that has it answers; without one,
    queues are owed nothing, and no job evicts another of another queue."""

    def queues_owed(self) -> QueueShares: ...


@runtime_checkable
class QueueReport(Protocol):
    """A queue's deserved, allocated and requested amounts as this plugin counts them, for the record of the cycle. Called for every
    queue after the plugins closed. The first plugin that implements it answers; without one, the engine reports its own sums."""

    def queue_figures(self, queue: Queue) -> QueueFigures: ...


class HardLimit(Struct, eq=False):
    """One bound on what the jobs of a queue, or of a part of the tree, hold. `left`: how much more of each bounded resource may be
    held. `asked(task)`: resource -> what the task takes of it. `told(resource, asked, left)`: the refusal, as a sentence."""

    left: dict[str, float]
    asked: Callable[[int], dict[str, float]]
    told: Callable[[str, float, float], str]
    code: str = "QueueLimit"

    def lacking(self, amounts: dict[str, float]) -> str:
        """A resource of which less is left; empty: none."""
        left = self.left
        return next((name for name, amount in amounts.items() if amount > left.get(name, inf)), "")


@runtime_checkable
class HardLimits(Protocol):
    """Bounds on what a queue holds that new nodes do not raise, as far as they bind this job, its own queue first: the same for all
    jobs of a queue that can, or cannot, be preempted. Asked after the plugins closed. Jobs under one bound get the same object
    (`engine/hard_limits.py`)."""

    def hard_limits(self, job: Job) -> Sequence[HardLimit]: ...


POINTS: dict[str, type] = {
    "queue_order": QueueOrder,
    "victim_queue_order": VictimQueueOrder,
    "job_order": JobOrder,
    "sub_job_order": SubJobOrder,
    "task_order": TaskOrder,
    "job_valid": JobValid,
    "job_enqueueable": JobEnqueueable,
    "job_enqueued": JobEnqueued,
    "job_ready": JobReady,
    "job_missing": JobMissing,
    "job_pipelined": JobPipelined,
    "sub_job_ready": SubJobReady,
    "sub_job_missing": SubJobMissing,
    "sub_job_pipelined": SubJobPipelined,
    "job_starving": JobStarving,
    "job_turn": JobTurn,
    "overused": Overused,
    "allocatable": Allocatable,
    "preemptive": Preemptive,
    "preemptable": Preemptable,
    "reclaimable": Reclaimable,
    "unified_evictable": UnifiedEvictable,
    "victim_tasks": VictimTasks,
    "node_filters": NodeFilters,
    "node_scorers": NodeScorers,
    "hyper_node_order": HyperNodeOrder,
    "hyper_node_gradient": HyperNodeGradient,
    "pre_predicate": PrePredicate,
    "events": AllocateEvents,
    "feasible_nodes": FeasibleNodes,
    "preemption_review": PreemptionReview,
    "queues_owed": QueuesOwed,
    "queue_figures": QueueReport,
    "hard_limits": HardLimits,
    **GANG_POINTS,
}
"""Name -> protocol. `policy.point_switches` has the key in a policy file that switches each."""

PREFERENCES = frozenset(
    ["queue_order", "victim_queue_order", "job_order", "sub_job_order", "task_order", "node_scorers", "hyper_node_order"]
)
"""Points that only say what is better. A cycle without them places nothing where it must not be."""

_implemented: dict[type, tuple[str, ...]] = {}


def implemented_points(plugin: type) -> tuple[str, ...]:
    """Names of the points that a plugin class implements: it has every method of the protocol. Computed once a class."""
    found = _implemented.get(plugin)
    if found is None:
        points = (n for n, protocol in POINTS.items() if all(callable(getattr(plugin, m, None)) for m in methods(protocol)))
        found = _implemented[plugin] = tuple(points)
    return found


def methods(protocol: type) -> list[str]:
    """Names of the methods that a plugin needs to implement this point."""
    return [name for name, value in vars(protocol).items() if not name.startswith("_") and callable(value)]
