"""The extension points: one small protocol each, which says when it is called and what the answers mean.

A plugin implements a point by having its method; the session finds it there, minds the policy's switch for it, and combines
the answers of all plugins (`combine`). Candidates, tasks and victims are task rows; `session.task(row)` gives the pod.

Filters, scores, events and the orders of jobs and tasks hold for every action that deals with gangs; the other points here are those
of batch work (allocate, backfill, preempt, ...), those in `gang_points` those of KAI's actions. kube-scheduler's `schedule` minds
filters, scores and events.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from navarch.engine.gangs.subjobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.points.gang_protocols import GANG_POINTS
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.model.resources import IntArray

Key = Any
"""Anything that compares with its own kind; smaller comes first."""


class Purpose(IntEnum):
    """What a search for domains is for."""

    ALLOCATE = 0
    EVICT = 1


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Change(Struct, frozen=True):
    """Tasks of one job and one shape that got a node, a promise of one, or lost it. `undone`: a statement was taken back."""

    job: Job
    tasks: Sequence[int]
    nodes: Sequence[int]
    task: TaskClass
    total: IntArray
    """(R,): what they ask for together."""
    pipelined: bool = False
    undone: bool = False
    view: bool = True
    """Whether the node as its pods will be (`Figures.requested`, ports, pod counts) follows this change."""


@runtime_checkable
class QueueOrder(Protocol):
    """Which queue is served first. Negative: `left`; zero: no opinion. The first plugin with an opinion decides."""

    def queue_order(self, left: Queue, right: Queue) -> int: ...


@runtime_checkable
class VictimQueueOrder(Protocol):
    """Whose pods are evicted first when `preemptor` needs room. Without any, the reverse of the queue order."""

    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int: ...


@runtime_checkable
class JobOrder(Protocol):
    """A sort key for jobs of one queue, smaller first. Keys of all plugins are compared in policy order. A plugin class whose keys
    for jobs that hold nothing depend on their specs alone may say so by a static method `waiting_order(spec, given)`."""

    def job_order(self, job: Job) -> Key: ...


@runtime_checkable
class SubJobOrder(Protocol):
    """A sort key for the sub-groups of one job, smaller first."""

    def sub_job_order(self, sub_job: SubJob) -> Key: ...


@runtime_checkable
class TaskOrder(Protocol):
    """A sort key for tasks, smaller first; the reverse is the order of eviction."""

    def task_order(self, task: int) -> Key: ...


@runtime_checkable
class JobValid(Protocol):
    """Asked before a job takes part in an action, whichever places or evicts. A Reason keeps it out and becomes its condition."""

    def job_valid(self, job: Job) -> Reason | None: ...


@runtime_checkable
class JobEnqueueable(Protocol):
    """May a pending job be admitted? A Reason is a rejection; see `combine.votes` for how votes meet."""

    def job_enqueueable(self, job: Job) -> Vote | Reason: ...


@runtime_checkable
class JobEnqueued(Protocol):
    """Told of each job that was admitted."""

    def job_enqueued(self, job: Job) -> None: ...


@runtime_checkable
class JobReady(Protocol):
    """Has the job enough to start? All must agree; then its statement is committed."""

    def job_ready(self, job: Job) -> bool: ...


@runtime_checkable
class JobMissing(Protocol):
    """A lower bound on how many further placements `job_ready` waits for: lets equal tasks be placed in one step."""

    def job_missing(self, job: Job) -> int: ...


@runtime_checkable
class JobPipelined(Protocol):
    """Will the job have enough once what is being released is free?"""

    def job_pipelined(self, job: Job) -> Vote: ...


@runtime_checkable
class SubJobReady(Protocol):
    """Has the sub-group enough to start? All must agree."""

    def sub_job_ready(self, sub_job: SubJob) -> bool: ...


@runtime_checkable
class SubJobMissing(Protocol):
    """A lower bound on how many further placements `sub_job_ready` waits for."""

    def sub_job_missing(self, sub_job: SubJob) -> int: ...


@runtime_checkable
class SubJobPipelined(Protocol):
    """Will the sub-group have enough once what is being released is free?"""

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote: ...


@runtime_checkable
class JobStarving(Protocol):
    """May the job evict others to get what it lacks?"""

    def job_starving(self, job: Job) -> bool: ...


@runtime_checkable
class JobTurn(Protocol):
    """Jobs take turns in `allocate`, in order. A Reason from `turn_refusal` passes a job over in this cycle. `turn_failed` is told
    of a job that had its turn and neither started nor was promised room."""

    def turn_refusal(self, job: Job) -> Reason | None: ...

    def turn_failed(self, job: Job) -> None: ...


@runtime_checkable
class Overused(Protocol):
    """The queue has its due: a Reason keeps its jobs from `allocate` and from taking of other queues in this cycle. Pods without
    requests and preemption inside the queue are not asked about; `job_valid` keeps jobs out of everything."""

    def overused(self, queue: Queue) -> Reason | None: ...


@runtime_checkable
class Allocatable(Protocol):
    """How many of `count` such tasks may the queue take on now? A Reason says none, and why."""

    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> int | Reason: ...


@runtime_checkable
class Preemptive(Protocol):
    """May the queue reclaim from others for this task? A Reason says no."""

    def preemptive(self, queue: Queue, task: TaskClass) -> Reason | None: ...


@runtime_checkable
class Preemptable(Protocol):
    """Which candidates (one node's, in the preemptor's queue) may be evicted for the task. None: no opinion."""

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None: ...


@runtime_checkable
class Reclaimable(Protocol):
    """Which candidates of other queues may be evicted for the task. None: no opinion."""

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None: ...


@runtime_checkable
class UnifiedEvictable(Protocol):
    """As above for whole-gang eviction; `reclaim` tells across queues from inside one."""

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None: ...


@runtime_checkable
class VictimTasks(Protocol):
    """Running tasks that had better go, whoever needs the room (shuffle)."""

    def victim_tasks(self, candidates: Sequence[int]) -> list[int] | None: ...


@runtime_checkable
class NodeFilters(Protocol):
    """Filters of this plugin, made when the session opens. Switched by `predicate`."""

    def node_filters(self) -> list[NodeFilter]: ...


@runtime_checkable
class NodeScorers(Protocol):
    """Scores of this plugin, made when the session opens. Switched by `node_order`."""

    def node_scorers(self) -> list[NodeScorer]: ...


@runtime_checkable
class HyperNodeOrder(Protocol):
    """How good each of these domains (numbers in the tree of HyperNodes) is for a sub-group that fits in it: higher is better.
    Scores of all plugins are added."""

    def hyper_node_order(self, sub_job: SubJob, domains: Sequence[int]) -> Sequence[float]: ...


@runtime_checkable
class HyperNodeGradient(Protocol):
    """Which domains inside `root` to look at for a job or one of its sub-groups: lists of equal worth, best list first; the first
    list with a solution decides. An empty answer: nowhere. The first plugin that has this point answers; without any it is `root`."""

    def hyper_node_gradient_for_job(self, job: Job, root: int, purpose: Purpose) -> list[list[int]]: ...

    def hyper_node_gradient_for_sub_job(self, sub_job: SubJob, root: int, purpose: Purpose) -> list[list[int]]: ...


@runtime_checkable
class PrePredicate(Protocol):
    """A word on the task before any node is looked at. A Reason refuses it everywhere. Switched by `predicate`."""

    def pre_predicate(self, task: TaskClass) -> Reason | None: ...


@runtime_checkable
class AllocateEvents(Protocol):
    """Told of every placement, promise and eviction, and of each that is undone, as it happens in the session."""

    def on_allocate(self, change: Change) -> None: ...

    def on_deallocate(self, change: Change) -> None: ...


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
    **GANG_POINTS,
}
"""Point -> protocol. The switch in a policy file that governs each is in `policy.points`."""

SWITCH: dict[str, str] = {
    "node_filters": "predicate",
    "node_scorers": "node_order",
    "job_missing": "job_ready",
    "sub_job_missing": "sub_job_ready",
}
"""Points whose switch has another name."""


_answers: dict[type, tuple[str, ...]] = {}


def answers(plugin: type) -> tuple[str, ...]:
    """The points at which a plugin class answers."""
    found = _answers.get(plugin)
    if found is None:
        points = (n for n, protocol in POINTS.items() if all(callable(getattr(plugin, m, None)) for m in _methods(protocol)))
        found = _answers[plugin] = tuple(points)
    return found


def _methods(protocol: type) -> list[str]:
    return [name for name, value in vars(protocol).items() if not name.startswith("_") and callable(value)]
