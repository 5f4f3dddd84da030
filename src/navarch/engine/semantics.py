"""The neutral switches of a cycle: each names a behaviour, none names the system that has it.

The defaults are strict mode: what reads like AND is AND, what was undone is undone entirely, one mistake disables only
what it concerns. A policy's `compat` picks another set from the table in `policy/compat.py`; the engine, the actions
and the plugins read the switches and never the `compat` itself. Add a switch where a decision needs one, with a sentence
that tells a reader of `navarch policy check` what another value than the strict one does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeVar

Value = TypeVar("Value", bool, str, float)


def switch(strict: Value, otherwise: str) -> Value:
    """A field whose default is strict mode's value; `otherwise` says what any other value means."""
    value: Value = field(default=strict, metadata={"otherwise": otherwise})
    return value


@dataclass(frozen=True, slots=True)
class Semantics:
    """Read the fields; build with keyword arguments only.

    >>> Semantics(victims_first_tier_decides=True).departures()
    ('the first tier that offers any victim decides alone; later tiers are not asked',)
    """

    # How answers are combined.
    victims_first_tier_decides: bool = switch(False, "the first tier that offers any victim decides alone; later tiers are not asked")
    victims_reinitialise_on_empty: bool = switch(
        False, "inside a tier, when two victim lists share nothing, the next plugin's list starts afresh"
    )
    refusing_tier_is_final: bool = switch(True, "after a tier that offers no victim the next tier is asked as if it were the first")
    starving_is_pending: bool = switch(
        False, "every job with a pending task may preempt and reclaim; plugins are not asked whether it is starving"
    )

    # Queues and groups.
    longest_wait_orders_queues: bool = switch(
        True, "queues that no plugin tells apart are served by creation time and name, not by how long their first jobs have waited"
    )
    implied_queues: bool = switch(True, "the queue `default` exists only if the input has it")
    reclaim_minds_every_resource: bool = switch(
        True,
        "under capacity, a queue below its deserved amount in one resource may reclaim everything that a task requests, "
        "from queues above theirs in any resource",
    )

    leftover_is_offered: bool = switch(
        True, "what queues leave of their shares stays idle: under proportion no queue holds more than it deserves"
    )
    impossible_demand_counts: bool = switch(
        False, "pods that no node could hold even if it were empty count towards what their queue deserves"
    )

    evictions_mind_domains: bool = switch(
        True, "preempt passes over every job with a network topology; reclaim promises such a job nodes wherever it finds room"
    )

    nodes_are_pooled: bool = switch(
        False, "nodes and groups with a node-pool label belong to the scheduler of that pool, and are left out here"
    )

    # Figures and views of a node.
    releasing_is_apart: bool = switch(
        False,
        "a task fits what is idle on a node or what is being released there, never the two together, and nodes of both kinds "
        "compete by score",
    )
    node_order: str = switch("name", "nodes are tried in the order of the input instead of by name")

    empty_gang_is_complete: bool = switch(False, "a job whose minimum is 0 counts as completed before any of its pods has run")

    # Attempts and what they leave behind.
    misfit_ends_turn: bool = switch(False, "the first task of a job that fits on no node ends the job's turn")
    placed_gang_is_running: bool = switch(
        False,
        "a group is Running as soon as enough of its pods are given a node, and Pending otherwise; it is never Inqueue or Completed",
    )
    refusals_bind_the_role: bool = switch(
        False, "in one attempt at a job, a node that refused a task is not tried again for other tasks of the same role"
    )
    partial_gang_holds_nodes: bool = switch(False, "a gang that could be placed only in part holds those nodes until the cycle ends")
    evicted_promise_stays: bool = switch(
        False, "a task that was promised a node and is then evicted counts on that node as leaving, though it never ran there"
    )
    gang_eviction_asks_filters: bool = switch(
        True, "gang eviction promises nodes whose filters refuse the task, if some eviction might have undone that"
    )
    stale_promise_blocks: bool = switch(
        False, "a pod that was promised a node evicts no pod while that node lacks only resources, or is gone"
    )
    reclaim_minds_job_order: bool = switch(
        True, "gangreclaim picks victims inside a queue by what they free, not by reverse job order"
    )
    gangs_lose_newest_first: bool = switch(
        True, "gang eviction takes the surplus of a gang by priority and UID, so possibly its first tasks"
    )
    dry_run_minds_queue: bool = switch(
        True,
        "topology-aware preemption evicts for closed queues, and all that it may from a node for a task that its queue may not take "
        "even then",
    )
    evicts_for_all_pending: bool = switch(False, "gang eviction makes room for every pending task of a job at once, or for none")
    reclaim_sorts_queues_late: bool = switch(
        False, "what queues lose to reclaim moves them in the order of queues late: when they are next compared in its heap"
    )
    evictions_settle: bool = switch(
        True, "who may be evicted for whom follows from the answers of plugins alone, so evictions can go round in a circle"
    )
    victims_are_minimal: bool = switch(True, "victims that turn out not to be needed are evicted all the same")

    # The load of nodes, and what is done about it.
    relief_exceeds_room: bool = switch(
        False, "rescheduling goes on evicting when the nodes with room are full, unless exactly nothing is left of their room"
    )

    # Servers outside.

    # Cards that a device plugin gives out by annotations.
    unserved_cards_pass: bool = switch(
        False, "a pod that asks for parts of cards which no plugin of the policy gives out is placed all the same"
    )

    # CPUs that a kubelet gives to one container alone.

    # Words.
    refusals_tell_all: bool = switch(
        True,
        "the message of a gang that does not fit counts its own placed pods without naming them, and gives missing over existing "
        "pods; for a node without enough resources it gives no other reason",
    )
    next_step_is_told: bool = switch(
        True, "messages say neither that a job can never start nor what would help it: they are in the words of the system followed"
    )

    def departures(self) -> tuple[str, ...]:
        """The sentences of every switch that is away from strict mode, in the order of the fields."""
        return tuple(f.metadata["otherwise"] for f in fields(self) if getattr(self, f.name) != f.default)


STRICT = Semantics()
