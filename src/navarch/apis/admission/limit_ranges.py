"""LimitRange: the defaults and the bounds that a namespace sets for requests and limits of containers.

`apply_limit_range` fills in requests and limits, and lists them in an annotation. `limit_range_refusals` returns the
messages of the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navarch.apis.admission.pod_defaults import aggregate
from navarch.model.quantity import canonical, parse_milli
from navarch.object_types import Manifest

ANNOTATION = "kubernetes.io/limit-ranger"


def apply_limit_range(pod: Manifest, limit_range: Manifest) -> None:
    """Fill requests and limits of a pod's containers from one LimitRange. Changes the pod."""
    requests: Manifest = {}
    limits: Manifest = {}
    for item in _items(limit_range, "Container"):
        requests.update(item.get("defaultRequest") or {})
        limits.update(item.get("default") or {})
    notes: list[str] = []
    for part, words in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(part) or ():
            resources = container.get("resources")
            if resources is None:
                resources = container["resources"] = {}
            for field, word, given in (("requests", "request", requests), ("limits", "limit", limits)):
                missing = sorted(name for name in given if name not in (resources.get(field) or {}))
                if missing:
                    amounts = resources[field] = dict(resources.get(field) or {})
                    amounts.update((name, given[name]) for name in missing)
                    notes.append(f"{', '.join(missing)} {word} for {words} {container.get('name', '')}")
    if notes:
        annotations = pod.setdefault("metadata", {}).get("annotations") or {}
        pod["metadata"]["annotations"] = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def limit_range_refusals(pod: Manifest, limit_range: Manifest) -> list[str]:
    """Why one LimitRange refuses a pod; empty if it does not."""
    said: list[str] = []
    spec = pod["spec"]
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
                resources = container.get("resources") or {}
                said.extend(_refusals(item, resources.get("requests") or {}, resources.get("limits") or {}))
        elif item.get("type") == "Pod":
            said.extend(_refusals(item, _of_pod(spec, "requests"), _of_pod(spec, "limits")))
    return said


def claim_refusals(claim: Manifest, limit_range: Manifest) -> list[str]:
    """Why one LimitRange refuses a PersistentVolumeClaim."""
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    said: list[str] = []
    for item in _items(limit_range, "PersistentVolumeClaim"):
        for name, least in sorted((item.get("min") or {}).items()):
            said.extend(_below("PersistentVolumeClaim", name, least, requests, {}))
        for name, most in sorted((item.get("max") or {}).items()):
            if name not in requests:
                lead = f"maximum {name} usage per PersistentVolumeClaim is {canonical(most)}"
                said.append(f"{lead}.  No request is specified")
            elif parse_milli(requests[name]) > parse_milli(most):
                said.append(_but("maximum", name, "PersistentVolumeClaim", most, "request", requests[name]))
    return said


def _items(limit_range: Manifest, kind: str) -> Iterator[Manifest]:
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == kind:
            yield item


def _of_pod(spec: Manifest, part: str) -> dict[str, Any]:
    return {**aggregate(spec, part), **((spec.get("resources") or {}).get(part) or {})}


def _but(bound: str, name: str, kind: str, enforced: Any, part: str, found: Any) -> str:
    return f"{bound} {name} usage per {kind} is {canonical(enforced)}, but {part} is {canonical(found)}"


def _below(kind: str, name: str, least: Any, requests: Manifest, limits: Manifest) -> Iterator[str]:
    if name not in requests:
        yield f"minimum {name} usage per {kind} is {canonical(least)}.  No request is specified"
    elif parse_milli(requests[name]) < parse_milli(least):
        yield _but("minimum", name, kind, least, "request", requests[name])
    elif name in limits and parse_milli(limits[name]) < parse_milli(least):
        yield _but("minimum", name, kind, least, "limit", limits[name])


def _refusals(item: Manifest, requests: Manifest, limits: Manifest) -> Iterator[str]:
    kind = item["type"]
    for name, least in sorted((item.get("min") or {}).items()):
        yield from _below(kind, name, least, requests, limits)
    for name, most in sorted((item.get("max") or {}).items()):
        if name not in limits:
            yield f"maximum {name} usage per {kind} is {canonical(most)}.  No limit is specified"
        elif parse_milli(limits[name]) > parse_milli(most):
            yield _but("maximum", name, kind, most, "limit", limits[name])
        elif name in requests and parse_milli(requests[name]) > parse_milli(most):
            yield _but("maximum", name, kind, most, "request", requests[name])
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        request, limit = parse_milli(requests.get(name)), parse_milli(limits.get(name))
        lead = f"{name} max limit to request ratio per {kind} is {canonical(ratio)}, but"
        if not request:
            yield f"{lead} no request is specified or request is 0"
        elif not limit:
            yield f"{lead} no limit is specified or limit is 0"
        elif limit * 1000 > parse_milli(ratio) * request:
            yield f"{lead} provided ratio is {limit / request:f}"
