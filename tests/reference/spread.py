"""PodTopologySpread: pods of a kind evenly over the values of a node label."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log
from typing import NamedTuple

from tests.reference.cluster import Cluster, Object, labels_of, name_of, namespace_of, terminating
from tests.reference.node_affinity import demands_met
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from tests.reference.taints import taints_of

from navarch.model.selectors import equalities, first_untolerated, read_label_selector, read_toleration, selector_matches
from navarch.model.spec import LabelSelector

HOSTNAME = "kubernetes.io/hostname"
MISMATCH = "node(s) didn't match pod topology spread constraints"
SYSTEM_DEFAULTS = [
    {"maxSkew": 3, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
    {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"},
]
CONTROLLERS = {("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}


class Constraint(NamedTuple):
    max_skew: int
    key: str
    selector: LabelSelector | None
    min_domains: int
    honour_affinity: bool
    honour_taints: bool


def default_selector(cluster: Cluster, pod: Object) -> LabelSelector:
    """What Services and the controller of a pod select, all together; no requirement: nothing is known."""
    labels: dict[str, str] = {}
    for service in cluster.of_kind("Service"):
        wanted = service["spec"].get("selector")
        if namespace_of(service) == namespace_of(pod) and wanted:
            if all(labels_of(pod).get(key) == value for key, value in wanted.items()):
                labels.update(wanted)
    requirements = equalities(labels)
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and (owner["apiVersion"], owner["kind"]) in CONTROLLERS:
            controller = cluster.find(owner["kind"], owner["name"], namespace_of(pod))
            if controller is not None:
                selector = controller["spec"].get("selector")
                if owner["kind"] == "ReplicationController":
                    selector = {"matchLabels": selector or {}}
                found = read_label_selector(selector)
                requirements += found.requirements if found else ()
    return LabelSelector(requirements)


def write_selector(selector: LabelSelector) -> str:
    """The selector as one line, for equalities only."""
    return ",".join(sorted(f"{r.key}={r.values[0]}" for r in selector.requirements))


class PodTopologySpread(Plugin):
    def start(self) -> None:
        self.own = self.pod["spec"].get("topologySpreadConstraints") or []
        self.system = self.args.get("defaultingType", "System") == "System"
        self.require_all = bool(self.own) or not self.system
        self.tolerations = [read_toleration(t) for t in self.pod["spec"].get("tolerations") or ()]

    def _constraints(self, action: str) -> list[Constraint]:
        entries = self.own or (SYSTEM_DEFAULTS if self.system else self.args.get("defaultConstraints") or [])
        chosen = [entry for entry in entries if entry["whenUnsatisfiable"] == action]
        if self.own:
            return [self._read(entry, self._own_selector(entry)) for entry in chosen]
        selector = default_selector(self.cluster, self.pod) if chosen else LabelSelector()
        return [self._read(entry, selector) for entry in chosen] if selector.requirements else []

    def _own_selector(self, entry: Object) -> LabelSelector | None:
        selector = read_label_selector(entry.get("labelSelector"))
        labels = labels_of(self.pod)
        added = {key: labels[key] for key in entry.get("matchLabelKeys") or () if key in labels}
        return None if selector is None else LabelSelector(selector.requirements + equalities(added))

    @staticmethod
    def _read(entry: Object, selector: LabelSelector | None) -> Constraint:
        return Constraint(
            entry["maxSkew"],
            entry["topologyKey"],
            selector,
            entry.get("minDomains") or 1,
            (entry.get("nodeAffinityPolicy") or "Honor") == "Honor",
            (entry.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        )

    def _included(self, constraint: Constraint, node: Object) -> bool:
        if constraint.honour_affinity and not demands_met(self.pod, node):
            return False
        return not constraint.honour_taints or first_untolerated(taints_of(node), self.tolerations) is None

    def _count(self, constraint: Constraint, node: Object) -> int:
        if constraint.selector is None or not constraint.selector.requirements:
            return 0
        return sum(
            namespace_of(pod) == namespace_of(self.pod)
            and not terminating(pod)
            and selector_matches(constraint.selector, labels_of(pod))
            for pod in self.cluster.pods_on(name_of(node))
        )

    def pre_filter(self) -> Status:
        self.hard = self._constraints("DoNotSchedule")
        if not self.hard:
            return SKIP
        self.counts: list[dict[str, int]] = [{} for _ in self.hard]
        for node in self.cluster.nodes.values():
            for counts, constraint, value in self._eligible(node):
                counts[value] = counts.get(value, 0) + self._count(constraint, node)
        return SUCCESS

    def _eligible(self, node: Object) -> list[tuple[dict[str, int], Constraint, str]]:
        labels = labels_of(node)
        if any(constraint.key not in labels for constraint in self.hard):
            return []
        return [
            (counts, constraint, labels[constraint.key])
            for counts, constraint in zip(self.counts, self.hard, strict=True)
            if self._included(constraint, node)
        ]

    def _moved(self, pod: Object, node: Object, step: int) -> None:
        """Dry runs adjust the counts without asking whether the pod was terminating, hence never counted."""
        if namespace_of(pod) != namespace_of(self.pod):
            return
        for counts, constraint, value in self._eligible(node):
            if selector_matches(constraint.selector, labels_of(pod)):
                counts[value] = counts.get(value, 0) + step

    def pod_added(self, pod: Object, node: Object) -> None:
        self._moved(pod, node, 1)

    def pod_removed(self, pod: Object, node: Object) -> None:
        self._moved(pod, node, -1)

    def filter(self, node: Object) -> Status:
        labels = labels_of(node)
        for counts, constraint in zip(self.counts, self.hard, strict=True):
            if constraint.key not in labels:
                return unresolvable(f"{MISMATCH} (missing required label)")
            lowest = 0 if len(counts) < constraint.min_domains else min(counts.values())
            itself = int(selector_matches(constraint.selector, labels_of(self.pod)))
            if counts.get(labels[constraint.key], 0) + itself - lowest > constraint.max_skew:
                return unschedulable(MISMATCH)
        return SUCCESS

    def pre_score(self, candidates: Sequence[Object]) -> Status:
        self.soft = self._constraints("ScheduleAnyway")
        if not self.soft:
            return SKIP
        keys = [constraint.key for constraint in self.soft]
        self.ignored = {name_of(node) for node in candidates if self.require_all and any(key not in labels_of(node) for key in keys)}
        kept = [node for node in candidates if name_of(node) not in self.ignored]
        self.domains: list[dict[str, int]] = []
        self.weights: list[float] = []
        for constraint in self.soft:
            domains: dict[str, int] = {}
            if constraint.key != HOSTNAME:
                domains = {labels_of(node).get(constraint.key, ""): 0 for node in kept}
            self.domains.append(domains)
            self.weights.append(log((len(kept) if constraint.key == HOSTNAME else len(domains)) + 2))
        for node in self.cluster.nodes.values():
            labels = labels_of(node)
            if self.require_all and any(key not in labels for key in keys):
                continue
            for constraint, domains in zip(self.soft, self.domains, strict=True):
                value = labels.get(constraint.key, "")
                if value in domains and self._included(constraint, node):
                    domains[value] += self._count(constraint, node)
        return SUCCESS

    def score(self, node: Object) -> int:
        if name_of(node) in self.ignored:
            return 0
        total = 0.0
        for constraint, domains, weight in zip(self.soft, self.domains, self.weights, strict=True):
            value = labels_of(node).get(constraint.key)
            if value is not None:
                count = self._count(constraint, node) if constraint.key == HOSTNAME else domains[value]
                total += float(count) * weight + float(constraint.max_skew - 1)
        return floor(total + 0.5)

    def normalise(self, scores: dict[str, int]) -> dict[str, int]:
        kept = [score for name, score in scores.items() if name not in self.ignored]
        low, high = min(kept, default=0), max(kept, default=0)
        return {
            name: 0 if name in self.ignored else 100 if high == 0 else 100 * (high + low - score) // high
            for name, score in scores.items()
        }
