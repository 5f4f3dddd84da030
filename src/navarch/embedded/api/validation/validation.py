"""Refuse objects that no controller or scheduler could make sense of, with the field and the reason, as 422 Invalid.

Not all of kube-apiserver's rules, but those whose breach would mislead a scheduler or that manifests commonly break. Pods have
a file of their own (`pods`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from navarch.embedded.api.errors import cause, invalid
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.selectors import object_selector
from navarch.embedded.api.validation.affinity import selector_faults
from navarch.embedded.api.validation.names import metadata_faults
from navarch.embedded.api.validation.pods import pod_faults, pod_update_faults, resource_list_faults, template_faults
from navarch.object_types import Manifest

Faults = Iterator[Manifest]
MOST_CONFIG_BYTES = 1024 * 1024
_PERCENT = re.compile(r"[0-9]+%")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def validate_create(kind: Kind, obj: Manifest) -> None:
    """422 if a new object is not valid."""
    causes = list(metadata_faults(kind.resource, obj["metadata"]))
    if kind.definition is not None:
        causes += kind.definition["schema"].faults(obj)
    check = ON_CREATE.get(kind.resource)
    if check is not None:
        causes += check(obj)
    _raise(kind, obj, causes)


def validate_update(kind: Kind, obj: Manifest, old: Manifest, subresource: str) -> None:
    """422 if an object may not become another."""
    causes: list[Manifest] = []
    if obj["metadata"] != old["metadata"]:
        causes += metadata_faults(kind.resource, obj["metadata"])
        causes += _metadata_update_faults(obj["metadata"], old["metadata"])
    if kind.definition is not None:
        causes += kind.definition["schema"].faults(obj)
    if not subresource:
        check = ON_CREATE.get(kind.resource)
        if check is not None and kind.resource != "pods":
            causes += check(obj)
        update_check = ON_UPDATE.get(kind.resource)
        if update_check is not None:
            causes += update_check(obj, old)
    _raise(kind, obj, causes)


def _raise(kind: Kind, obj: Manifest, causes: list[Manifest]) -> None:
    if causes:
        metadata = obj["metadata"]
        raise invalid(kind.kind, kind.group, metadata.get("name") or metadata.get("generateName") or "", causes)


def required(path: str, why: str = "") -> Manifest:
    return cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", path)


def forbidden(path: str, why: str) -> Manifest:
    return cause("FieldValueForbidden", f"Forbidden: {why}", path)


def wrong(path: str, value: Any, why: str) -> Manifest:
    shown = json.dumps(value, separators=(",", ":"))
    return cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", path)


def _metadata_update_faults(new: Manifest, old: Manifest) -> Faults:
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{each}"' for each in added)
            yield forbidden(
                "metadata.finalizers",
                f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}",
            )


def _immutable(path: str) -> Callable[[Manifest, Manifest], Faults]:
    steps = path.split(".")

    def check(obj: Manifest, old: Manifest) -> Faults:
        found, before = _at(obj, steps), _at(old, steps)
        if found != before:
            yield wrong(path, found, "field is immutable")

    return check


def _at(obj: Any, steps: list[str]) -> Any:
    for step in steps:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _workload(obj: Manifest) -> Faults:
    """Deployments, replica sets, stateful sets and daemon sets: the selector has to select the template."""
    spec = obj.get("spec") or {}
    replicas = spec.get("replicas")
    if isinstance(replicas, int) and replicas < 0:
        yield wrong("spec.replicas", replicas, "must be greater than or equal to 0")
    selector = spec.get("selector")
    if not selector:
        yield required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield wrong("spec.selector", {}, f"empty selector is invalid for {obj['kind'].lower()}")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if selector is not None and not object_selector(selector)(labels):
        yield wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from template_faults(spec.get("template") or {}, "spec.template", always=obj["kind"] != "Job")


def _job(obj: Manifest) -> Faults:
    spec = obj.get("spec") or {}
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            yield wrong(f"spec.{field}", value, "must be greater than or equal to 0")
    template = (spec.get("template") or {}).get("spec") or {}
    if template.get("restartPolicy") not in ("OnFailure", "Never"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
    yield from template_faults(spec.get("template") or {}, "spec.template", always=False)


def _priority_class(obj: Manifest) -> Faults:
    value, name = obj.get("value", 0), obj["metadata"].get("name", "")
    if name.startswith("system-") and name not in ("system-cluster-critical", "system-node-critical"):
        said = f"priority class names with 'system-' prefix are reserved for system use only. error: {name}"
        said += " is not a known system priority class"
        yield forbidden("metadata.name", said)
    elif value > 1_000_000_000 and not name.startswith("system-"):
        yield forbidden("value", "maximum allowed value of a user defined priority is 1000000000")
    if obj.get("preemptionPolicy") not in ("PreemptLowerPriority", "Never"):
        offered = '"Never", "PreemptLowerPriority"'
        message = f'Unsupported value: "{obj.get("preemptionPolicy")}": supported values: {offered}'
        yield cause("FieldValueNotSupported", message, "preemptionPolicy")


def _priority_class_update(obj: Manifest, old: Manifest) -> Faults:
    if obj.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield wrong("preemptionPolicy", obj.get("preemptionPolicy"), "field is immutable")


def _node(obj: Manifest) -> Faults:
    for part in ("capacity", "allocatable"):
        yield from resource_list_faults((obj.get("status") or {}).get(part), f"status.{part}")
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        path = f"spec.taints[{index}]"
        if not taint.get("key"):
            yield required(f"{path}.key")
        if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            offered = '"NoSchedule", "PreferNoSchedule", "NoExecute"'
            message = f'Unsupported value: "{taint.get("effect", "")}": supported values: {offered}'
            yield cause("FieldValueNotSupported", message, f"{path}.effect")
        mark = (taint.get("key", ""), taint.get("effect", ""))
        if mark in seen:
            yield cause("FieldValueDuplicate", f"Duplicate value: {taint}", path)
        seen.add(mark)


def _claim(obj: Manifest) -> Faults:
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield required("spec.resources[storage]")


def _claim_update(obj: Manifest, old: Manifest) -> Faults:
    def fixed(claim: Manifest) -> Manifest:
        spec = {key: value for key, value in (claim.get("spec") or {}).items() if key not in ("resources", "volumeName")}
        return spec

    if fixed(obj) != fixed(old):
        said = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        yield forbidden("spec", said)


def _stateful_set_update(obj: Manifest, old: Manifest) -> Faults:
    free = {
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    }  # fmt: skip
    new_spec, old_spec = obj.get("spec") or {}, old.get("spec") or {}
    if any(new_spec.get(key) != old_spec.get(key) for key in new_spec.keys() | old_spec.keys() if key not in free):
        yield forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )


def _job_update(obj: Manifest, old: Manifest) -> Faults:
    yield from _immutable("spec.selector")(obj, old)
    yield from _immutable("spec.completionMode")(obj, old)
    new_template, old_template = _at(obj, ["spec", "template"]), _at(old, ["spec", "template"])
    if new_template != old_template:
        # While a job is suspended its pods' placement may still be directed.
        free = {"nodeSelector", "affinity", "tolerations", "schedulingGates"}
        suspended = _at(old, ["spec", "suspend"]) and not _at(old, ["status", "startTime"])

        def fixed(template: Manifest) -> Any:
            spec = {key: value for key, value in (template.get("spec") or {}).items() if key not in free}
            return spec if suspended else template

        if fixed(new_template) != fixed(old_template):
            yield wrong("spec.template", "...", "field is immutable")


def _frozen_data(obj: Manifest, old: Manifest) -> Faults:
    if old.get("immutable"):
        if not obj.get("immutable"):
            yield forbidden("immutable", "field is immutable when `immutable` is set")
        for field in ("data", "binaryData"):
            if obj.get(field) != old.get(field):
                yield forbidden(field, "field is immutable when `immutable` is set")


def _budget(obj: Manifest) -> Faults:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield wrong("spec", "...", "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        yield from _count_or_percent(f"spec.{field}", spec.get(field))
    yield from selector_faults(spec.get("selector") or {}, "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
        message = f'Unsupported value: "{policy}": supported values: "AlwaysAllow", "IfHealthyBudget"'
        yield cause("FieldValueNotSupported", message, "spec.unhealthyPodEvictionPolicy")


def _count_or_percent(path: str, value: Any) -> Faults:
    if isinstance(value, int) and value < 0:
        yield wrong(path, value, "must be greater than or equal to 0")
    elif isinstance(value, str) and not _PERCENT.fullmatch(value):
        rule = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
        yield wrong(path, value, f"{rule}regex used for validation is '[0-9]+%')")
    elif isinstance(value, str) and (len(value) > 5 or int(value[:-1]) > 100):
        yield wrong(path, value, "must not be greater than 100%")


def _config_data(obj: Manifest) -> Faults:
    """Config maps and secrets: keys that fit into file names, and at most 1 MiB of values."""
    size = 0
    for field in ("data", "binaryData"):
        for key, value in (obj.get(field) or {}).items():
            path = f"{field}[{key}]"
            if key in (".", ".."):
                yield wrong(path, key, f"must not be '{key}'")
            elif key.startswith(".."):
                yield wrong(path, key, "must not start with '..'")
            elif not _CONFIG_KEY.fullmatch(key):
                rule = (
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
                )
                yield wrong(path, key, f"{rule}or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')")
            if field == "data" and key in (obj.get("binaryData") or {}):
                yield wrong(path, key, "duplicate of key present in binaryData")
            encoded = field == "binaryData" or obj.get("kind") == "Secret"
            size += len(value) * 3 // 4 if encoded else len(value.encode())
    if size > MOST_CONFIG_BYTES:
        whole = "data" if obj.get("kind") == "Secret" else "[]"
        yield cause("FieldValueTooLong", f"Too long: may not be more than {MOST_CONFIG_BYTES} bytes", whole)


def _quota(obj: Manifest) -> Faults:
    yield from resource_list_faults((obj.get("spec") or {}).get("hard"), "spec.hard")


def _lease(obj: Manifest) -> Faults:
    spec = obj.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if isinstance(seconds, int) and seconds <= 0:
        yield wrong("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    transitions = spec.get("leaseTransitions")
    if isinstance(transitions, int) and transitions < 0:
        yield wrong("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def _service(obj: Manifest) -> Faults:
    spec = obj.get("spec") or {}
    if not spec.get("ports") and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("port", 0)
        if not 1 <= number <= 65535:
            yield wrong(f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive")
        if len(spec["ports"]) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")


ON_CREATE: dict[str, Callable[[Manifest], Faults]] = {
    "pods": pod_faults,
    "configmaps": _config_data,
    "secrets": _config_data,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "resourcequotas": _quota,
    "services": _service,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "statefulsets.apps": _workload,
    "daemonsets.apps": _workload,
    "jobs.batch": _job,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "poddisruptionbudgets.policy": _budget,
    "leases.coordination.k8s.io": _lease,
}
ON_UPDATE: dict[str, Callable[[Manifest, Manifest], Faults]] = {
    "pods": pod_update_faults,
    "persistentvolumeclaims": _claim_update,
    "deployments.apps": _immutable("spec.selector"),
    "replicasets.apps": _immutable("spec.selector"),
    "daemonsets.apps": _immutable("spec.selector"),
    "statefulsets.apps": _stateful_set_update,
    "jobs.batch": _job_update,
    "priorityclasses.scheduling.k8s.io": _priority_class_update,
    "runtimeclasses.node.k8s.io": _immutable("handler"),
    "configmaps": _frozen_data,
    "secrets": _frozen_data,
    "services": _immutable("spec.clusterIP"),
}
