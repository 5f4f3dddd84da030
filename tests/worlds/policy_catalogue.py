"""A catalogue with a few of everything, so that the loader's tests do not depend on which plugins exist."""

from __future__ import annotations

from navarch.engine.arguments import Argument
from navarch.engine.policy.catalogue import Catalogue, Entry
from navarch.engine.policy.compat import KAI, KUBE_SCHEDULER, VOLCANO

_ARGUMENTS = {
    "binpack": (
        Argument("binpack.weight", "int", 1),
        Argument("binpack.cpu", "int", 1),
        Argument("binpack.resources", "str", ""),
        Argument("binpack.resources.*", "int", 1),
    ),
    "nodeorder": (Argument("leastrequested.weight", "int", 1), Argument("nodeaffinity.weight", "int", 2)),
    "predicates": (Argument("predicate.NodePortsEnable", "bool", True),),
    "overcommit": (Argument("overcommit-factor", "float", 1.2),),
    "sla": (Argument("sla-waiting-time", "duration"),),
    "nodeplacement": (
        Argument("cpu", "str", "binpack", choices=("binpack", "spread")),
        Argument("gpu", "str", "binpack", choices=("binpack", "spread")),
    ),
    "kai:proportion": (Argument("kValue", "float", 1.0),),
}
_POINTS = {
    "gang": (
        "job_order",
        "job_valid",
        "job_ready",
        "job_missing",
        "job_pipelined",
        "job_starving",
        "preemptable",
        "reclaimable",
    ),
    "priority": ("job_order", "task_order", "preemptable", "job_starving"),
    "drf": ("job_order", "preemptable", "events"),
    "proportion": ("queue_order", "overused", "allocatable", "reclaimable", "job_enqueueable", "job_enqueued"),
    "predicates": ("node_filters", "pre_predicate"),
    "nodeorder": ("node_scorers",),
    "binpack": ("node_scorers",),
    "oldest": ("job_order",),
    "NodeAffinity": ("node_filters", "node_scorers"),
}
_ABSENT = {"rescheduling", "usage", "ImageLocality", "DefaultBinder", "PrioritySort", "SchedulingGates"}
_ACTION_ARGUMENTS = {
    "allocate": (
        Argument("predicateErrorCacheEnable", "bool", True),
        Argument("retired", "int", 1, "nothing reads it", has_effect=False),
    ),
    "preempt": (
        Argument("enableTopologyAwarePreemption", "bool", False),
        Argument("minCandidateNodesPercentage", "int", 10),
    ),
}
_OWN = {"best-fit", "easy-backfill", "fragmentation", "queueaccess", "shortest-first", "strict-order"}
"""Plugins of Navarch alone that presets name."""
_PLUGINS = {*VOLCANO.plugins, *KAI.plugins, *KUBE_SCHEDULER.plugins, "kai:proportion", "oldest", *_OWN} - _ABSENT
_ACTIONS = {*VOLCANO.actions, *KAI.actions, "schedule"} - {"shuffle"}

CATALOGUE = Catalogue(
    actions={name: Entry(_ACTION_ARGUMENTS.get(name, ())) for name in sorted(_ACTIONS)},
    plugins={name: Entry(_ARGUMENTS.get(name, ()), _POINTS.get(name, ())) for name in sorted(_PLUGINS)},
)
