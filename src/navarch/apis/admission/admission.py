"""Admission: what an API server adds to a manifest or refuses, before a scheduler sees it.

`navarch plan` reads files that no server has admitted, and the embedded API server does what a real one does. Both
call the pure functions here on decoded manifests. They cover what changes scheduling: kind defaults, LimitRange,
the default service account, priority classes, the two default tolerations, runtime classes and default storage
classes, in the order of kube-apiserver.

>>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
...        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1}}}]}}
>>> admission = admit(pod, AdmissionContext())
>>> admission.obj["spec"]["containers"][0]["resources"]["requests"], admission.obj["spec"]["priority"]
({'cpu': '1'}, 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy

from msgspec import Struct, field

from navarch.apis.admission.limit_ranges import apply_limit_range, claim_refusals, limit_range_refusals
from navarch.apis.admission.pod_defaults import prepare_pod
from navarch.apis.admission.workload_defaults import default_object
from navarch.model.quantity import QuantityError, parse_nano
from navarch.object_types import Manifest

SYSTEM_PRIORITY_CLASSES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
TOLERATION_SECONDS = 300


class AdmissionContext(Struct, frozen=True):
    """The objects that admission looks up, by name (limit ranges: by namespace)."""

    priority_classes: Mapping[str, Manifest] = field(default_factory=dict)
    runtime_classes: Mapping[str, Manifest] = field(default_factory=dict)
    storage_classes: Mapping[str, Manifest] = field(default_factory=dict)
    limit_ranges: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[Manifest]) -> AdmissionContext:
        """Collect the objects that admission looks up, with their own defaults applied."""
        found: dict[str, dict[str, Manifest]] = {"PriorityClass": {}, "RuntimeClass": {}, "StorageClass": {}}
        ranges: dict[str, list[Manifest]] = {}
        for obj in objects:
            kind = obj.get("kind")
            metadata = obj.get("metadata") or {}
            if kind in found:
                found[kind][metadata.get("name", "")] = _defaulted(obj)
            elif kind == "LimitRange":
                ranges.setdefault(metadata.get("namespace") or "default", []).append(_defaulted(obj))
        return cls(found["PriorityClass"], found["RuntimeClass"], found["StorageClass"], ranges)


class Admission(Struct, frozen=True):
    """The object as a server would store it, and the reasons for which it would refuse it (empty: admitted)."""

    obj: Manifest
    errors: tuple[str, ...]


def admit(obj: Manifest, context: AdmissionContext) -> Admission:
    """Apply defaults and admission to a copy of a manifest."""
    copy = deepcopy(obj)
    try:
        default_object(copy)
    except QuantityError as error:
        return Admission(copy, (str(error),))
    return Admission(copy, tuple(admit_in_place(copy, context)))


def admit_in_place(obj: Manifest, context: AdmissionContext) -> list[str]:
    """Admission of an object that already has its defaults. Changes it; returns the refusals (HTTP 403)."""
    kind = (obj.get("apiVersion"), obj.get("kind"))
    namespace = (obj.get("metadata") or {}).get("namespace") or "default"
    ranges = context.limit_ranges.get(namespace, ())
    if kind == ("v1", "Pod"):
        return _admit_pod(obj, context, ranges)
    if kind == ("v1", "PersistentVolumeClaim"):
        _default_storage_class(obj, context)
        return [said for limit_range in ranges for said in claim_refusals(obj, limit_range)]
    return []


def _admit_pod(pod: Manifest, context: AdmissionContext, ranges: Sequence[Manifest]) -> list[str]:
    spec = pod["spec"]
    for limit_range in ranges:
        apply_limit_range(pod, limit_range)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    errors = resolve_priority(spec, context)
    default_tolerations(spec)
    errors += _runtime_class(spec, context)
    prepare_pod(pod)
    errors += [said for limit_range in ranges for said in limit_range_refusals(pod, limit_range)]
    return errors


def resolve_priority(spec: Manifest, context: AdmissionContext) -> list[str]:
    """Give a pod spec the priority and preemption policy of its class, or of the default class. Changes the spec."""
    name = spec.get("priorityClassName") or ""
    policy: str | None = "PreemptLowerPriority"
    priority = 0
    if not name:
        default = default_priority_class(context.priority_classes)
        if default is not None:
            name = default["metadata"]["name"]
            priority, policy = default.get("value", 0), default.get("preemptionPolicy") or policy
    elif name in context.priority_classes:
        found = context.priority_classes[name]
        priority, policy = found.get("value", 0), found.get("preemptionPolicy") or policy
    elif name in SYSTEM_PRIORITY_CLASSES:
        priority = SYSTEM_PRIORITY_CLASSES[name]
    else:
        return [f"no PriorityClass with name {name} was found"]
    if name:
        spec["priorityClassName"] = name
    given = spec.get("priority")
    if given is not None and given != priority:
        return [
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        ]
    spec["priority"] = priority
    said = spec.get("preemptionPolicy")
    if said is not None and said != policy:
        return [
            f"the string value of PreemptionPolicy ({said}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        ]
    spec["preemptionPolicy"] = policy
    return []


def default_priority_class(classes: Mapping[str, Manifest]) -> Manifest | None:
    """The class marked globalDefault; of several, the one of the lowest value (then name)."""
    marked = [each for each in classes.values() if each.get("globalDefault")]
    return min(marked, key=lambda each: (each.get("value", 0), each["metadata"]["name"]), default=None)


def default_tolerations(spec: Manifest) -> None:
    """Let a pod stay five minutes on a node that is not ready or unreachable, unless it says otherwise."""
    given = list(spec.get("tolerations") or ())
    spec["tolerations"] = given + [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
        for key in (NOT_READY, UNREACHABLE)
        if not any(_covers(toleration, key) for toleration in given)
    ]


def _covers(toleration: Manifest, key: str) -> bool:
    return (toleration.get("key") or key) == key and (toleration.get("effect") or "NoExecute") == "NoExecute"


def _runtime_class(spec: Manifest, context: AdmissionContext) -> list[str]:
    """Overhead, node selector and tolerations of the pod's runtime class."""
    name = spec.get("runtimeClassName")
    if not name:
        if spec.get("overhead"):
            return ["pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"]
        return []
    if name not in context.runtime_classes:
        return [f'pod rejected: RuntimeClass "{name}" not found']
    found = context.runtime_classes[name]
    overhead = (found.get("overhead") or {}).get("podFixed")
    given = spec.get("overhead")
    if given and (not overhead or _amounts(given) != _amounts(overhead)):
        return ["pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"]
    if overhead:
        spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling") or {}
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        if selector.get(key, value) != value:
            return [f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"]
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if tolerations:
        spec["tolerations"] = tolerations
    return []


def _amounts(resources: Manifest) -> dict[str, int]:
    return {name: parse_nano(amount) for name, amount in resources.items()}


def _default_storage_class(claim: Manifest, context: AdmissionContext) -> None:
    spec = claim["spec"]
    if spec.get("storageClassName") is not None:
        return
    if "volume.beta.kubernetes.io/storage-class" in ((claim.get("metadata") or {}).get("annotations") or {}):
        return
    marked = [
        each
        for each in context.storage_classes.values()
        if (each["metadata"].get("annotations") or {}).get(DEFAULT_STORAGE_CLASS) == "true"
    ]
    if marked:
        # The newest wins. Among those of the same second the first by name wins, because max keeps the first of equals.
        marked.sort(key=lambda each: str(each["metadata"]["name"]))
        newest = max(marked, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""))
        spec["storageClassName"] = newest["metadata"]["name"]


def _defaulted(obj: Manifest) -> Manifest:
    copy = deepcopy(obj)
    default_object(copy)
    return copy
