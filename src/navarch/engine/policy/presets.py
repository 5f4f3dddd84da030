"""Policies by name, as decoded documents: they are read by the same loader as any file.

`navarch` is Navarch's own judgement (docs/policy.md gives the reasons). `packing` is the best placement of GPU pods that we have:
jobs in order of arrival, none waits for another, and `fragmentation` chooses the node. The others are the defaults of those systems;
each implies its `compat`.
"""

from __future__ import annotations

from collections.abc import Mapping


def _tier(*plugins: str | dict[str, object]) -> dict[str, object]:
    return {"plugins": [{"name": p} if isinstance(p, str) else p for p in plugins]}


_KAI_ACTIONS = "allocate, consolidation, reclaim, preempt, stalegangeviction"
_PLACEMENT: dict[str, object] = {"name": "nodeplacement", "arguments": {"cpu": "binpack", "gpu": "binpack"}}

KAI_BUILT_IN: Mapping[str, object] = {
    "compat": "kai",
    "actions": _KAI_ACTIONS,
    "tiers": [
        _tier(
            "predicates",
            "proportion",
            "priority",
            "elastic",
            "kubeflow",
            "ray",
            "nodeavailability",
            "gpusharingorder",
            "gpupack",
            "resourcetype",
            "subgrouporder",
            "taskorder",
            "nominatednode",
            "dynamicresources",
            _PLACEMENT,
            "minruntime",
            "topology",
            "snapshot",
            "sg-nodelocalgreedy",
            "sg-multinodegang",
        )
    ],
}
"""What KAI's scheduler uses for parts that its file leaves out; the preset is what its operator deploys."""

PRESETS: Mapping[str, Mapping[str, object]] = {
    "navarch": {
        "actions": "allocate, backfill, gangreclaim, gangpreempt",
        "tiers": [
            _tier("priority", {"name": "gang", "enableJobStarving": False}, "conformance", "pdb", "cdp", "queueaccess"),
            _tier(
                {"name": "drf", "enablePreemptable": False},
                "predicates",
                "proportion",
                {"name": "nodeorder", "arguments": {"leastrequested.weight": 0}},
                {
                    "name": "binpack",
                    "arguments": {
                        "binpack.weight": 5,
                        "binpack.resources": "nvidia.com/gpu, amd.com/gpu",
                        "binpack.resources.nvidia.com/gpu": 10,
                        "binpack.resources.amd.com/gpu": 10,
                    },
                },
            ),
        ],
    },
    "fifo": {
        "actions": "allocate, backfill",
        "tiers": [_tier("gang", "strict-order", "predicates", "best-fit")],
    },
    "fifo-skip": {
        "actions": "allocate, backfill",
        "tiers": [_tier("gang", "predicates", "best-fit")],
    },
    "easy": {
        "actions": "allocate, backfill",
        "tiers": [_tier("gang", "easy-backfill", "predicates", "best-fit")],
    },
    "sjf": {
        "actions": "allocate, backfill",
        "tiers": [_tier("gang", "shortest-first", "strict-order", "predicates", "best-fit")],
    },
    "packing": {
        "actions": "allocate, backfill",
        "tiers": [_tier("gang", "predicates", "fragmentation")],
    },
    "volcano": {
        "compat": "volcano",
        "actions": "enqueue, allocate, backfill",
        "tiers": [
            _tier("priority", "gang", "conformance"),
            _tier("overcommit", "drf", "predicates", "proportion", "nodeorder"),
        ],
    },
    "kube-batch": {
        "compat": "kube-batch",
        "actions": "allocate, backfill",
        "tiers": [_tier("priority", "gang"), _tier("drf", "predicates", "proportion", "nodeorder")],
    },
    "kube-batch-early": {
        "compat": "kube-batch",
        "actions": "reclaim, allocate, preempt",
        "plugins": "gang, priority, drf, predicates, proportion",
        "plugin.gang.jobready": "true",
        "plugin.gang.joborder": "true",
        "plugin.gang.preemptable": "true",
        "plugin.priority.joborder": "true",
        "plugin.priority.taskorder": "true",
        "plugin.drf.preemptable": "true",
        "plugin.drf.joborder": "true",
    },
    "kai": {
        "compat": "kai",
        "actions": _KAI_ACTIONS,
        "tiers": [
            _tier(
                "predicates",
                "proportion",
                "priority",
                "nodeavailability",
                "resourcetype",
                "podaffinity",
                "elastic",
                "kubeflow",
                "ray",
                "subgrouporder",
                "taskorder",
                "nominatednode",
                "dynamicresources",
                "minruntime",
                "topology",
                "snapshot",
                "sg-nodelocalgreedy",
                "sg-multinodegang",
                "gpupack",
                _PLACEMENT,
                "gpusharingorder",
            )
        ],
    },
    "kube-scheduler": {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}],
    },
}
