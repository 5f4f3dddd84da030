"""A job's objects with one thing changed: its minimum, what its pods ask for, its priority class, its queue, its topology demand.

Each function returns whole objects, or an empty list where no object of the job says the thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from navarch.apis.coscheduling import GROUP_LABELS
from navarch.apis.kube_batch import GROUP_NAME as KUBE_BATCH_GROUP
from navarch.apis.volcano.podgroups import GROUP_NAME as VOLCANO_GROUP
from navarch.explanation.documents import copied
from navarch.explanation.subject import Object, Subject
from navarch.ingest.groups import MIN_MEMBER_ANNOTATIONS
from navarch.model.quantity import QuantityError
from navarch.model.resources import format_amount, in_bytes, parse_amount

_FEW = 16
_STEPS = 8
_VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
_KAI_QUEUE = "kai.scheduler/queue"


def with_min_member(subject: Subject, minimum: int) -> list[Object]:
    """A smaller gang. What it must find before it is admitted shrinks with it, and so do the minimums of its roles."""
    part = Fraction(minimum, max(1, subject.spec.min_member if subject.spec else 1))
    for manifest in subject.groups:
        group: Object = copied(manifest)
        spec = group.setdefault("spec", {})
        if group["kind"] != "PodGroup":
            spec["minAvailable"] = minimum
            left = minimum
            for task in spec.get("tasks") or ():
                least = task.get("replicas", 1) if task.get("minAvailable") is None else task["minAvailable"]
                task["minAvailable"] = min(int(least), left)
                left -= task["minAvailable"]
            return [group]
        if spec.get("subGroups"):
            return []
        spec["minMember"] = minimum
        if spec.get("minResources"):
            spec["minResources"] = {name: scaled(name, amount, part) for name, amount in spec["minResources"].items()}
        if spec.get("minTaskMember"):
            spec["minTaskMember"] = _fewer(spec["minTaskMember"], minimum)
        return [group]

    def edit(pod: Object) -> None:
        annotations = pod["metadata"].get("annotations") or {}
        for name in MIN_MEMBER_ANNOTATIONS:
            if name in annotations:
                annotations[name] = str(minimum)

    return subject.edited(edit)


def _fewer(roles: Mapping[str, Any], most: int) -> dict[str, int]:
    out = {}
    for role, least in roles.items():
        out[role] = min(int(least), most)
        most -= out[role]
    return out


def amounts_of(subject: Subject) -> dict[str, int]:
    """The most that a pod of the job asks for, by resource, in the model's units."""
    found: dict[str, int] = {}
    for pod in subject.samples():
        own: dict[str, int] = {}
        for container in (pod.get("spec") or {}).get("containers") or ():
            resources = container.get("resources") or {}
            for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
                try:
                    own[name] = own.get(name, 0) + parse_amount(name, amount)
                except QuantityError:
                    continue
        for name, total in own.items():
            found[name] = max(found.get(name, 0), total)
    return {name: amount for name, amount in sorted(found.items()) if amount > 0}


def with_amount(subject: Subject, resource: str, part: Fraction) -> list[Object]:
    """Pods that ask for this part of what they asked for of a resource; 0: for none of it."""

    def edit(pod: Object) -> None:
        for kind in ("containers", "initContainers"):
            for container in pod["spec"].get(kind) or ():
                for given in (container.get("resources") or {}).values():
                    if isinstance(given, dict) and resource in given:
                        _scale(given, resource, part)

    out = subject.edited(edit)
    for manifest in subject.groups if out else ():
        if manifest["kind"] == "PodGroup" and resource in ((manifest.get("spec") or {}).get("minResources") or {}):
            group: Object = copied(manifest)
            _scale(group["spec"]["minResources"], resource, part)
            out.append(group)
    return out


def _scale(given: dict[str, Any], resource: str, part: Fraction) -> None:
    if part:
        given[resource] = scaled(resource, given[resource], part)
    else:
        del given[resource]


def scaled(resource: str, amount: Any, part: Fraction) -> str:
    """A part of an amount, rounded down; devices stay whole.

    >>> scaled("cpu", "3", Fraction(1, 2)), scaled("memory", "1Gi", Fraction(1, 2)), scaled("nvidia.com/gpu", 3, Fraction(1, 2))
    ('1500m', '512Mi', '1')
    """
    exact = int(parse_amount(resource, amount) * part)
    if not in_bytes(resource) and resource != "cpu":
        exact -= exact % 1000
    return format_amount(resource, exact)


def steps_of(resource: str, amount: int) -> int:
    """In how many steps an amount is lowered: single devices where they are few, else eighths."""
    whole = amount // 1000
    return whole if resource != "cpu" and not in_bytes(resource) and whole * 1000 == amount and whole <= _FEW else _STEPS


def with_priority(subject: Subject, name: str, value: int) -> list[Object]:
    def edit(pod: Object) -> None:
        pod["spec"]["priorityClassName"] = name
        if "priority" in pod["spec"]:
            pod["spec"]["priority"] = value

    out = subject.edited(edit)
    for manifest in subject.groups:
        changed = next((each for each in out if each["kind"] == manifest["kind"] and each["metadata"] == manifest["metadata"]), None)
        if changed is None:
            changed = copied(manifest)
            out.append(changed)
        changed.setdefault("spec", {})["priorityClassName"] = name
    return out


def new_group(subject: Subject) -> Object | None:
    """A group of all its pods, in the API by which they name it; None: it would need more than a minimum (KAI's names a queue)."""
    metadata = next((each.get("metadata") or {} for each in subject.samples()), {})
    if any(name in (metadata.get("annotations") or {}) for name in (VOLCANO_GROUP, KUBE_BATCH_GROUP)):
        version = "scheduling.volcano.sh/v1beta1"
    elif any(name in (metadata.get("labels") or {}) for name in GROUP_LABELS):
        version = "scheduling.x-k8s.io/v1alpha1"
    else:
        return None
    namespace, _, name = subject.key.partition("/")
    own = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": "PodGroup", "metadata": own, "spec": {"minMember": len(subject.tasks)}}


def with_queue(subject: Subject, queue: str, dialect: str) -> list[Object]:
    """`dialect`: whose queue it is, because pods without a group name it in that system's way."""
    for manifest in subject.groups:
        group: Object = copied(manifest)
        group.setdefault("spec", {})["queue"] = queue
        return [group]
    part, name = ("labels", _KAI_QUEUE) if dialect == "kai" else ("annotations", _VOLCANO_QUEUE)

    def edit(pod: Object) -> None:
        pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), name: queue}

    return subject.edited(edit)


def without_topology(subject: Subject) -> list[Object]:
    """A group whose demands for nodes close together are wishes."""
    out = []
    for manifest in subject.groups:
        group: Object = copied(manifest)
        spec = group.get("spec") or {}
        for part in (spec, *(spec.get("subGroupPolicy") or ()), *(spec.get("subGroups") or ())):
            network = part.get("networkTopology")
            if network and (network.get("mode") or "hard") == "hard":
                network["mode"] = "soft"
            constraint = part.get("topologyConstraint")
            if constraint and constraint.get("requiredTopologyLevel"):
                constraint["preferredTopologyLevel"] = constraint.pop("requiredTopologyLevel")
        if group != manifest:
            out.append(group)
    return out
