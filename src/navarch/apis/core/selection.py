"""Selectors, affinity, spread and tolerations of API objects as values of the model.

Match-label keys become requirements of the selector with the pod's own values, as in the API server. Doing it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from navarch.apis.core.objects import LabelSelectorPart, LabelSelectorRequirement
from navarch.apis.core.pod_objects import (
    Affinity,
    NodeAffinityPart,
    NodeSelectorTerm,
    PodAffinityPart,
    PodAffinityTerm,
    TolerationPart,
    TopologySpreadConstraint,
)
from navarch.model.selectors import equalities
from navarch.model.spec import (
    Labels,
    LabelSelector,
    NodeAffinity,
    NodeTerm,
    PodAffinity,
    PodTerm,
    Requirement,
    SpreadConstraint,
    Toleration,
)


def requirements(parts: Iterable[LabelSelectorRequirement] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(part.key, part.operator, part.values or ()) for part in parts or ())


def label_selector(part: LabelSelectorPart | None) -> LabelSelector | None:
    """None for an absent selector, which matches nothing. An empty selector matches everything."""
    if part is None:
        return None
    return LabelSelector(equalities(part.match_labels or {}) + requirements(part.match_expressions))


def folded(selector: LabelSelector | None, keys: Iterable[str] | None, operator: str, labels: Labels) -> LabelSelector | None:
    """The selector with one requirement more for each key that the pod carries."""
    if selector is None or not keys:
        return selector
    found = list(selector.requirements)
    for key in keys:
        value = labels.get(key)
        if value is not None:
            requirement = Requirement(key, operator, (value,))
            if requirement not in found:
                found.append(requirement)
    return LabelSelector(tuple(found))


def node_term(part: NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(requirements(part.match_expressions), requirements(part.match_fields))


def node_affinity(part: NodeAffinityPart | None) -> NodeAffinity | None:
    if part is None or (part.required is None and part.preferred is None):
        return None
    required = None
    if part.required is not None:
        required = tuple(node_term(term) for term in part.required.node_selector_terms or ())
    return NodeAffinity(required, tuple((each.weight, node_term(each.preference)) for each in part.preferred or ()))


def pod_term(part: PodAffinityTerm, namespace: str, labels: Labels) -> PodTerm:
    selector = folded(label_selector(part.label_selector), part.match_label_keys, "In", labels)
    selector = folded(selector, part.mismatch_label_keys, "NotIn", labels)
    namespaces = part.namespaces or ()
    if not namespaces and part.namespace_selector is None:
        namespaces = (namespace,)
    return PodTerm(part.topology_key, selector, namespaces, label_selector(part.namespace_selector))


def pod_affinity(affinity: Affinity | None, namespace: str, labels: Labels) -> PodAffinity | None:
    if affinity is None:
        return None
    near, far = affinity.pod_affinity or PodAffinityPart(), affinity.pod_anti_affinity or PodAffinityPart()

    def required(part: PodAffinityPart) -> tuple[PodTerm, ...]:
        return tuple(pod_term(term, namespace, labels) for term in part.required or ())

    def preferred(part: PodAffinityPart) -> tuple[tuple[int, PodTerm], ...]:
        return tuple((each.weight, pod_term(each.pod_affinity_term, namespace, labels)) for each in part.preferred or ())

    found = PodAffinity(required(near), preferred(near), required(far), preferred(far))
    return None if found == PodAffinity() else found


def spread_constraint(part: TopologySpreadConstraint, labels: Labels) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=part.max_skew,
        topology_key=part.topology_key,
        hard=part.when_unsatisfiable != "ScheduleAnyway",
        selector=folded(label_selector(part.label_selector), part.match_label_keys, "In", labels),
        min_domains=part.min_domains,
        honor_node_affinity=part.node_affinity_policy != "Ignore",
        honor_node_taints=part.node_taints_policy == "Honor",
    )


def toleration(part: TolerationPart) -> Toleration:
    return Toleration(part.key or "", part.operator or "Equal", part.value or "", part.effect or "")
