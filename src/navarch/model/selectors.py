"""Matching of label selectors, node selector terms, taints and tolerations.

Selectors are the immutable values of `spec`, so pods with the same rules share one shape and a mask is computed per
rule and not per pod. Matching works on plain mappings of strings. Presence matters everywhere: an absent label
selector matches nothing, an empty one matches all, an empty node selector term matches nothing.

>>> chosen = read_label_selector({"matchLabels": {"app": "web"}})
>>> selector_matches(chosen, {"app": "web"}), selector_matches(None, {}), selector_matches(EVERYTHING, {"any": "thing"})
(True, False, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from navarch.model.label_syntax import field_requirement_errors, parse_int64, requirement_errors
from navarch.model.spec import Labels, LabelSelector, NodeTerm, Requirement, Taint, Toleration
from navarch.object_types import ReadOnlyManifest

NODE_NAME_FIELD: Final = "metadata.name"
EVERYTHING: Final = LabelSelector()
HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


def compare(operator: str, text: str, bound: str) -> bool:
    """Gt or Lt between two label values; what does not spell an integer compares as false."""
    number, limit = parse_int64(text), parse_int64(bound)
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit


def requirement_matches(requirement: Requirement, labels: Labels) -> bool:
    """An absent key satisfies NotIn and DoesNotExist and nothing else; an unknown operator is never satisfied."""
    found = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return found is not None and found in requirement.values
        case "NotIn":
            return found is None or found not in requirement.values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" if found is not None and len(requirement.values) == 1:
            return compare(requirement.operator, found, requirement.values[0])
    return False


def selector_matches(selector: LabelSelector | None, labels: Labels) -> bool:
    return selector is not None and all(requirement_matches(r, labels) for r in selector.requirements)


def label_selector_errors(selector: LabelSelector | None) -> list[str]:
    """Why the selector cannot be used; the first bad requirement decides, and Gt and Lt are not for pods."""
    for requirement in selector.requirements if selector else ():
        if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return [f'"{requirement.operator}" is not a valid label selector operator']
        if errors := requirement_errors(requirement.key, requirement.operator, requirement.values):
            return errors
    return []


def term_errors(term: NodeTerm, path: str = "") -> list[str]:
    """Every malformed requirement of a node selector term; `path` says where the term stands."""
    found = []
    for i, requirement in enumerate(term.expressions):
        where = f"{path}.matchExpressions[{i}]"
        found += requirement_errors(requirement.key, requirement.operator, requirement.values, where)
    for i, requirement in enumerate(term.fields):
        found += field_requirement_errors(requirement.operator, requirement.values, f"{path}.matchFields[{i}]")
    return found


def term_usable(term: NodeTerm) -> bool:
    """Neither empty nor malformed; what is not usable matches no node."""
    return bool(term.expressions or term.fields) and not term_errors(term)


def term_matches(term: NodeTerm, labels: Labels, name: str) -> bool:
    """Whether the node fits a usable term: it does not look for errors again."""
    return all(requirement_matches(requirement, labels) for requirement in term.expressions) and all(
        # A field a node does not have reads as the empty text.
        ((name if requirement.key == NODE_NAME_FIELD else "") in requirement.values) == (requirement.operator == "In")
        for requirement in term.fields
    )


def node_selector_matches(terms: Iterable[NodeTerm], labels: Labels, name: str) -> bool:
    """Any usable term; malformed ones are passed over."""
    return any(term_usable(term) and term_matches(term, labels, name) for term in terms)


def pinned_nodes(terms: Sequence[NodeTerm]) -> frozenset[str] | None:
    """The nodes that terms name by metadata.name; None unless every term does so.

    Entries with several values count here although they make their term unusable.
    """
    names: set[str] = set()
    for term in terms:
        sets = [set(f.values) for f in term.fields if f.key == NODE_NAME_FIELD and f.operator == "In"]
        if not sets:
            return None
        names |= set.intersection(*sets)
    return frozenset(names) if terms else None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty effect covers all effects and an empty key all keys, but Equal still compares the value. Lt and Gt, which Kubernetes
    1.36 has as an alpha feature that is off, tolerate nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
    return False


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: frozenset[str] = HARD_EFFECTS,
) -> Taint | None:
    """The first taint of one of these effects that nothing tolerates."""
    for taint in taints:
        if taint.effect in effects and not tolerated(taint, tolerations):
            return taint
    return None


def equalities(pairs: Labels) -> tuple[Requirement, ...]:
    """A map of wanted labels as requirements, ordered by key so that equal maps give equal selectors."""
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted(pairs.items()))


def read_requirement(manifest: ReadOnlyManifest) -> Requirement:
    return Requirement(manifest.get("key") or "", manifest.get("operator") or "", tuple(manifest.get("values") or ()))


def read_label_selector(manifest: ReadOnlyManifest | None) -> LabelSelector | None:
    """A LabelSelector as the API has it: `matchLabels` and `matchExpressions`."""
    if manifest is None:
        return None
    expressions = tuple(read_requirement(expression) for expression in manifest.get("matchExpressions") or ())
    return LabelSelector(equalities(manifest.get("matchLabels") or {}) + expressions)


def read_node_term(manifest: ReadOnlyManifest) -> NodeTerm:
    return NodeTerm(
        tuple(read_requirement(expression) for expression in manifest.get("matchExpressions") or ()),
        tuple(read_requirement(field) for field in manifest.get("matchFields") or ()),
    )


def read_node_selector(manifest: ReadOnlyManifest | None) -> tuple[NodeTerm, ...] | None:
    """The terms of a NodeSelector; None where there is no selector, which is not the same as no terms."""
    if manifest is None:
        return None
    return tuple(read_node_term(term) for term in manifest.get("nodeSelectorTerms") or ())


def read_taint(manifest: ReadOnlyManifest) -> Taint:
    return Taint(manifest.get("key") or "", manifest.get("value") or "", manifest.get("effect") or "")


def read_toleration(manifest: ReadOnlyManifest) -> Toleration:
    return Toleration(
        manifest.get("key") or "",
        manifest.get("operator") or "Equal",
        manifest.get("value") or "",
        manifest.get("effect") or "",
    )
