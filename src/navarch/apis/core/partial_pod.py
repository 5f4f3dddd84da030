"""The readable part of a pod on a node, so that the resources it holds are not given to another pod.

One field of an unexpected form (a time before the year 1, for example) makes a pod unreadable. If the pod has a node, its node and its
requests still count. A request that is not a quantity is replaced by the limit, if that is one. Group, scheduler, priority, phase and
conditions are taken if they can be read. Affinity and other placement rules are dropped, because the pod has its node; an in-place
resize is ignored. If a request remains that is not a quantity, the free resources of the node are not known (`unknown`).
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
    """At least one of its requests is not a quantity."""


def read_partial_pod(found: bytes | Pod, error: Exception) -> PartialPod | None:
    """The readable part of a pod that has a node, from its JSON or from the decoded pod; None: it has no node or no name.

    >>> pod = read_partial_pod(b'{"metadata": {"name": "a"}, "spec": {"nodeName": "n", "priority": []}}', ValueError("spec.priority"))
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
    """The quantities, and whether all of them are known. `otherwise`: the limits, for requests that are not quantities."""
    if found is None:
        return None, True
    if not isinstance(found, Mapping):
        return dict(otherwise), bool(otherwise)
    amounts: dict[str, Quantity] = {}
    for name, quantity in found.items():
        if is_amount(quantity):
            amounts[name] = quantity
        elif name in otherwise:
            amounts[name] = otherwise[name]
    return amounts, len(amounts) == len(found)


def is_amount(found: Any) -> bool:
    try:
        return not isinstance(found, bool) and isinstance(found, str | int | float | None) and parse_nano(found) >= 0
    except QuantityError:
        return False


def _fitting(found: Any, kind: type[P], names: tuple[str, ...] = ()) -> P:
    """The fields that have their types, of these names or of all; the others are treated as absent."""
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
