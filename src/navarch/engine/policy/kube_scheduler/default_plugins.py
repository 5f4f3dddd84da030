"""kube-scheduler's own plugins: the points, the score weight and the arguments of each.

Facts of the v1 configuration API. The order of `DEFAULTS` is the default profile's, which fixes the order of filters and
with it the reason a node gives first.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.arguments import Argument, WrongKind
from navarch.engine.policy.schema import Fields, Nested

POINTS: tuple[str, ...] = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)

_FILTER = ("preFilter", "filter")
_SCORE = ("preScore", "score")
IMPLEMENTS: Mapping[str, tuple[str, ...]] = {
    # VolumeBinding scores only behind a feature gate that is off in 1.36; a profile can still name it under `score`.
    "SchedulingGates": ("preEnqueue",),
    "PrioritySort": ("queueSort",),
    "NodeName": ("filter",),
    "NodeUnschedulable": ("filter",),
    "TaintToleration": ("filter", *_SCORE),
    "NodeAffinity": (*_FILTER, *_SCORE),
    "NodePorts": _FILTER,
    "NodeResourcesFit": (*_FILTER, *_SCORE),
    "VolumeRestrictions": _FILTER,
    "NodeVolumeLimits": _FILTER,
    "VolumeBinding": (*_FILTER, "reserve", "preBind"),
    "VolumeZone": _FILTER,
    "PodTopologySpread": (*_FILTER, *_SCORE),
    "InterPodAffinity": (*_FILTER, *_SCORE),
    "DynamicResources": ("preEnqueue", *_FILTER, "postFilter", *_SCORE, "reserve", "preBind"),
    "DefaultPreemption": ("postFilter",),
    "NodeResourcesBalancedAllocation": _SCORE,
    "ImageLocality": ("score",),
    "DefaultBinder": ("bind",),
    "NodeDeclaredFeatures": _FILTER,
    "DeferredPodScheduling": ("preEnqueue",),
    "GangScheduling": ("preEnqueue", "reserve", "permit"),
    "TopologyPlacementGenerator": ("placementGenerate",),
    "PodGroupPodsCount": ("placementScore",),
}
DEFAULTS: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
)

ALWAYS_RUN: Mapping[str, tuple[str, str]] = {
    "preEnqueue": ("", "pods with scheduling gates and pods without their claims are never tried"),
    "preFilter": ("filter", "what a filter prepares belongs to the filter"),
    "postFilter": ("filter", "claims that hold a pod to nodes without room for it are always released"),
    "preScore": ("score", "what a score prepares belongs to the score"),
    "reserve": ("filter", "volumes and devices are always reserved with the decision"),
    "preBind": ("filter", "volumes and devices are always prepared before the binding"),
}
"""Point without a switch of its own -> the point whose switch it follows (empty: none), and why."""
GROUP_POINTS: Mapping[str, tuple[str, str]] = {
    "placementGenerate": ("TopologyPlacementGenerator", "a group always goes to one value of the label that it names"),
    "placementScore": ("PodGroupPodsCount", "the pods that a placement takes always count, with a weight of 1"),
    "podGroupPostFilter": ("", "DefaultPreemption at postFilter says whether groups preempt, and claims are always released"),
}
"""Point of kube-scheduler's workload cycle -> the plugin that is followed there, and what happens whatever a profile says."""


def _check_spread(entry: object) -> None:
    """One default constraint, as kube-scheduler checks it."""
    given = entry if isinstance(entry, Mapping) else {}
    skew, when = given.get("maxSkew"), given.get("whenUnsatisfiable")
    if not isinstance(skew, int) or isinstance(skew, bool) or skew < 1:
        raise WrongKind(f"maxSkew: found {skew!r}, expected an integer of 1 or more")
    if not isinstance(given.get("topologyKey"), str) or not given["topologyKey"]:
        raise WrongKind(f"topologyKey: found {given.get('topologyKey')!r}, expected the key of a label")
    if when not in ("DoNotSchedule", "ScheduleAnyway"):
        raise WrongKind(f"whenUnsatisfiable: found {when!r}, expected DoNotSchedule or ScheduleAnyway")


def _resources(heaviest: int) -> Nested:
    """Weight 0 is the default, 1."""
    return Nested("resources", (Argument("name", "str"), Argument("weight", "int", 1, minimum=0, maximum=heaviest)), many=True)


_SHAPE = (Argument("utilization", "int", 0, minimum=0, maximum=100), Argument("score", "int", 0, minimum=0, maximum=10))
_TYPES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_VOLUME_TIMEOUT = "binding waits ten minutes for volumes"
ARGS: Mapping[str, Fields] = {
    "NodeResourcesFit": (
        Argument("ignoredResources", "list"),
        Argument("ignoredResourceGroups", "list"),
        Nested(
            "scoringStrategy",
            (
                Argument("type", "str", "LeastAllocated", choices=_TYPES),
                _resources(100),
                Nested("requestedToCapacityRatio", (Nested("shape", _SHAPE, many=True),)),
            ),
        ),
    ),
    "NodeResourcesBalancedAllocation": (_resources(1),),
    "PodTopologySpread": (
        Argument("defaultConstraints", "list", check_entry=_check_spread),
        Argument("defaultingType", "str", "System", choices=("System", "List")),
    ),
    "InterPodAffinity": (
        Argument("hardPodAffinityWeight", "int", 1, minimum=0, maximum=100),
        Argument("ignorePreferredTermsOfExistingPods", "bool", False),
    ),
    "NodeAffinity": (Argument("addedAffinity", "mapping"),),
    "DefaultPreemption": (
        Argument("minCandidateNodesPercentage", "int", 10, minimum=0, maximum=100),
        Argument("minCandidateNodesAbsolute", "int", 100, minimum=0),
    ),
    "VolumeBinding": (
        Argument("bindTimeoutSeconds", "int", 600, _VOLUME_TIMEOUT, minimum=0, has_effect=False),
        Nested("shape", _SHAPE, many=True, no_effect="Kubernetes scores volumes only behind a feature gate"),
    ),
    "DynamicResources": (
        Argument("filterTimeout", "duration", 10.0, "the search for devices has its own bound", has_effect=False),
        Argument("bindingTimeout", "duration", 600.0, "how long drivers may take until the binding conditions are true"),
    ),
}
"""Plugins that are absent take no arguments."""

Form = Mapping[str, "Form"]
"""Field -> the fields below it; nothing below: any value."""
_REQUIREMENT: Form = {"key": {}, "operator": {}, "values": {}}
_TERM: Form = {"matchExpressions": _REQUIREMENT, "matchFields": _REQUIREMENT}
FORMS: Mapping[str, Form] = {
    "NodeAffinity": {
        "addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _TERM},
            "preferredDuringSchedulingIgnoredDuringExecution": {"weight": {}, "preference": _TERM},
        }
    },
    "PodTopologySpread": {
        "defaultConstraints": {
            "maxSkew": {},
            "topologyKey": {},
            "whenUnsatisfiable": {},
            "minDomains": {},
            "nodeAffinityPolicy": {},
            "nodeTaintsPolicy": {},
            "matchLabelKeys": {},
        }
    },
}
"""Plugin -> arguments in a form of the pod API, with the fields of that form."""

_NO_PLACE = "nothing takes its place"
SCHEDULER_PLUGINS: Mapping[str, str] = {
    "Coscheduling": "its PodGroups are gangs under Navarch's own policies (docs/groups.md), and here with GangScheduling only those of"
    " scheduling.k8s.io",
    "CapacityScheduling": "ElasticQuotas are not read; queues share a cluster under Navarch's own policies",
    "PreemptionToleration": _NO_PLACE,
    "NodeResourceTopologyMatch": "the plugins numa (policy kai) and numa-aware (policy volcano) place pods by NUMA",
    "NodeResourcesAllocatable": "scoringStrategy of NodeResourcesFit fills or spreads nodes",
    "TargetLoadPacking": "the plugin usage (policy volcano) reads the load of nodes",
    "LoadVariationRiskBalancing": "the plugin usage (policy volcano) reads the load of nodes",
    "LowRiskOverCommitment": "the plugin usage (policy volcano) reads the load of nodes",
    "Peaks": _NO_PLACE,
    "TopologicalSort": _NO_PLACE,
    "NetworkOverhead": _NO_PLACE,
    "SySched": _NO_PLACE,
    "PodState": _NO_PLACE,
    "QOSSort": _NO_PLACE,
    "CrossNodePreemption": _NO_PLACE,
}
"""Plugin of the project scheduler-plugins -> what there is instead."""
