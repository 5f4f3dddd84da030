"""A pod on a node that cannot be read as a whole: what of it can be, so that its node is not given away a second time.

A single field that is not what we take it for (a moment before the year 1, say) makes a pod unreadable. If it holds a node, what
matters is which one and how much of it: its containers' requests, each as it stands, or the limit in its place where only that is a
quantity. Which group it belongs to and where it stands is taken where it can be read; its rules about other pods and nodes are
left out, since it has its node, and so is a resize under way. Where an amount remains that nobody can read, nobody knows what is
left on its node (`unknown`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from navarch.apis.core.objects import Metadata, Part, Quantity
from navarch.apis.core.pod_objects import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from navarch.model.quantity import QuantityError, parse_nano

P = TypeVar("P", bound=Part)

_OF_SPEC = ("node_name", "scheduler_name", "priority", "priority_class_name", "preemption_policy", "scheduling_group", "workload_ref")
_OF_STATUS = ("phase", "start_time", "conditions")
_OF_CONTAINER = ("name", "restart_policy", "ports")


class PartialPod(Pod, frozen=True):
    error: Exception | None = None
    """Why it cannot be read as a whole."""
    unknown: bool = False
    """It asks for something, and there is no telling how much."""


def half_read(found: bytes | Pod, error: Exception) -> PartialPod | None:
    """What can be read of a pod that holds a node, as it came or as far as it was decoded; None: it has no node, or no name.

    >>> pod = half_read(b'{"metadata": {"name": "a"}, "spec": {"nodeName": "n", "priority": []}}', ValueError("spec.priority"))
    >>> pod.spec.node_name, pod.spec.priority, pod.unknown
    ('n', None, False)
    """
    manifest = msgspec.json.decode(found) if isinstance(found, bytes) else msgspec.to_builtins(found)
    spec, known = _spec(_mapping(manifest).get("spec"))
    metadata = _fitting(_mapping(manifest).get("metadata"), Metadata)
    if not spec.node_name or not metadata.name:
        return None
    status = _fitting(_mapping(manifest).get("status"), PodStatus, _OF_STATUS)
    return PartialPod(metadata=metadata, spec=spec, status=status, error=error, unknown=not known)


def _spec(found: Any) -> tuple[PodSpec, bool]:
    spec = _fitting(found, PodSpec, _OF_SPEC)
    fields = _mapping(found)
    containers, sure = _containers(fields.get("containers"))
    init_containers, also = _containers(fields.get("initContainers"))
    resources, level = _resources(fields.get("resources"))
    overhead, on_top = _amounts(fields.get("overhead"), {})
    spec = msgspec.structs.replace(
        spec, containers=containers, init_containers=init_containers, resources=resources, overhead=overhead
    )
    return spec, sure and also and level and on_top


def _containers(found: Any) -> tuple[tuple[Container, ...] | None, bool]:
    if found is None:
        return None, True
    if not isinstance(found, list | tuple):
        return None, False
    containers, known = [], True
    for each in found:
        resources, sure = _resources(_mapping(each).get("resources"))
        known = known and sure and isinstance(each, Mapping)
        containers.append(msgspec.structs.replace(_fitting(each, Container, _OF_CONTAINER), resources=resources))
    return tuple(containers), known


def _resources(found: Any) -> tuple[ResourceRequirements | None, bool]:
    if found is None:
        return None, True
    limits, _ = _amounts(_mapping(found).get("limits"), {})
    requests, known = _amounts(_mapping(found).get("requests"), limits or {})
    return ResourceRequirements(requests, limits), known and isinstance(found, Mapping)


def _amounts(found: Any, otherwise: Mapping[str, Quantity]) -> tuple[dict[str, Quantity] | None, bool]:
    """The quantities, and whether all of them are known; `otherwise` are the limits in their place."""
    if found is None:
        return None, True
    if not isinstance(found, Mapping):
        return dict(otherwise), bool(otherwise)
    amounts: dict[str, Quantity] = {}
    for name, quantity in found.items():
        if _is_amount(quantity):
            amounts[name] = quantity
        elif name in otherwise:
            amounts[name] = otherwise[name]
    return amounts, len(amounts) == len(found)


def _is_amount(found: Any) -> bool:
    try:
        return not isinstance(found, bool) and isinstance(found, str | int | float | None) and parse_nano(found) >= 0
    except QuantityError:
        return False


def _fitting(found: Any, kind: type[P], names: tuple[str, ...] = ()) -> P:
    """The fields that are as they should be (of these names; of all, if none is given), and the others as if they were absent."""
    given, fitting = _mapping(found), dict[str, Any]()
    for field in msgspec.structs.fields(kind):
        if field.encode_name in given and (not names or field.name in names):
            try:
                fitting[field.name] = msgspec.convert(given[field.encode_name], field.type)
            except msgspec.ValidationError:
                continue
    return kind(**fitting)


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
