"""The extension points of KAI's actions.

These actions treat a job as a tree of parts, order queues by their next job, and check a whole scenario before they evict. The
action that asks a point combines the answers; each protocol says how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from navarch.engine.gangs.gang_tree import GangTree, Part
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.order_key import OrderKey
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.model.resources import BoolArray, FloatArray, IntArray


class NodeSet(Struct, frozen=True):
    """Nodes that may hold a part of a job together. `scores` is added to the score of each node for this part and for the parts
    below it, unless those bring their own scores. A node whose score is NaN is not used."""

    nodes: BoolArray
    scores: FloatArray | None = None
    everywhere: bool = False
    """True if the set holds every node."""


class NoNodeSet(Struct, frozen=True):
    """No node set can hold the part: the reasons, in general and for each domain."""

    reasons: tuple[Reason, ...]


class Scenario(Struct, frozen=True):
    """The result of a search: the tasks to place, and the tasks to evict for them.

    `victims` are all evicted tasks by job, in order of eviction. `stays` are the victims that hold a node again in the end,
    because the search restored or moved them. `came_from` maps each victim to its node before the eviction. A task that the
    scenario names twice is in `victims` twice (`EvictedAgain`)."""

    job: Job
    tasks: Sequence[int]
    victims: Sequence[tuple[Job, Sequence[int]]]
    stays: frozenset[int]
    came_from: Mapping[int, int]


@runtime_checkable
class PartOrder(Protocol):
    """A sort key for the parts of one job. The smallest is placed first and evicted last."""

    def part_order(self, tree: GangTree, part: Part) -> OrderKey: ...


@runtime_checkable
class QueueRank(Protocol):
    """The order of queues where it depends on their next job. The first plugin that has this point is asked.

    Weights are additive. `queue_rank` gives a sort key; `waiting` is the weight of the tasks that the queue would place next,
    `leaving` the weight of the tasks that it would lose (victims are taken in reverse order). A key stays valid while
    `rank_version` is the same. `above` is the parent under which a queue competes with its siblings."""

    def weigh_waiting(self, tasks: Sequence[int]) -> FloatArray: ...

    def weigh_held(self, tasks: Sequence[int]) -> FloatArray: ...

    def queue_rank(self, queue: Queue, waiting: FloatArray | None, leaving: FloatArray | None) -> OrderKey: ...

    def rank_version(self, queue: Queue) -> int: ...

    def above(self, queue: Queue) -> Queue | None: ...


@runtime_checkable
class ChunkRefusal(Protocol):
    """Asked before tasks of a job are placed together. The first Reason refuses all of them."""

    def chunk_refusal(self, job: Job, tasks: Sequence[int]) -> Reason | None: ...


@runtime_checkable
class NodeBounds(Protocol):
    """The nodes on which the limits of the queue allow the task. None: all nodes. A node needs the consent of every plugin."""

    def within_bounds(self, job: Job, task: int) -> BoolArray | None: ...

    def bounds_reason(self, job: Job, task: int, node: int) -> Reason | None: ...


@runtime_checkable
class NominatedNode(Protocol):
    """One node that the task prefers, as (node row, added score)."""

    def nominated_node(self, task: int) -> tuple[int, float] | None: ...


@runtime_checkable
class IdleFitScore(Protocol):
    """The score that a node gains if the task fits its idle resources. Scores of all plugins are added."""

    def idle_fit_score(self) -> float: ...


@runtime_checkable
class SamePlace(Protocol):
    """Asked when a search evicted a task and places it on its own node again: is its placement there the same as before? If any
    plugin says no, the task counts as moved."""

    def same_place(self, task: int, node: int) -> bool: ...


@runtime_checkable
class NodeSets(Protocol):
    """The node sets that may hold a part of a job, best first. Each plugin splits the sets of the plugin before it."""

    def node_sets(self, job: Job, part: Part, tasks: Sequence[int], nodes: BoolArray) -> Sequence[NodeSet] | NoNodeSet: ...


@runtime_checkable
class DeviceOrder(Protocol):
    """Scores for the devices of a node: `device_score` for a shared one by its used fraction, `whole_score` for a whole one.
    Scores of all plugins are added."""

    def device_score(self, used: float) -> float: ...

    def whole_score(self) -> float: ...


@runtime_checkable
class DeviceChoice(Protocol):
    """Scores of the devices of one node for a task that takes a part of a device: one score a slot of `session.devices`, and one for a
    whole device. The engine adds them to the scores of `device_order`."""

    def device_scores(self, task: TaskClass, node: int) -> tuple[FloatArray, float]: ...


@runtime_checkable
class SearchStarted(Protocol):
    """Called before a search for victims starts for a job. Nothing is evicted for it at that time."""

    def search_started(self, job: Job) -> None: ...


@runtime_checkable
class EvictedAgain(Protocol):
    """Told that a scenario evicts a task once more that it has evicted already (`sign` is -1), or that this is taken back (1).
    The task and its node stay as they are."""

    def on_evicted_again(self, job: Job, task: int, node: int, sign: int) -> None: ...


@runtime_checkable
class MayReclaim(Protocol):
    """Asked before a job reclaims from other queues. The first plugin is asked; a Reason refuses."""

    def may_reclaim(self, job: Job, tasks: Sequence[int]) -> Reason | None: ...


@runtime_checkable
class MayPreempt(Protocol):
    """Asked before a job preempts inside its own queue. Any Reason refuses."""

    def may_preempt(self, job: Job, tasks: Sequence[int]) -> Reason | None: ...


@runtime_checkable
class ReclaimVictim(Protocol):
    """Whether this job of another queue can be a victim. Every plugin must agree."""

    def reclaim_victim(self, job: Job, tasks: Sequence[int], victim: Job) -> bool: ...


@runtime_checkable
class PreemptVictim(Protocol):
    """Whether this job of the same queue can be a victim. Every plugin must agree."""

    def preempt_victim(self, job: Job, victim: Job) -> bool: ...


@runtime_checkable
class ReclaimScenario(Protocol):
    """Whether a reclaim scenario is allowed. Every plugin must agree before anything is evicted."""

    def reclaim_scenario(self, scenario: Scenario) -> bool: ...


@runtime_checkable
class ReclaimBound(Protocol):
    """Whether `reclaim_scenario` can allow a scenario whose victims come from `victims` and hold, in sum and in every column, at
    least `lacking`. The search gives up when any plugin says no. A plugin may say no only if `reclaim_scenario` refuses every
    such scenario."""

    def reclaim_bound(self, job: Job, tasks: Sequence[int], victims: Sequence[Job], lacking: IntArray) -> bool: ...


@runtime_checkable
class PreemptScenario(Protocol):
    """Whether a preemption scenario inside a queue is allowed. Every plugin must agree before anything is evicted."""

    def preempt_scenario(self, scenario: Scenario) -> bool: ...


@runtime_checkable
class Unresolvable(Protocol):
    """A Reason if no eviction can make the task schedulable, because something is missing that no node provides. Its job is then
    left out of searches for victims."""

    def unresolvable_reason(self, task: int) -> Reason | None: ...


@runtime_checkable
class ScenarioGenerator(Protocol):
    """Names a scenario generator. A search tries the generators in policy order."""

    def scenario_generator(self) -> str: ...


GANG_POINTS: dict[str, type] = {
    "part_order": PartOrder,
    "queue_rank": QueueRank,
    "chunk_refusal": ChunkRefusal,
    "within_bounds": NodeBounds,
    "nominated_node": NominatedNode,
    "idle_fit_score": IdleFitScore,
    "same_place": SamePlace,
    "node_sets": NodeSets,
    "device_order": DeviceOrder,
    "device_choice": DeviceChoice,
    "search_started": SearchStarted,
    "evicted_again": EvictedAgain,
    "may_reclaim": MayReclaim,
    "may_preempt": MayPreempt,
    "reclaim_victim": ReclaimVictim,
    "preempt_victim": PreemptVictim,
    "reclaim_scenario": ReclaimScenario,
    "reclaim_bound": ReclaimBound,
    "preempt_scenario": PreemptScenario,
    "unresolvable_reason": Unresolvable,
    "scenario_generator": ScenarioGenerator,
}
