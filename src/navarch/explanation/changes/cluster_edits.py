"""Objects of the administrator with one thing changed: queues with more room or weight, nodes that take work, one more node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from navarch.explanation.documents import Input, copied
from navarch.explanation.subject import Object
from navarch.model.resources import format_amount, parse_amount
from navarch.object_types import ReadOnlyManifest

KAI_GROUP = "scheduling.run.ai"
_KAI_UNITS = {"gpu": 1000, "cpu": 1, "memory": 10**6}
"""Units of the model in one unit of a KAI queue: thousandths of devices, millicores, bytes in a million bytes."""
_HOSTNAME = "kubernetes.io/hostname"
_OF_CONDITIONS = "node.kubernetes.io/"
"""Taints that stand for a condition of the node they are on."""
CORDONED = "node.kubernetes.io/unschedulable"
"""The taint that a cordoned node gets."""
_OF_A_NODE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generation")


def is_kai(queue: ReadOnlyManifest) -> bool:
    return str(queue.get("apiVersion", "")).startswith(KAI_GROUP)


def lifted(queue: ReadOnlyManifest, bounds: Sequence[str]) -> Object | None:
    """The queue without these bounds (`limit`, `quota`); None where it has none of them."""
    out: Object = copied(queue)
    spec = out.setdefault("spec", {})
    if is_kai(queue):
        for part in (spec.get("resources") or {}).values():
            for bound in bounds:
                if float(part.get(bound) or 0) >= 0:
                    part[bound] = -1
        for name in ("gpu", "cpu", "memory"):
            part = spec.setdefault("resources", {}).setdefault(name, {})
            for bound in bounds:
                part.setdefault(bound, -1)
    elif "limit" in bounds:
        spec.pop("capability", None)
    return out if out != queue else None


def raised(queue: ReadOnlyManifest, bounds: Sequence[str], more: Mapping[str, int]) -> Object | None:
    """The queue with its bounds raised by these amounts of the model; None where nothing changes."""
    out: Object = copied(queue)
    spec = out.setdefault("spec", {})
    if is_kai(queue):
        for name, unit in _KAI_UNITS.items():
            part = spec.setdefault("resources", {}).setdefault(name, {})
            extra = Fraction(_of_kai(more, name), unit)
            for bound in bounds:
                now = Fraction(str(part.get(bound) or 0))
                if now >= 0 and extra:
                    part[bound] = _number(now + extra)
    else:
        for field in (["capability"] if "limit" in bounds else []) + (["deserved"] if "quota" in bounds else []):
            for name, amount in list((spec.get(field) or {}).items()):
                if more.get(name):
                    spec[field][name] = format_amount(name, parse_amount(name, amount) + more[name])
    return out if out != queue else None


def _of_kai(amounts: Mapping[str, int], name: str) -> int:
    if name != "gpu":
        return amounts.get(name, 0)
    return sum(amount for each, amount in amounts.items() if each.endswith("/gpu"))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def bounds_text(queue: ReadOnlyManifest, bounds: Sequence[str]) -> str:
    """`gpu 8, cpu 4000`: what the queue says now."""
    spec = queue.get("spec") or {}
    if is_kai(queue):
        parts = spec.get("resources") or {}
        shown = [f"{name} {_shown(parts.get(name, {}).get(bound))}" for bound in bounds for name in _KAI_UNITS]
    else:
        fields = (["capability"] if "limit" in bounds else []) + (["deserved"] if "quota" in bounds else [])
        shown = [f"{name} {amount}" for field in fields for name, amount in sorted((spec.get(field) or {}).items())]
    return ", ".join(shown) or "none"


def _shown(bound: Any) -> str:
    number = Fraction(str(bound or 0))
    return "unlimited" if number < 0 else str(_number(number))


def weight_of(queue: ReadOnlyManifest) -> int:
    return int((queue.get("spec") or {}).get("weight") or 1)


def with_weight(queue: ReadOnlyManifest, weight: int) -> Object:
    out: Object = copied(queue)
    if is_kai(queue):
        for part in out["spec"]["resources"].values():
            part["overQuotaWeight"] = weight
    else:
        out.setdefault("spec", {})["weight"] = weight
    return out


def opened(queue: ReadOnlyManifest) -> Object:
    out: Object = copied(queue)
    out.setdefault("status", {})["state"] = "Open"
    return out


def new_queue(name: str, like: Sequence[ReadOnlyManifest], dialect: str) -> Object:
    """A queue that does not exist yet, in the words of the system that the job or the other queues are of."""
    if dialect == "kai" or any(is_kai(each) for each in like):
        unlimited = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
        resources = {part: dict(unlimited) for part in ("gpu", "cpu", "memory")}
        parents = {str((each.get("spec") or {}).get("parentQueue")) for each in like if (each.get("spec") or {}).get("parentQueue")}
        spec: Object = {"resources": resources}
        if parents:
            spec["parentQueue"] = min(parents)
        return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    version = str(like[0]["apiVersion"]) if like else "scheduling.volcano.sh/v1beta1"
    out: Object = {"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
    if version.startswith("scheduling.volcano.sh"):
        out["status"] = {"state": "Open"}
    return out


def with_quota(quota: ReadOnlyManifest, asked: Mapping[str, int]) -> Object | None:
    """A ResourceQuota that leaves room for these amounts beside what is used; None where it does already."""
    out: Object = copied(quota)
    used = (out.get("status") or {}).get("used") or {}
    changed = False
    for part in (out.get("spec") or {}, out.get("status") or {}):
        hard = part.get("hard") or {}
        for name, amount in asked.items():
            for key in (name, f"requests.{name}"):
                if key in hard and (needed := parse_amount(name, used.get(key, 0)) + amount) > parse_amount(name, hard[key]):
                    hard[key], changed = format_amount(name, needed), True
    return out if changed else None


def uncordoned(node: ReadOnlyManifest) -> Object:
    out: Object = copied(node)
    out["spec"].pop("unschedulable", None)
    taints = out["spec"].get("taints")
    if taints:
        out["spec"]["taints"] = [each for each in taints if each.get("key") != CORDONED]
    return out


def without_taint(node: ReadOnlyManifest, key: str) -> Object:
    out: Object = copied(node)
    out["spec"]["taints"] = [each for each in out["spec"].get("taints") or () if each.get("key") != key]
    return out


def kinds_of_nodes(nodes: Sequence[ReadOnlyManifest]) -> list[ReadOnlyManifest]:
    """One node of each kind: the same amounts, labels and taints."""
    found: dict[str, ReadOnlyManifest] = {}
    for node in nodes:
        labels = {k: v for k, v in (node["metadata"].get("labels") or {}).items() if k != _HOSTNAME}
        status, spec = node.get("status") or {}, node.get("spec") or {}
        key = repr((sorted(labels.items()), sorted((status.get("allocatable") or {}).items(), key=str), spec.get("taints")))
        found.setdefault(key, node)
    return list(found.values())


def further_node(given: Input, node: ReadOnlyManifest, number: int) -> Object:
    """One more node of the kind, empty and ready for work."""
    out = uncordoned({**node, "spec": node.get("spec") or {}})
    before = str(node["metadata"]["name"])
    metadata = {key: each for key, each in out["metadata"].items() if key not in _OF_A_NODE}
    name = f"{before}-more-{number}"
    while given.has({**out, "metadata": {**metadata, "name": name}}):
        name += "x"
    metadata["name"] = name
    if _HOSTNAME in (metadata.get("labels") or {}):
        metadata["labels"][_HOSTNAME] = name
    out["metadata"] = metadata
    out["spec"].pop("providerID", None)
    if out["spec"].get("taints"):
        out["spec"]["taints"] = [each for each in out["spec"]["taints"] if not str(each.get("key")).startswith(_OF_CONDITIONS)]
    for condition in (out.get("status") or {}).get("conditions") or ():
        condition["status"] = "True" if condition.get("type") == "Ready" else "False"
    return out
