"""The `predicates` plugin of Volcano's policy files: kube-scheduler's filters, each with a switch.

Resources are not among them: the engine checks those itself. Filters whose refusal an eviction could undo do not end the checks: a
node with too many pods and no free port gives both reasons.
"""

from __future__ import annotations

from navarch.engine.arguments import Argument
from navarch.engine.node_functions import NodeFilter, TaskClass, first_rejection
from navarch.engine.plugin import Plugin
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.plugins.predicates.devices.claims import Claims
from navarch.plugins.predicates.devices.dynamic_resources import DynamicResources
from navarch.plugins.predicates.devices.extended_claims import ExtendedClaims
from navarch.plugins.predicates.devices.extended_resources import class_behind, served_by_devices
from navarch.plugins.predicates.devices.unserved_cards import UnservedCards
from navarch.plugins.predicates.nodes.affinity import NodeAffinity
from navarch.plugins.predicates.nodes.pod_limit import PodNumber
from navarch.plugins.predicates.nodes.ports import NodePorts
from navarch.plugins.predicates.nodes.taints import TaintToleration
from navarch.plugins.predicates.nodes.unschedulable import NodeUnschedulable
from navarch.plugins.predicates.pods.affinity import InterPodAffinity
from navarch.plugins.predicates.pods.default_spread import SpreadDefaults
from navarch.plugins.predicates.pods.spread import PodTopologySpread
from navarch.plugins.predicates.rules_in_use import rules_in_use
from navarch.plugins.predicates.unsupported import Unsupported
from navarch.plugins.predicates.volumes.binding import VolumeBinding
from navarch.plugins.predicates.volumes.limits import NodeVolumeLimits
from navarch.plugins.predicates.volumes.zone import VolumeZone

_SWITCHES = (
    ("NodeAffinity", "node selectors and required node affinity"),
    ("NodePorts", "ports of the host"),
    ("TaintToleration", "hard taints"),
    ("PodAffinity", "required affinity and anti-affinity between pods"),
    ("NodeVolumeLimits", "how many volumes of a CSI driver a node attaches"),
    ("VolumeZone", "zones of bound volumes"),
    ("PodTopologySpread", "hard topology spread constraints"),
    ("VolumeBinding", "volumes that can be reached, found or made on the node"),
    ("DynamicResourceAllocation", "devices that the pod claims"),
)


def _is_reported(session: Session, resource: str) -> bool:
    dim = session.snapshot.space.find(resource)
    return dim is not None and dim < len(session.total) and session.total[dim] > 0


class Predicates(Plugin):
    """Where pods may go: kube-scheduler's filters"""

    name = "predicates"
    waits_for_room = True
    arguments = (
        *(Argument(f"predicate.{name}Enable", "bool", True, doc) for name, doc in _SWITCHES),
        Argument("predicate.GPUSharingEnable", "bool", False, "it is deviceshare.GPUSharingEnable of deviceshare", has_effect=False),
        Argument("predicate.GPUNumberEnable", "bool", False, "it is deviceshare.GPUNumberEnable of deviceshare", has_effect=False),
        Argument("predicate.CacheEnable", "bool", False, "answers are always cached by shape", has_effect=False),
        Argument("volumebinding.weight", "int", 1, "Kubernetes scores volumes only behind a feature gate", has_effect=False),
        Argument("volumebinding.bindTimeoutSeconds", "int", 600, "binding waits ten minutes for volumes", has_effect=False),
        Argument("volumebinding.shape", "list", None, "Kubernetes scores volumes only behind a feature gate", has_effect=False),
        Argument("dynamicresources.filterTimeoutSeconds", "int", 10, "the search for devices has its own bound", has_effect=False),
    )

    def before_open(self) -> None:
        session = self.session
        self._warns = False
        if self._on("DynamicResourceAllocation"):
            session.serve_by_claims(served_by_devices(session.snapshot))
            return
        extended = session.shared(ExtendedClaims)
        asked = (name for shape in session.snapshot.shapes if extended.concerns(shape) for name, _ in shape.extended)
        behind = sorted({name for name in asked if class_behind(session.snapshot, name) is not None})
        if unserved := [name for name in behind if not _is_reported(session, name)]:
            text = f"no node reports {', '.join(unserved)}: this policy does not serve extended resources by devices of a DeviceClass"
            session.record.warnings.append(text)
            self._warns = True

    def open(self) -> None:
        session = self.session
        self._outspoken: list[NodeFilter] | None = None
        """Filters of the whole policy that have a word on a task before any node is looked at; asked with every task."""
        self._asked: dict[int, list[NodeFilter]] = {}
        """Those that apply to a class, for the cycle."""
        self._in_use = rules_in_use(session.snapshot)

    def next_cycle(self) -> bool:
        used = self._in_use
        follows_pods = used.ports or used.pod_affinity or used.volumes or used.spread or used.claims or used.unserved_cards
        return not follows_pods and not self._warns

    def node_filters(self) -> list[NodeFilter]:
        session, snapshot = self.session, self.session.snapshot
        in_use = self._in_use
        rules: list[NodeFilter] = []
        if in_use.unsupported:
            rules.append(Unsupported())
        if in_use.unserved_cards:
            rules.append(UnservedCards(session))
        rules.append(PodNumber())
        if in_use.cordoned:
            rules.append(NodeUnschedulable(snapshot))
        if in_use.node_demand and self._on("NodeAffinity"):
            rules.append(NodeAffinity(snapshot))
        if in_use.hard_taints and self._on("TaintToleration"):
            rules.append(TaintToleration(snapshot))
        if in_use.ports and self._on("NodePorts"):
            rules.append(NodePorts(session))
        if in_use.pod_affinity and self._on("PodAffinity"):
            rules.append(InterPodAffinity(session))
        if in_use.volumes and self._on("NodeVolumeLimits"):
            rules.append(NodeVolumeLimits(session))
        if in_use.volumes and self._on("VolumeZone"):
            rules.append(VolumeZone(snapshot))
        if in_use.spread and self._on("PodTopologySpread"):
            rules.append(PodTopologySpread(session, SpreadDefaults()))
        if in_use.volumes and self._on("VolumeBinding"):
            rules.append(VolumeBinding(session))
        if in_use.claims and self._on("DynamicResourceAllocation"):
            rules.append(DynamicResources(session))
        for rule in rules:
            rule.has_last_word = False
        return list(rules)

    def close(self) -> None:
        if not self._in_use.claims:
            return
        extended = self.session.shared(ExtendedClaims)
        if any(shape.claims or extended.concerns(shape) for shape in self.session.snapshot.shapes):
            self.session.shared(Claims).record()

    def _on(self, name: str) -> bool:
        return self.given.flag(f"predicate.{name}Enable")

    def pre_predicate(self, task: TaskClass) -> Reason | None:
        if self._outspoken is None:
            rules = self.session.filters
            self._outspoken = [rule for rule in rules if type(rule).reject is not NodeFilter.reject]
        asked = self._asked.get(task.number)
        if asked is None:
            asked = self._asked[task.number] = [rule for rule in self._outspoken if rule.applies(task)]
        found = first_rejection(asked, task) if asked else None
        return None if found is None else found[1].as_reason(found[0].undone_by)
