"""NodeAffinity: the nodes a pod demands and the nodes it would like."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.cluster import Object, labels_of, name_of
from tests.reference.normalise import default_normalise
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, error, unresolvable

from navarch.model.label_syntax import aggregate
from navarch.model.selectors import (
    node_selector_matches,
    pinned_nodes,
    read_node_selector,
    read_node_term,
    term_errors,
    term_matches,
)
from navarch.model.spec import NodeTerm

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node_affinity_of(pod: Object) -> Object:
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


def demands_met(pod: Object, node: Object) -> bool:
    """nodeSelector and required node affinity, as other plugins ask for it too."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    terms = read_node_selector(node_affinity_of(pod).get(REQUIRED))
    return terms is None or node_selector_matches(terms, labels, name_of(node))


def preferences(affinity: Object) -> list[tuple[int, int, NodeTerm]]:
    """(position, weight, term), those without weight or content left out."""
    read = [(i, p.get("weight") or 0, read_node_term(p["preference"])) for i, p in enumerate(affinity.get(PREFERRED) or ())]
    return [(i, weight, term) for i, weight, term in read if weight and (term.expressions or term.fields)]


class NodeAffinity(Plugin):
    def start(self) -> None:
        self.affinity = node_affinity_of(self.pod)
        self.added = self.args.get("addedAffinity") or {}

    def pre_filter(self) -> Status:
        required = read_node_selector(self.affinity.get(REQUIRED))
        if required is None and not self.pod["spec"].get("nodeSelector") and self.added.get(REQUIRED) is None:
            return SKIP
        names = pinned_nodes(required or ())
        if names is None:
            return SUCCESS
        return Status("Success", (), names) if names else unresolvable("pod affinity terms conflict")

    def filter(self, node: Object) -> Status:
        added = read_node_selector(self.added.get(REQUIRED))
        if added is not None and not node_selector_matches(added, labels_of(node), name_of(node)):
            return unresolvable("node(s) didn't match scheduler-enforced node affinity")
        if not demands_met(self.pod, node):
            return unresolvable("node(s) didn't match Pod's node affinity/selector")
        return SUCCESS

    def pre_score(self, candidates: Sequence[Object]) -> Status:
        if not self.affinity.get(PREFERRED) and not self.added.get(PREFERRED):
            return SKIP
        errors = [text for i, _, term in preferences(self.affinity) for text in term_errors(term, f"[{i}]")]
        return error(aggregate(errors)) if errors else SUCCESS

    def score(self, node: Object) -> int:
        wishes = preferences(self.affinity) + preferences(self.added)
        return sum(weight for _, weight, term in wishes if term_matches(term, labels_of(node), name_of(node)))

    def normalise(self, scores: dict[str, int]) -> dict[str, int]:
        return dict(zip(scores, default_normalise(list(scores.values())), strict=True))
