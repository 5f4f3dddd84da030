"""What a followed system does by accident, and Navarch does not do in any mode: `navarch policy check` tells it to those who meet it.

docs/parity.md has the same sentences, with what Navarch does instead and how many recorded cases show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from navarch.engine.policy.values import Policy


class Accident(NamedTuple):
    name: str
    of: str
    """Actions and plugins, one of which a policy must have to meet it; empty: every policy does."""
    text: str


NOT_FOLLOWED: Mapping[str, tuple[Accident, ...]] = {
    "volcano": (
        Accident(
            "undone-evictions",
            "preempt reclaim gangpreempt gangreclaim",
            "undoing an eviction does not bring the pod back for scores, pod count, ports and affinity in this cycle",
        ),
        Accident(
            "cards-that-cannot-serve",
            "deviceshare",
            "cards that are broken, split by MIG, or not registered by their node are given out, and so are those of pods "
            "that are being deleted",
        ),
        Accident(
            "deviceshare-needs-predicates",
            "deviceshare",
            "cards are reserved only if the policy also has the plugin predicates, and scored only if deviceshare is switched"
            " on as a filter",
        ),
        Accident("spread-prefers-no-node", "deviceshare", "the schedule policy spread orders the cards of a node and prefers no node"),
        Accident("undone-cards", "deviceshare", "a gang that is not placed after all keeps its vGPU memory until the cycle ends"),
        Accident(
            "cards-named-before",
            "deviceshare",
            "a waiting pod that names cards in its annotations holds those as well as the ones it gets",
        ),
        Accident(
            "vgpu-numbers",
            "deviceshare",
            "vGPU requests are numbers of 32 bits: 4Gi of vgpu-memory asks for a whole card, 3Gi for less than nothing",
        ),
        Accident(
            "containers-on-one-card",
            "deviceshare",
            "of several containers on one card only the first counts once the pod runs, and a container that asks for no card"
            " takes room of one",
        ),
        Accident(
            "cpus-by-number",
            "numa-aware",
            "numa-aware sends a pod to a best-effort node with too few free CPUs, and finds free cores by the numbers of CPUs",
        ),
        Accident(
            "unreadable-cpus",
            "numa-aware",
            "a Numatopology object whose list of CPUs cannot be read has none free, and one mistake in its reservation drops "
            "all of it",
        ),
        Accident(
            "topology-of-one-cycle",
            "task-topology",
            "task-topology keeps pods apart only from pods that this cycle placed, goes on counting placements that were "
            "undone, and ignores all annotations of a group if one has a mistake",
        ),
        Accident("turns-between-buckets", "task-topology", "task-topology turns from one bucket to the next while it places a job"),
        Accident(
            "rescheduling-victims",
            "rescheduling",
            "rescheduling finds victims by pod name, evicts critical pods, breaks gangs, spares pods without a PodGroup, and "
            "ignores the strategy offlineOnly",
        ),
        Accident(
            "unmeasured-load",
            "rescheduling",
            "rescheduling takes a node without figures as idle, trusts figures however old, and reads the average of ten "
            "minutes alone",
        ),
        Accident("restored-load", "usage", "a pod whose eviction is undone counts as load that is not measured yet"),
        Accident("extender-asked-again", "extender", "an extender is asked for each pod, and again each time"),
        Accident(
            "extender-failures",
            "extender",
            "where an extender fails it may start jobs, spare all victims or be left out, and a refusal with a code and no "
            "message does not count",
        ),
        Accident(
            "budgets-counted-anew",
            "pdb",
            "disruption budgets are counted again for each node, pods without labels are never victims under them, and "
            "shuffle evicts every pod that they allow",
        ),
        Accident(
            "windows-at-midnight",
            "tdm",
            "a time window that ends on the next day is closed again at midnight, and a job below its minimum may lose a pod "
            "when it closes",
        ),
        Accident(
            "affinity-lists",
            "predicates nodeorder",
            "which nodes hold pods with pod affinity is fixed when the cycle opens, and an attempt does not see its own "
            "evictions in its answers about other pods",
        ),
        Accident("rebinds", "backfill", "a bind outside a statement is checked again against what was idle when the cycle opened"),
        Accident(
            "unknown-tiers",
            "network-topology-aware",
            "a hard network topology that names a tier which no HyperNode has is not enforced, and sub-groups without one of "
            "their own do not tie their job to its HyperNode",
        ),
        Accident(
            "doubted-promises",
            "gangpreempt gangreclaim",
            "allocate tries tasks that gang eviction has promised a node once more, and some lose the promise or leave what "
            "they held taken",
        ),
        Accident("gang-reclaim-weights", "gangreclaim", "gang reclaim may take a queue below its weight's share"),
        Accident(
            "role-failures",
            "allocate",
            "once a task of a role fits on no node, tasks of the same role are skipped for the rest of the cycle",
        ),
        Accident(
            "overcommitted-nodes",
            "",
            "a node whose cpu or memory is over-committed refuses even a task that requests none of it",
        ),
        Accident("absent-priority", "", "a task whose pod has no priority is ordered as if it had priority 1"),
        Accident(
            "one-bad-queue",
            "capacity",
            "one invalid queue makes the hierarchical capacity plugin refuse everything, ancestors keep the share that they "
            "had when the cycle opened, and a root queue with a capability refuses what it does not name",
        ),
        Accident("queues-without-a-state", "", "a queue without a state is not open"),
        Accident(
            "admission-by-allocate",
            "preempt reclaim gangpreempt gangreclaim",
            "in a policy without enqueue, allocate admits waiting groups, so preempt and reclaim pass over them if they come "
            "before it",
        ),
        Accident(
            "starving-tiers",
            "preempt reclaim gangpreempt gangreclaim",
            "the first tier with a job-starving plugin decides alone whether a job is starving, and where no plugin answers no job is",
        ),
        Accident("extended-resources", "predicates", "an extended resource is served only by nodes that report it"),
    ),
    "kube-batch": (
        Accident("nodes-left-out", "", "a node whose pods request more than it has is left out of the cycle"),
        Accident(
            "numbers-in-names",
            "",
            "tasks that plugins order equally are ordered by age; the number at the end of their names does not count",
        ),
        Accident(
            "overcommitted-nodes",
            "",
            "a node whose cpu or memory is over-committed refuses even a task that requests none of it",
        ),
        Accident("absent-priority", "", "a task whose pod has no priority is ordered as if it had priority 1"),
        Accident("tolerance", "", "amounts that differ by less than a tolerance count as equal"),
    ),
    "kai": (
        Accident(
            "shared-gpus-by-counting",
            "",
            "the books of shared GPUs are balanced by counting, so an idle GPU can be lost for the rest of the cycle, and a "
            "move that is taken back leaves a share behind",
        ),
        Accident("lost-tasks", "", "a job that lost tasks to a search finds no room in later searches of the cycle"),
        Accident(
            "queues-sorted-late",
            "",
            "a queue with child queues is compared by the child that was served last until its own turn comes",
        ),
        Accident(
            "inexact-domains",
            "",
            "nodes of a topology domain that cannot be used count in what it has free, and free parts of shared GPUs do not "
            "count in how full it is",
        ),
        Accident("cut-searches", "", "a search for victims that used up its budget ends its action"),
        Accident(
            "lost-resources",
            "",
            "a node that lacks any resource for what it holds refuses even a task that requests none of it, and what pods "
            "request of a resource that their node does not have is not counted",
        ),
    ),
}
"""`compat` -> accidents of that system."""


def not_followed(policy: Policy) -> list[str]:
    used = {*policy.actions, *(option.name for tier in policy.tiers for option in tier)}
    return [each.text for each in NOT_FOLLOWED.get(policy.compat, ()) if not each.of or used & set(each.of.split())]
