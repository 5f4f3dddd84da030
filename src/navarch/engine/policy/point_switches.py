"""The extension points a policy file can switch, under the keys users already write, and how answers are combined.

The keys come from Volcano, where `enable` and `enabled` are mixed; they are kept letter by letter because files in the
field hold them. `disable` keys are KAI's. A point without a key cannot be switched and is always on.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Point(Struct, frozen=True):
    """`combined` is how strict mode puts several answers together, in words."""

    name: str
    combined: str
    key: str = ""
    default: bool = True
    in_kube_batch: bool = False
    disable_key: str = ""


_ORDER = "the first plugin that prefers one decides"
_TASK_ORDER = f"{_ORDER}; then pod index, creation time, UID"
_ALL = "all must agree"
_VICTIMS = "only what every plugin with an opinion offers is evicted; without any opinion, nothing"
_VOTE = "any rejection refuses; a permit ends the asking at its tier's end; silence permits"

POINTS: tuple[Point, ...] = (
    Point("queue_order", f"{_ORDER}; then creation time, name", "enableQueueOrder", True, True, "disableQueueOrder"),
    Point("victim_queue_order", f"{_ORDER}; else the reverse of queue order"),
    Point("job_order", f"{_ORDER}; then creation time, name", "enableJobOrder", True, True, "disableJobOrder"),
    Point("sub_job_order", f"{_ORDER}; then name", "enabledSubJobOrder"),
    Point("task_order", _TASK_ORDER, "enableTaskOrder", True, True, "disableTaskOrder"),
    Point("cluster_order", _ORDER, "enabledClusterOrder", False),
    Point("job_valid", "the first failure refuses the job"),
    Point("job_enqueueable", _VOTE, "enableJobEnqueued"),
    Point("job_ready", _ALL, "enableJobReady", True, True),
    Point("sub_job_ready", _ALL, "enabledSubJobReady"),
    Point("job_pipelined", _VOTE, "enableJobPipelined", True, True),
    Point("sub_job_pipelined", _VOTE, "enabledSubJobPipelined"),
    Point("job_starving", _ALL, "enableJobStarving"),
    Point("overused", "any one is enough", "enabledOverused"),
    Point("allocatable", _ALL, "enabledAllocatable"),
    Point("preemptive", _ALL, "enablePreemptive"),
    Point("predicate", "the first refusal rules a node out", "enablePredicate", True, True, "disablePredicate"),
    Point("node_order", "scores are added", "enableNodeOrder", True, True, "disableNodeOrder"),
    Point("best_node", "the first plugin that names a node decides", "enableBestNode"),
    Point("hyper_node_order", "scores are added", "enabledHyperNodeOrder"),
    Point("hyper_node_gradient", "the first plugin that has one decides", "enabledHyperNodeGradient"),
    Point("preemptable", _VICTIMS, "enablePreemptable", True, True, "disablePreemptable"),
    Point("reclaimable", _VICTIMS, "enableReclaimable", True, True, "disableReclaimable"),
    Point("unified_evictable", _VICTIMS),
    Point("victim_tasks", "united inside a tier; the first tier that names any decides", "enabledVictim"),
    Point("target_job", "the first plugin that names a job decides", "enableTargetJob"),
    Point("reserved_nodes", "all are told", "enableReservedNodes"),
    Point("hierarchy", "queues form a tree", "enableHierarchy", False),
    Point("events", "all are told of each placement and eviction"),
)
BY_NAME: Mapping[str, Point] = {p.name: p for p in POINTS}
BY_KEY: Mapping[str, Point] = {p.key: p for p in POINTS if p.key}
BY_DISABLE_KEY: Mapping[str, Point] = {p.disable_key: p for p in POINTS if p.disable_key}
DEFAULTS: Mapping[str, bool] = {p.name: p.default for p in POINTS if p.key}

SAME_SWITCH: Mapping[str, str] = {
    "job_enqueued": "job_enqueueable",
    "job_missing": "job_ready",
    "sub_job_missing": "sub_job_ready",
    "pre_predicate": "predicate",
    "node_filters": "predicate",
    "node_scorers": "node_order",
    "batch_node_order": "node_order",
    "hyper_node_gradient_for_job": "hyper_node_gradient",
    "hyper_node_gradient_for_sub_job": "hyper_node_gradient",
}
"""Points that have no key of their own and go with another."""
