"""kube-scheduler's plugins under their own names, for policies that are KubeSchedulerConfiguration files.

Each wraps the same rules that `predicates` and `nodeorder` use, and reads its arguments in that file's format. `weight` is the
factor of the plugin's score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from navarch.engine.arguments import Argument
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass, first_rejection
from navarch.engine.plugin import Plugin
from navarch.engine.reasons import Reason
from navarch.model.selectors import read_node_selector, read_node_term
from navarch.model.spec import NodeAffinity as NodeDemand
from navarch.model.spec import SpreadConstraint
from navarch.plugins.nodeorder.allocation import CPU_AND_MEMORY, Allocation
from navarch.plugins.nodeorder.balanced import BalancedAllocation
from navarch.plugins.nodeorder.images import ImageLocality as ImageScore
from navarch.plugins.nodeorder.pod_preferences import PodPreferences
from navarch.plugins.nodeorder.preferred_nodes import PreferredNodes
from navarch.plugins.nodeorder.preferred_taints import PreferredTaints
from navarch.plugins.nodeorder.soft_spread import SoftSpread
from navarch.plugins.predicates.devices import dynamic_resources
from navarch.plugins.predicates.devices.claims import Claims
from navarch.plugins.predicates.devices.extended_claims import ExtendedClaims
from navarch.plugins.predicates.devices.unserved_cards import UnservedCards
from navarch.plugins.predicates.nodes import affinity as node_affinity
from navarch.plugins.predicates.nodes import declared_features, ports, taints, unschedulable
from navarch.plugins.predicates.nodes import name as node_name
from navarch.plugins.predicates.nodes import resources_fit as fit
from navarch.plugins.predicates.pods import affinity as inter_pod
from navarch.plugins.predicates.pods import spread
from navarch.plugins.predicates.pods.default_spread import SpreadDefaults
from navarch.plugins.predicates.volumes import binding as volume_binding
from navarch.plugins.predicates.volumes import limits as volume_limits
from navarch.plugins.predicates.volumes import restrictions as volume_restrictions
from navarch.plugins.predicates.volumes import zone as volume_zone

_WEIGHT = Argument("weight", "int", 1, "factor of the score")


class KubePlugin(Plugin):
    """Rules and scores of one kube-scheduler plugin."""

    arguments: ClassVar[tuple[Argument, ...]] = (_WEIGHT,)

    def open(self) -> None:
        self.rules: list[NodeFilter] = []

    @property
    def weight(self) -> float:
        return self.given.number("weight")

    def arg(self, name: str, otherwise: Any = None) -> Any:
        value = self.option.arguments.get(name)
        return otherwise if value is None else value


class _Filtering(KubePlugin):
    def keep(self, rule: NodeFilter) -> list[NodeFilter]:
        self.rules = [rule]
        return self.rules

    def pre_predicate(self, task: TaskClass) -> Reason | None:
        found = first_rejection(self.rules, task)
        return None if found is None else found[1].as_reason(found[0].undone_by)


class NodeUnschedulable(_Filtering):
    """Cordoned nodes take only pods that tolerate it"""

    name = "NodeUnschedulable"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(unschedulable.NodeUnschedulable(self.session.snapshot))


class NodeName(_Filtering):
    """A pod that names its node can only go there"""

    name = "NodeName"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(node_name.NodeName(self.session.snapshot))


class TaintToleration(_Filtering):
    """Hard taints keep pods out, soft ones score"""

    name = "TaintToleration"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(taints.TaintToleration(self.session.snapshot))

    def node_scorers(self) -> list[NodeScorer]:
        return [PreferredTaints(self.session.snapshot, self.weight)]


class NodeAffinity(_Filtering):
    """Node selectors, required and preferred node affinity"""

    name = "NodeAffinity"
    arguments = (_WEIGHT, Argument("addedAffinity", "mapping", None, "affinity that every pod gets besides its own"))

    def _added(self) -> NodeDemand | None:
        added = self.arg("addedAffinity")
        if not added:
            return None
        required = read_node_selector(added.get("requiredDuringSchedulingIgnoredDuringExecution"))
        preferred = added.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms = tuple((int(p.get("weight") or 0), read_node_term(p.get("preference") or {})) for p in preferred)
        return NodeDemand(required, terms)

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(node_affinity.NodeAffinity(self.session.snapshot, self._added()))

    def node_scorers(self) -> list[NodeScorer]:
        return [PreferredNodes(self.session.snapshot, self.weight, self._added())]


class NodePorts(_Filtering):
    """Ports of the host are free"""

    name = "NodePorts"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(ports.NodePorts(self.session))


def weighted(entries: Sequence[Mapping[str, Any]] | None) -> tuple[tuple[str, int], ...]:
    if not entries:
        return CPU_AND_MEMORY
    return tuple((str(entry["name"]), int(entry.get("weight") or 1)) for entry in entries)


class NodeResourcesFit(_Filtering):
    """Free resources for the pod's requests, and how full the node would be"""

    name = "NodeResourcesFit"
    arguments = (
        _WEIGHT,
        Argument("ignoredResources", "list", None, "extended resources that are not looked at"),
        Argument("ignoredResourceGroups", "list", None, "domains of such resources"),
        Argument("scoringStrategy", "mapping", None, "type, resources with weights, and the curve of a ratio"),
    )

    def node_filters(self) -> list[NodeFilter]:
        groups = self.arg("ignoredResourceGroups", ())
        rule = fit.NodeResourcesFit(self.session, self.arg("ignoredResources", ()), groups)
        cards = any(shape.cards is not None for shape in self.session.snapshot.shapes)
        return [*self.keep(rule), *([UnservedCards(self.session)] if cards else ())]

    def node_scorers(self) -> list[NodeScorer]:
        strategy = self.arg("scoringStrategy", {})
        points = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or ()
        curve = tuple((int(p.get("utilization") or 0), int(p.get("score") or 0) * 10) for p in points)
        kind = strategy.get("type") or "LeastAllocated"
        return [Allocation(self.session, self.weight, kind, weighted(strategy.get("resources")), curve)]


class NodeResourcesBalancedAllocation(KubePlugin):
    """Resources of a node are filled evenly"""

    name = "NodeResourcesBalancedAllocation"
    arguments = (_WEIGHT, Argument("resources", "list", None, "resources that take part"))

    def node_scorers(self) -> list[NodeScorer]:
        return [BalancedAllocation(self.session, self.weight, weighted(self.arg("resources")))]


class ImageLocality(KubePlugin):
    """Nodes that hold the pod's images already"""

    name = "ImageLocality"

    def node_scorers(self) -> list[NodeScorer]:
        return [ImageScore(self.session.snapshot, self.weight)]


class PodTopologySpread(_Filtering):
    """Spreads pods evenly over the domains of a node label"""

    name = "PodTopologySpread"
    arguments = (
        _WEIGHT,
        Argument("defaultConstraints", "list", None, "constraints of pods that have none"),
        Argument("defaultingType", "str", "System", "System or List"),
    )

    def _defaults(self) -> SpreadDefaults:
        if self.arg("defaultingType", "System") == "System":
            return SpreadDefaults()
        entries = self.arg("defaultConstraints", ())
        return SpreadDefaults(tuple(read_constraint(entry) for entry in entries), listed=True)

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(spread.PodTopologySpread(self.session, self._defaults()))

    def node_scorers(self) -> list[NodeScorer]:
        return [SoftSpread(self.session, self.weight, self._defaults())]


def read_constraint(entry: Mapping[str, Any]) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=int(entry.get("maxSkew") or 1),
        topology_key=str(entry.get("topologyKey") or ""),
        hard=entry.get("whenUnsatisfiable") != "ScheduleAnyway",
        min_domains=entry.get("minDomains"),
        honor_node_affinity=(entry.get("nodeAffinityPolicy") or "Honor") == "Honor",
        honor_node_taints=(entry.get("nodeTaintsPolicy") or "Ignore") == "Honor",
    )


class InterPodAffinity(_Filtering):
    """Affinity and anti-affinity between pods"""

    name = "InterPodAffinity"
    arguments = (
        _WEIGHT,
        Argument("hardPodAffinityWeight", "int", 1, "what required affinity of placed pods weighs in scores"),
        Argument("ignorePreferredTermsOfExistingPods", "bool", False, "score only pods that have wishes of their own"),
    )

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(inter_pod.InterPodAffinity(self.session))

    def node_scorers(self) -> list[NodeScorer]:
        hard, ignore = self.arg("hardPodAffinityWeight", 1), self.arg("ignorePreferredTermsOfExistingPods", False)
        return [PodPreferences(self.session, self.weight, hard_weight=int(hard), ignore_others=bool(ignore))]


class VolumeRestrictions(_Filtering):
    """Disks and claims that only one pod may hold"""

    name = "VolumeRestrictions"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(volume_restrictions.VolumeRestrictions(self.session))


class NodeVolumeLimits(_Filtering):
    """How many volumes of a CSI driver a node attaches"""

    name = "NodeVolumeLimits"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(volume_limits.NodeVolumeLimits(self.session))


class VolumeBinding(_Filtering):
    """Volumes that can be reached, found or made on the node"""

    name = "VolumeBinding"
    arguments = (
        _WEIGHT,
        Argument("bindTimeoutSeconds", "int", 600, "binding waits ten minutes for volumes", has_effect=False),
        Argument("shape", "list", None, "Kubernetes scores volumes only behind a feature gate", has_effect=False),
    )

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(volume_binding.VolumeBinding(self.session))


class VolumeZone(_Filtering):
    """Zones of bound volumes"""

    name = "VolumeZone"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(volume_zone.VolumeZone(self.session.snapshot))


class DynamicResources(_Filtering):
    """The devices that the pod claims exist and are free on the node"""

    name = "DynamicResources"
    arguments = (
        _WEIGHT,
        Argument("filterTimeout", "duration", 10.0, "the search for devices has its own bound", has_effect=False),
        Argument("bindingTimeout", "duration", 600.0, "how long drivers may take until the binding conditions are true"),
    )

    def node_filters(self) -> list[NodeFilter]:
        self.rules = [dynamic_resources.DynamicResources(self.session)]
        return self.rules

    def node_scorers(self) -> list[NodeScorer]:
        return [dynamic_resources.DevicePreferences(self.session, self.weight)]

    def close(self) -> None:
        extended = self.session.shared(ExtendedClaims)
        if any(shape.claims or extended.concerns(shape) for shape in self.session.snapshot.shapes):
            self.session.shared(Claims).record()


class NodeDeclaredFeatures(_Filtering):
    """Features of the kubelet that the pod needs, and the node declares"""

    name = "NodeDeclaredFeatures"

    def node_filters(self) -> list[NodeFilter]:
        return self.keep(declared_features.NodeDeclaredFeatures(self.session.snapshot))


KUBE_PLUGINS: tuple[type[Plugin], ...] = (
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
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    NodeDeclaredFeatures,
)
