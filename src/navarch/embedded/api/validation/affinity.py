"""Rules for affinity of pods: node selector terms, pod affinity terms, label selectors, weights. The words are kube-apiserver's."""

from __future__ import annotations

from collections.abc import Iterator

from navarch.embedded.api.errors import cause
from navarch.model.label_syntax import key_complaints, value_complaints
from navarch.object_types import Manifest

Faults = Iterator[Manifest]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_faults(affinity: Manifest, path: str) -> Faults:
    nodes = affinity.get("nodeAffinity") or {}
    yield from _node_affinity_faults(nodes, f"{path}.nodeAffinity")
    for part in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(part) or {}
        for index, term in enumerate(terms.get(REQUIRED) or ()):
            yield from _pod_term_faults(term, f"{path}.{part}.{REQUIRED}[{index}]")
        for index, weighted in enumerate(terms.get(PREFERRED) or ()):
            where = f"{path}.{part}.{PREFERRED}[{index}]"
            yield from _weight_faults(weighted, where)
            yield from _pod_term_faults(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _node_affinity_faults(nodes: Manifest, path: str) -> Faults:
    required = nodes.get(REQUIRED)
    if required is not None:
        where = f"{path}.{REQUIRED}.nodeSelectorTerms"
        terms = required.get("nodeSelectorTerms") or ()
        if not terms:
            yield cause("FieldValueRequired", "Required value: must have at least one node selector term", where)
        for index, term in enumerate(terms):
            yield from _node_term_faults(term, f"{where}[{index}]")
    for index, preferred in enumerate(nodes.get(PREFERRED) or ()):
        where = f"{path}.{PREFERRED}[{index}]"
        yield from _weight_faults(preferred, where)
        yield from _node_term_faults(preferred.get("preference") or {}, f"{where}.preference")


def _weight_faults(weighted: Manifest, where: str) -> Faults:
    weight = weighted.get("weight", 0)
    if not 1 <= weight <= 100:
        yield cause("FieldValueInvalid", f"Invalid value: {weight}: must be in the range 1-100", f"{where}.weight")


def _node_term_faults(term: Manifest, where: str) -> Faults:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _requirement_faults(requirement, f"{where}.matchExpressions[{index}]", compares=True)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        at = f"{where}.matchFields[{index}]"
        operator, key = requirement.get("operator") or "", requirement.get("key") or ""
        if operator not in ("In", "NotIn"):
            yield cause("FieldValueInvalid", f'Invalid value: "{operator}": not a valid selector operator', f"{at}.operator")
        elif len(requirement.get("values") or ()) != 1:
            message = "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield cause("FieldValueRequired", message, f"{at}.values")
        if key != "metadata.name":
            yield cause("FieldValueInvalid", f'Invalid value: "{key}": not a valid field selector key', f"{at}.key")


def _pod_term_faults(term: Manifest, where: str) -> Faults:
    for part in ("labelSelector", "namespaceSelector"):
        yield from selector_faults(term.get(part) or {}, f"{where}.{part}")
    key = term.get("topologyKey") or ""
    if not key:
        yield cause("FieldValueRequired", "Required value: can not be empty", f"{where}.topologyKey")
    for complaint in key_complaints(key):
        yield cause("FieldValueInvalid", f'Invalid value: "{key}": {complaint}', f"{where}.topologyKey")


def selector_faults(selector: Manifest, where: str) -> Faults:
    """Faults of a label selector."""
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement_faults(requirement, f"{where}.matchExpressions[{index}]")


def _requirement_faults(requirement: Manifest, where: str, *, compares: bool = False) -> Faults:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            message = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
            yield cause("FieldValueRequired", message, f"{where}.values")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            message = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield cause("FieldValueForbidden", message, f"{where}.values")
    elif compares and operator in ("Gt", "Lt"):
        if len(values) != 1:
            message = "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield cause("FieldValueRequired", message, f"{where}.values")
    else:
        yield cause("FieldValueInvalid", f'Invalid value: "{operator}": not a valid selector operator', f"{where}.operator")
    key = requirement.get("key") or ""
    for complaint in key_complaints(key):
        yield cause("FieldValueInvalid", f'Invalid value: "{key}": {complaint}', f"{where}.key")
    if operator not in ("Gt", "Lt"):
        for index, value in enumerate(values):
            for complaint in value_complaints(value):
                yield cause("FieldValueInvalid", f'Invalid value: "{value}": {complaint}', f"{where}.values[{index}]")
