"""Extension points of schedulers that see jobs as trees, serve queues by what their next job would make of them, and prove a
whole scenario before anything is evicted. Combined by the actions that ask them, as each protocol says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from navarch.engine.gangs.gang_tree import GangTree, Part
from navarch.engine.job import Job
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.model.resources import BoolArray, FloatArray, IntArray

Key = Any


class NodeSet(Struct, frozen=True):
    """Nodes on which a part of a job may be put together. `scores` is added to every node's score there and in the parts
    below, unless they bring their own; a node without a score (NaN) is not used."""

    nodes: BoolArray
    scores: FloatArray | None = None
    everywhere: bool = False
    """All nodes are in it."""


class NoNodeSet(Struct, frozen=True):
    """A part of a job has nowhere to be put together: why, in general and domain by domain."""

    reasons: tuple[Reason, ...]


class Scenario(Struct, frozen=True):
    """What a search found: the tasks to be placed, and who would have to go for them.

    `victims` are all tasks that the scenario evicts, by job, in order of eviction; `stays` are those among them that hold a
    node all the same, because they were given back or moved; `came_from` the node that each stood on. A task that the scenario
    names twice is in `victims` twice (`EvictedAgain`)."""

    job: Job
    tasks: Sequence[int]
    victims: Sequence[tuple[Job, Sequence[int]]]
    stays: frozenset[int]
    came_from: Mapping[int, int]


@runtime_checkable
class PartOrder(Protocol):
    """A sort key for parts of one job, smaller is placed first and evicted last."""

    def part_order(self, tree: GangTree, part: Part) -> Key: ...


@runtime_checkable
class QueueRank(Protocol):
    """The order of queues where it depends on their next job. The first plugin that has one is asked.

    Weights are additive. `queue_rank` gives a sort key; `waiting` is the weight of what would be placed next in the queue,
    `leaving` of what would go from it (the order of victims is the reverse). It holds while `rank_version` stays. `above` is
    the queue below which a queue competes with its siblings."""

    def weigh_waiting(self, tasks: Sequence[int]) -> FloatArray: ...

    def weigh_held(self, tasks: Sequence[int]) -> FloatArray: ...

    def queue_rank(self, queue: Queue, waiting: FloatArray | None, leaving: FloatArray | None) -> Key: ...

    def rank_version(self, queue: Queue) -> int: ...

    def above(self, queue: Queue) -> Queue | None: ...


@runtime_checkable
class ChunkRefusal(Protocol):
    """May these tasks of a job be placed together? The first Reason refuses them."""

    def chunk_refusal(self, job: Job, tasks: Sequence[int]) -> Reason | None: ...


@runtime_checkable
class NodeBounds(Protocol):
    """Nodes on which the queue's bounds allow the task, where that differs between nodes; None: everywhere. All must agree."""

    def within_bounds(self, job: Job, task: int) -> BoolArray | None: ...

    def bounds_reason(self, job: Job, task: int, node: int) -> Reason | None: ...


@runtime_checkable
class FavouredNode(Protocol):
    """One node that a task favours, and what it adds to its score."""

    def favoured_node(self, task: int) -> tuple[int, float] | None: ...


@runtime_checkable
class RoomAtOnce(Protocol):
    """What a node's score gains where the task fits what is idle. Gains are added."""

    def room_at_once(self) -> float: ...


@runtime_checkable
class SamePlace(Protocol):
    """Would a task that was evicted in a search and is placed on its own node again sit there just as before? All must agree;
    if not, it counts as moved."""

    def same_place(self, task: int, node: int) -> bool: ...


@runtime_checkable
class NodeSets(Protocol):
    """The node sets on which a part of a job may be put together, best first. Each plugin splits the sets further."""

    def node_sets(self, job: Job, part: Part, tasks: Sequence[int], nodes: BoolArray) -> Sequence[NodeSet] | NoNodeSet: ...


@runtime_checkable
class DeviceOrder(Protocol):
    """Scores for the shared devices of a node by the part of each that is used, and for a whole device. Scores are added."""

    def device_score(self, used: float) -> float: ...

    def whole_score(self) -> float: ...


@runtime_checkable
class SearchStarted(Protocol):
    """Told before victims are looked for on behalf of a job, while nothing is evicted for it yet."""

    def search_started(self, job: Job) -> None: ...


@runtime_checkable
class EvictedAgain(Protocol):
    """Told that a scenario evicts a task once more that it has evicted already (`sign` is -1), or that this is taken back (1).
    The task and its node stay as they are."""

    def on_evicted_again(self, job: Job, task: int, node: int, sign: int) -> None: ...


@runtime_checkable
class MayReclaim(Protocol):
    """May the job take from other queues? The first plugin is asked; a Reason says no."""

    def may_reclaim(self, job: Job, tasks: Sequence[int]) -> Reason | None: ...


@runtime_checkable
class ReclaimVictim(Protocol):
    """Is this job of another queue worth looking at as a victim? All must agree."""

    def reclaim_victim(self, job: Job, tasks: Sequence[int], victim: Job) -> bool: ...


@runtime_checkable
class PreemptVictim(Protocol):
    """Is this job of the same queue worth looking at as a victim? All must agree."""

    def preempt_victim(self, job: Job, victim: Job) -> bool: ...


@runtime_checkable
class ReclaimScenario(Protocol):
    """May this be done? All must agree before anything is evicted."""

    def reclaim_scenario(self, scenario: Scenario) -> bool: ...


@runtime_checkable
class ReclaimBound(Protocol):
    """Could a scenario that takes from `victims` be allowed if the tasks that lose their place in it held, together and in every
    column, at least `lacking`? A search gives up on tasks for which any says no, so no may only be said where
    `reclaim_scenario` would refuse every such scenario."""

    def reclaim_bound(self, job: Job, tasks: Sequence[int], victims: Sequence[Job], lacking: IntArray) -> bool: ...


@runtime_checkable
class PreemptScenario(Protocol):
    """The same for preemption inside a queue."""

    def preempt_scenario(self, scenario: Scenario) -> bool: ...


@runtime_checkable
class Prepared(Protocol):
    """Can no eviction help the task, because something is missing that no node can give? A Reason keeps its job out of
    searches for victims."""

    def beyond_help(self, task: int) -> Reason | None: ...


@runtime_checkable
class ScenarioGenerator(Protocol):
    """Names a way to choose victims; searches try the ways in policy order."""

    def scenario_generator(self) -> str: ...


GANG_POINTS: dict[str, type] = {
    "part_order": PartOrder,
    "queue_rank": QueueRank,
    "chunk_refusal": ChunkRefusal,
    "within_bounds": NodeBounds,
    "favoured_node": FavouredNode,
    "room_at_once": RoomAtOnce,
    "same_place": SamePlace,
    "node_sets": NodeSets,
    "device_order": DeviceOrder,
    "search_started": SearchStarted,
    "evicted_again": EvictedAgain,
    "may_reclaim": MayReclaim,
    "reclaim_victim": ReclaimVictim,
    "preempt_victim": PreemptVictim,
    "reclaim_scenario": ReclaimScenario,
    "reclaim_bound": ReclaimBound,
    "preempt_scenario": PreemptScenario,
    "beyond_help": Prepared,
    "scenario_generator": ScenarioGenerator,
}
