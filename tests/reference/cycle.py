"""One pod through all plugins: filters in order, scores with weights, and the message when no node is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.reference.balanced import NodeResourcesBalancedAllocation
from tests.reference.cluster import Cluster, Object, name_of, priority_of
from tests.reference.fit import NodeResourcesFit
from tests.reference.images import ImageLocality
from tests.reference.inter_pod import InterPodAffinity
from tests.reference.node_affinity import NodeAffinity
from tests.reference.node_name import NodeName, NodeUnschedulable
from tests.reference.plugin import Plugin
from tests.reference.ports import NodePorts
from tests.reference.spread import PodTopologySpread
from tests.reference.status import SUCCESS, Status, unresolvable
from tests.reference.taints import TaintToleration
from tests.reference.volume_binding import VolumeBinding
from tests.reference.volume_limits import NodeVolumeLimits
from tests.reference.volume_restrictions import VolumeRestrictions
from tests.reference.volume_zone import VolumeZone

FILTERS: tuple[type[Plugin], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
)
WEIGHTS: dict[type[Plugin], int] = {
    TaintToleration: 3,
    NodeAffinity: 2,
    NodeResourcesFit: 1,
    PodTopologySpread: 2,
    InterPodAffinity: 2,
    NodeResourcesBalancedAllocation: 1,
    ImageLocality: 1,
}
PLUGINS: dict[str, type[Plugin]] = {plugin.__name__: plugin for plugin in (*FILTERS, *WEIGHTS)}
CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
DEFAULT_ARGS: dict[str, dict[str, Any]] = {
    "NodeResourcesFit": {"scoringStrategy": {"type": "LeastAllocated", "resources": CPU_AND_MEMORY}},
    "NodeResourcesBalancedAllocation": {"resources": CPU_AND_MEMORY},
    "PodTopologySpread": {"defaultingType": "System"},
    "InterPodAffinity": {"hardPodAffinityWeight": 1},
}

Args = Mapping[str, Mapping[str, Any]]


class Filtering:
    """The filters of one pod over one cluster; dry runs move pods through it."""

    def __init__(self, cluster: Cluster, pod: Object, names: Sequence[str] | None = None, args: Args = DEFAULT_ARGS) -> None:
        self.cluster = cluster
        self.pod = pod
        chosen = [PLUGINS[name] for name in names] if names is not None else FILTERS
        self.active: list[Plugin] = []
        self.rejection: Status | None = None
        subsets: dict[str, frozenset[str]] = {}
        for kind in chosen:
            plugin = kind(cluster, pod, args.get(kind.__name__))
            status = plugin.pre_filter()
            if status.code == "Skip":
                continue
            if not status.ok:
                self.rejection = status
                if status.code != "Unschedulable":
                    break
            if status.nodes is not None:
                subsets[kind.__name__] = status.nodes
            self.active.append(plugin)
        self.subset = frozenset.intersection(*subsets.values()) if subsets else None
        self.subset_names = sorted(subsets)
        if self.rejection is None and self.subset is not None and not self.subset:
            many = f"plugin(s) [{' '.join(self.subset_names)}] simultaneously"
            which = f"plugin {self.subset_names[0]}" if len(subsets) == 1 else many
            self.rejection = unresolvable(f"node(s) didn't satisfy {which}")

    def add(self, pod: Object, node: Object) -> None:
        for plugin in self.active:
            plugin.pod_added(pod, node)
        self.cluster.add(pod, name_of(node))

    def remove(self, pod: Object, node: Object) -> None:
        for plugin in self.active:
            plugin.pod_removed(pod, node)
        self.cluster.remove(pod, name_of(node))

    def first_refusal(self, node: Object) -> Status:
        for plugin in self.active:
            status = plugin.filter(node)
            if not status.ok:
                return status
        return SUCCESS

    def check(self, node: Object) -> Status:
        """With the pods nominated to the node that are not less important, then without them: both must pass."""
        expected = [
            pod
            for pod in self.cluster.nominated
            if (pod.get("status") or {}).get("nominatedNodeName") == name_of(node)
            and priority_of(pod) >= priority_of(self.pod)
            and pod["metadata"].get("uid") != self.pod["metadata"].get("uid")
        ]
        ports = set(self.cluster.ports_on(name_of(node)))
        for pod in expected:
            self.add(pod, node)
        status = self.first_refusal(node)
        for pod in expected:
            self.remove(pod, node)
        self.cluster.restore_ports(name_of(node), ports)  # the pods were added to a copy of the node
        return self.first_refusal(node) if expected and status.ok else status

    def all_nodes(self) -> dict[str, Status]:
        if self.rejection is not None:
            return {name: Status(self.rejection.code, self.rejection.reasons) for name in self.cluster.nodes}
        outside = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(self.subset_names)}]")
        return {
            name: self.check(node) if self.subset is None or name in self.subset else outside
            for name, node in self.cluster.nodes.items()
        }


class Scores(NamedTuple):
    pre_score: Status
    raw: dict[str, int]
    final: dict[str, int]


def score(plugin: Plugin, candidates: Sequence[Object]) -> Scores:
    status = plugin.pre_score(candidates)
    if not status.ok:
        return Scores(status, {}, {})
    raw = {name_of(node): plugin.score(node) for node in candidates}
    return Scores(status, raw, plugin.normalise(dict(raw)))


def totals(cluster: Cluster, pod: Object, candidates: Sequence[Object], args: Args = DEFAULT_ARGS) -> dict[str, int]:
    """The weighted sum of every score plugin over the candidates."""
    result = {name_of(node): 0 for node in candidates}
    for kind, weight in WEIGHTS.items():
        scores = score(kind(cluster, pod, args.get(kind.__name__)), candidates)
        if scores.pre_score.code == "Error":
            raise ValueError(scores.pre_score.reasons[0])
        for name, value in scores.final.items():
            result[name] += weight * value
    return result
