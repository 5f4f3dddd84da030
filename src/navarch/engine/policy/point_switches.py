"""The keys of policy files that switch extension points, and how the answers at each point are combined.

The `enable` keys are Volcano's and mix `enable` and `enabled`; existing files use them, so they are kept as they are. The
`disable` keys are KAI's. A point without a key is always on.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Point(Struct, frozen=True):
    """`combined` says how strict mode combines several answers."""

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
    Point("hyper_node_order", "scores are added", "enabledHyperNodeOrder"),
    Point("hyper_node_gradient", "the first plugin that has one decides", "enabledHyperNodeGradient"),
    Point("preemptable", _VICTIMS, "enablePreemptable", True, True, "disablePreemptable"),
    Point("reclaimable", _VICTIMS, "enableReclaimable", True, True, "disableReclaimable"),
    Point("unified_evictable", _VICTIMS),
    Point("victim_tasks", "united inside a tier; the first tier that names any decides", "enabledVictim"),
    Point("hierarchy", "queues form a tree", "enableHierarchy", False),
    Point("events", "all are told of each placement and eviction"),
    Point("queues_owed", "the first plugin that has it answers"),
    Point("queue_figures", "the first plugin that has it answers"),
    Point("hard_limits", _ALL),
)
BY_NAME: Mapping[str, Point] = {p.name: p for p in POINTS}
BY_KEY: Mapping[str, Point] = {p.key: p for p in POINTS if p.key}
BY_DISABLE_KEY: Mapping[str, Point] = {p.disable_key: p for p in POINTS if p.disable_key}
DEFAULTS: Mapping[str, bool] = {p.name: p.default for p in POINTS if p.key}

OF_EARLY_KUBE_BATCH: Mapping[str, str] = {
    **{f"disable{p.key.removeprefix('enable')}": p.name for p in POINTS if p.in_kube_batch and p.name != "job_pipelined"},
}
"""Switches of kube-batch's releases up to 0.4 -> the point. Later releases turned them round and ignore the old ones."""
KEYS_WITHOUT_EFFECT = frozenset({"enabledClusterOrder", "enableBestNode", "enableTargetJob", "enableReservedNodes"})
"""Switches of Volcano's files for points that no action of Navarch asks. The loader accepts them with a warning."""

SAME_SWITCH: Mapping[str, str] = {
    "job_enqueued": "job_enqueueable",
    "job_missing": "job_ready",
    "sub_job_missing": "sub_job_ready",
    "pre_predicate": "predicate",
    "node_filters": "predicate",
    "node_scorers": "node_order",
}
"""Point without a key of its own -> the point whose key switches both."""
