"""The systems that a policy can follow: the one table from `compat` to switches, and the names each system knows.

The names tell a plugin that another system has and Navarch lacks from a typing error, recognise a file that can only be KAI's,
and keep `proportion` of one system apart from `proportion` of another.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from navarch.engine.arguments import Reading
from navarch.engine.semantics import STRICT, Semantics

COMPAT: Mapping[str, Semantics] = {
    "strict": STRICT,
    "volcano": Semantics(
        victims_first_tier_decides=True,
        victims_reinitialise_on_empty=True,
        refusing_tier_is_final=False,
        longest_wait_orders_queues=False,
        implied_queues=False,
        reclaim_minds_every_resource=False,
        reclaim_sorts_queues_late=True,
        leftover_is_offered=False,
        impossible_demand_counts=True,
        evictions_mind_domains=False,
        relief_exceeds_room=True,
        node_order="listed",
        refusals_bind_the_role=True,
        evicts_for_all_pending=True,
        dry_run_minds_queue=False,
        reclaim_minds_job_order=False,
        gangs_lose_newest_first=False,
        stale_promise_blocks=True,
        empty_gang_is_complete=True,
        gang_eviction_asks_filters=False,
        victims_are_minimal=False,
        evictions_settle=False,
        unserved_cards_pass=True,
        refusals_tell_all=False,
        next_step_is_told=False,
    ),
    "kube-batch": Semantics(
        victims_first_tier_decides=True,
        starving_is_pending=True,
        longest_wait_orders_queues=False,
        leftover_is_offered=False,
        impossible_demand_counts=True,
        partial_gang_holds_nodes=True,
        misfit_ends_turn=True,
        unserved_cards_pass=True,
        placed_gang_is_running=True,
        releasing_is_apart=True,
        node_order="listed",
        refusals_tell_all=False,
        next_step_is_told=False,
        victims_are_minimal=False,
        evictions_settle=False,
    ),
    "kai": Semantics(
        next_step_is_told=False,
        longest_wait_orders_queues=False,
        implied_queues=False,
        unserved_cards_pass=True,
        nodes_are_pooled=True,
        impossible_demand_counts=True,
        victims_are_minimal=False,
        evictions_settle=False,
        evicted_promise_stays=True,
    ),
    "kube-scheduler": Semantics(next_step_is_told=False, unserved_cards_pass=True),
}


class Peer(Struct, frozen=True):
    """A system whose files are read: what it has, and how it reads the value of an argument."""

    title: str
    actions: frozenset[str]
    plugins: frozenset[str]
    reading: Reading


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KUBE_BATCH = Peer(
    "kube-batch",
    _names("allocate backfill preempt reclaim"),
    _names("conformance drf gang nodeorder predicates priority proportion"),
    "text",
)
VOLCANO = Peer(
    "Volcano",
    _names("allocate backfill enqueue gangpreempt gangreclaim preempt reclaim shuffle"),
    _names("""
        binpack capacity cdp conformance deviceshare drf extender gang network-topology-aware nodegroup nodeorder
        numa-aware overcommit pdb predicates priority proportion rescheduling resource-strategy-fit resourcequota
        sla task-topology tdm usage
    """),
    "yaml",
)
KAI = Peer(
    "KAI",
    _names("allocate consolidation preempt reclaim stalegangeviction"),
    _names("""
        dynamicresources elastic gpupack gpusharingorder gpuspread kubeflow minruntime nodeavailability nodeplacement
        nominatednode numa podaffinity predicates priority proportion ray reflectjoborder resourcetype
        sg-multinodegang sg-nodelocalgreedy snapshot subgrouporder taskorder topology
    """),
    "text",
)
KUBE_SCHEDULER = Peer(
    "kube-scheduler",
    _names("schedule"),
    _names("""
        DefaultBinder DefaultPreemption DeferredPodScheduling DynamicResources GangScheduling ImageLocality
        InterPodAffinity NodeAffinity NodeDeclaredFeatures NodeName NodePorts NodeResourcesBalancedAllocation
        NodeResourcesFit NodeUnschedulable NodeVolumeLimits PodGroupPodsCount PodTopologySpread PrioritySort
        SchedulingGates TaintToleration TopologyPlacementGenerator VolumeBinding VolumeRestrictions VolumeZone
    """),
    "strict",
)
PEERS: Mapping[str, Peer] = {
    "volcano": VOLCANO,
    "kube-batch": KUBE_BATCH,
    "kai": KAI,
    "kube-scheduler": KUBE_SCHEDULER,
}
ONLY_KAI_ACTIONS = KAI.actions - VOLCANO.actions
ONLY_KAI_PLUGINS = KAI.plugins - VOLCANO.plugins


def owners(name: str) -> list[str]:
    """The systems that have an action or a plugin of this name, for a message."""
    return [peer.title for peer in PEERS.values() if name in peer.actions or name in peer.plugins]


def listed(names: list[str]) -> str:
    """
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
