"""InterPodAffinity: pods that want to be together and pods that will not be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.reference.cluster import Object, labels_of, name_of, namespace_of
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable

from navarch.model.label_syntax import aggregate
from navarch.model.selectors import label_selector_errors, read_label_selector, selector_matches
from navarch.model.spec import LabelSelector

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LISTS = {
    "requiredAffinityTerms": ("podAffinity", REQUIRED),
    "requiredAntiAffinityTerms": ("podAntiAffinity", REQUIRED),
    "preferredAffinityTerms": ("podAffinity", PREFERRED),
    "preferredAntiAffinityTerms": ("podAntiAffinity", PREFERRED),
}


class Term(NamedTuple):
    key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int

    def matches(self, pod: Object, namespace_labels: dict[str, str]) -> bool:
        if namespace_of(pod) not in self.namespaces and not selector_matches(self.namespace_selector, namespace_labels):
            return False
        return selector_matches(self.selector, labels_of(pod))


def terms_of(pod: Object, which: str) -> tuple[list[Term], str]:
    """The terms of one of a pod's four lists, or none and what is wrong with the first bad one."""
    side, strength = LISTS[which]
    terms = []
    for entry in ((pod["spec"].get("affinity") or {}).get(side) or {}).get(strength) or ():
        manifest = entry["podAffinityTerm"] if strength == PREFERRED else entry
        selector = read_label_selector(manifest.get("labelSelector"))
        namespace_selector = read_label_selector(manifest.get("namespaceSelector"))
        if errors := label_selector_errors(selector) or label_selector_errors(namespace_selector):
            return [], f"{which}: {aggregate(errors)}"
        namespaces = frozenset(manifest.get("namespaces") or ())
        if not namespaces and namespace_selector is None:
            namespaces = frozenset({namespace_of(pod)})
        terms.append(Term(manifest["topologyKey"], selector, namespaces, namespace_selector, entry.get("weight", 0)))
    return terms, ""


class InterPodAffinity(Plugin):
    def start(self) -> None:
        read = {which: terms_of(self.pod, which) for which in LISTS}
        errors = [complaint for _, complaint in read.values() if complaint]
        self.parse_error = aggregate(errors) if errors else ""
        named = {which: [self._with_namespaces(term) for term in terms] for which, (terms, _) in read.items()}
        self.affinity, self.anti = named["requiredAffinityTerms"], named["requiredAntiAffinityTerms"]
        self.likes, self.dislikes = named["preferredAffinityTerms"], named["preferredAntiAffinityTerms"]
        own = self.cluster.find("Namespace", namespace_of(self.pod))
        self.namespace_labels = labels_of(own) if own is not None else {}

    def _with_namespaces(self, term: Term) -> Term:
        if term.namespace_selector is None or not term.namespace_selector.requirements:
            return term
        chosen = {
            name_of(namespace)
            for namespace in self.cluster.of_kind("Namespace")
            if selector_matches(term.namespace_selector, labels_of(namespace))
        }
        return term._replace(namespaces=term.namespaces | chosen)

    def _wanted_by_all(self, pod: Object) -> bool:
        """The incoming pod's own terms never see the other's namespace labels, only the names worked out before."""
        return bool(self.affinity) and all(term.matches(pod, {}) for term in self.affinity)

    def _count(self, pod: Object, node: Object, step: int) -> None:
        labels = labels_of(node)
        for term in terms_of(pod, "requiredAntiAffinityTerms")[0]:
            if term.matches(self.pod, self.namespace_labels):
                self._bump(self.others_anti, term.key, labels, step)
        if self._wanted_by_all(pod):
            for term in self.affinity:
                self._bump(self.friends, term.key, labels, step)
        for term in self.anti:
            if term.matches(pod, {}):
                self._bump(self.foes, term.key, labels, step)

    @staticmethod
    def _bump(table: dict[tuple[str, str], int], key: str, labels: dict[str, str], step: int) -> None:
        if key in labels:
            pair = (key, labels[key])
            table[pair] = table.get(pair, 0) + step
            if table[pair] == 0:
                del table[pair]

    def pre_filter(self) -> Status:
        if self.parse_error:
            return unresolvable(f"parsing pod: {self.parse_error}")
        self.others_anti: dict[tuple[str, str], int] = {}
        self.friends: dict[tuple[str, str], int] = {}
        self.foes: dict[tuple[str, str], int] = {}
        for pod, node in self.cluster.placed():
            self._count(pod, node, 1)
        return SUCCESS if self.others_anti or self.affinity or self.anti else SKIP

    def pod_added(self, pod: Object, node: Object) -> None:
        self._count(pod, node, 1)

    def pod_removed(self, pod: Object, node: Object) -> None:
        self._count(pod, node, -1)

    def filter(self, node: Object) -> Status:
        labels = labels_of(node)
        if not self._near_friends(labels):
            return unresolvable("node(s) didn't match pod affinity rules")
        if any(term.key in labels and self.foes.get((term.key, labels[term.key]), 0) > 0 for term in self.anti):
            return unschedulable("node(s) didn't match pod anti-affinity rules")
        if any(self.others_anti.get(pair, 0) > 0 for pair in labels.items()):
            return unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
        return SUCCESS

    def _near_friends(self, labels: dict[str, str]) -> bool:
        if any(term.key not in labels for term in self.affinity):
            return False
        if all(self.friends.get((term.key, labels[term.key]), 0) > 0 for term in self.affinity):
            return True
        return not self.friends and self._wanted_by_all(self.pod)

    def pre_score(self, candidates: Sequence[Object]) -> Status:
        has_wishes = any(
            ((self.pod["spec"].get("affinity") or {}).get(side) or {}).get(PREFERRED) for side in ("podAffinity", "podAntiAffinity")
        )
        if self.args.get("ignorePreferredTermsOfExistingPods") and not has_wishes:
            return SKIP
        if self.parse_error:
            return error(f"failed to parse pod: {self.parse_error}")
        self.table: dict[tuple[str, str], int] = {}
        for pod, node in self.cluster.placed():
            self._weigh(pod, labels_of(node))
        return SUCCESS if self.table else SKIP

    def _weigh(self, pod: Object, labels: dict[str, str]) -> None:
        def add(key: str, weight: int) -> None:
            if key in labels:
                self.table[key, labels[key]] = self.table.get((key, labels[key]), 0) + weight

        for terms, sign in ((self.likes, 1), (self.dislikes, -1)):
            for term in terms:
                if term.matches(pod, {}):
                    add(term.key, sign * term.weight)
        hard_weight = self.args.get("hardPodAffinityWeight", 1)
        for which, sign in (("preferredAffinityTerms", 1), ("preferredAntiAffinityTerms", -1)):
            for term in terms_of(pod, which)[0]:
                if term.matches(self.pod, self.namespace_labels):
                    add(term.key, sign * term.weight)
        for term in terms_of(pod, "requiredAffinityTerms")[0]:
            if hard_weight > 0 and term.matches(self.pod, self.namespace_labels):
                add(term.key, hard_weight)

    def score(self, node: Object) -> int:
        return sum(self.table.get(pair, 0) for pair in labels_of(node).items())

    def normalise(self, scores: dict[str, int]) -> dict[str, int]:
        low, high = min(scores.values(), default=0), max(scores.values(), default=0)
        if low == high:
            return dict.fromkeys(scores, 0)
        return {name: int(100.0 * (float(score - low) / float(high - low))) for name, score in scores.items()}
