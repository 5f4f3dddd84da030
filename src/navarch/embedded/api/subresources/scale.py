"""The scale subresource: replicas of any kind that has them, as an autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from navarch.embedded.api.errors import cause, invalid
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.writing import read_typed
from navarch.object_types import Manifest

BUILTIN = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ""}


def paths(kind: Kind) -> dict[str, str]:
    """Where the kind keeps its figures, as JSON paths."""
    if kind.definition is None:
        return BUILTIN
    found: dict[str, str] = (kind.definition.get("subresources") or {}).get("scale") or {}
    return found


def _get(obj: Manifest, path: str) -> Any:
    value: Any = obj
    for step in path.strip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def to_scale(kind: Kind, obj: Manifest) -> Manifest:
    """The Scale that stands for an object."""
    where = paths(kind)
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Manifest = {"replicas": _get(obj, where["statusReplicasPath"]) or 0}
    if kind.definition is None:
        selector = selector_text((obj.get("spec") or {}).get("selector"))
    else:
        selector = _get(obj, where["labelSelectorPath"]) if where.get("labelSelectorPath") else ""
    if selector:
        status["selector"] = selector
    spec = {"replicas": replicas} if (replicas := _get(obj, where["specReplicasPath"])) else {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": spec,
        "status": status,
    }


def from_scale(kind: Kind, obj: Manifest, scale: Any) -> Manifest:
    """The object with the replicas that a Scale asks for. Changes the object."""
    scale = read_typed("autoscaling.v1.Scale", scale)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    name = obj["metadata"]["name"]
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale", "autoscaling", name, [cause("FieldValueInvalid", message, "spec.replicas")])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        obj["metadata"]["resourceVersion"] = version
    *steps, last = paths(kind)["specReplicasPath"].strip(".").split(".")
    target: Any = obj
    for step in steps:
        target = target.setdefault(step, {})
    target[last] = replicas
    return obj


def selector_text(selector: Any) -> str:
    """A label selector object in the form of a query."""
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        operator, values = each["operator"], ",".join(sorted(each.get("values") or ()))
        parts.append(
            {
                "In": f"{each['key']} in ({values})",
                "NotIn": f"{each['key']} notin ({values})",
                "Exists": each["key"],
                "DoesNotExist": f"!{each['key']}",
            }.get(operator, each["key"])
        )
    return ",".join(parts)
