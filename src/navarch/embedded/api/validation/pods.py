"""Rules for pods and pod templates: what a pod has to say, and what of it may change later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from navarch.embedded.api.errors import cause
from navarch.embedded.api.validation.affinity import affinity_faults
from navarch.embedded.api.validation.names import LABEL_RULE, is_dns_label, label_faults
from navarch.model.label_syntax import key_complaints
from navarch.model.quantity import QuantityError, parse_nano
from navarch.object_types import Manifest

Faults = Iterator[Manifest]

CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
STANDARD_RESOURCES = CONTAINER_RESOURCES | {
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims", "storage",
    "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "services.nodeports", "services.loadbalancers",
}  # fmt: skip
"""Resource names without a domain that Kubernetes knows somewhere: on containers, nodes, claims or quotas."""
UPDATE_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _required(path: str) -> Manifest:
    return cause("FieldValueRequired", "Required value", path)


def _unsupported(path: str, found: Any, offered: tuple[str, ...]) -> Manifest:
    listed = ", ".join(f'"{each}"' for each in offered)
    return cause("FieldValueNotSupported", f'Unsupported value: "{found}": supported values: {listed}', path)


def pod_faults(pod: Manifest) -> Faults:
    yield from spec_faults(pod.get("spec") or {}, "spec")


def template_faults(template: Manifest, path: str, always: bool) -> Faults:
    """Faults of a pod template; `always` for workloads whose pods must be restarted for ever."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    yield from label_faults(labels, f"{path}.metadata.labels")
    spec = template.get("spec") or {}
    if always and spec.get("restartPolicy") not in (None, "Always"):
        yield _unsupported(f"{path}.spec.restartPolicy", spec["restartPolicy"], ("Always",))
    yield from spec_faults(spec, f"{path}.spec")


def spec_faults(spec: Manifest, path: str) -> Faults:
    if not spec.get("containers"):
        yield _required(f"{path}.containers")
    names: set[str] = set()
    volume_names = {volume.get("name") or "" for volume in spec.get("volumes") or ()}
    claim_names = {claim.get("name") or "" for claim in spec.get("resourceClaims") or ()}
    for part in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(part) or ()):
            where = f"{path}.{part}[{index}]"
            yield from _container_faults(container, where)
            yield from _mount_faults(container, where, volume_names)
            yield from _claim_use_faults(container, where, claim_names)
            name = container.get("name") or ""
            if name and name in names:
                yield cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{where}.name")
            names.add(name)
    if spec.get("restartPolicy") not in (None, "Always", "OnFailure", "Never"):
        yield _unsupported(f"{path}.restartPolicy", spec["restartPolicy"], ("Always", "OnFailure", "Never"))
    yield from _toleration_faults(spec, path)
    yield from _spread_faults(spec, path)
    yield from affinity_faults(spec.get("affinity") or {}, f"{path}.affinity")
    yield from _pod_claim_faults(spec, path)
    yield from _gate_name_faults(spec, path)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        message = "Forbidden: cannot be set until all schedulingGates have been cleared"
        yield cause("FieldValueForbidden", message, f"{path}.nodeName")
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        name = volume.get("name") or ""
        where = f"{path}.volumes[{index}].name"
        if not name:
            yield _required(where)
        elif not is_dns_label(name):
            yield cause("FieldValueInvalid", f'Invalid value: "{name}": {LABEL_RULE}', where)
        elif name in volumes:
            yield cause("FieldValueDuplicate", f'Duplicate value: "{name}"', where)
        volumes.add(name)
    yield from label_faults(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")


def _container_faults(container: Manifest, where: str) -> Faults:
    name = container.get("name") or ""
    if not name:
        yield _required(f"{where}.name")
    elif not is_dns_label(name):
        yield cause("FieldValueInvalid", f'Invalid value: "{name}": {LABEL_RULE}', f"{where}.name")
    if not container.get("image"):
        yield _required(f"{where}.image")
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        yield from _resource_name_faults(amounts, f"{where}.resources.{part}", "containers", CONTAINER_RESOURCES)
        yield from resource_list_faults(amounts, f"{where}.resources.{part}")
    yield from _resize_faults(container, where)
    for resource, amount in requests.items():
        if resource not in limits:
            if _is_extended(resource) or resource.startswith("hugepages-"):
                message = "Required value: Limit must be set for non overcommitable resources"
                yield cause("FieldValueRequired", message, f"{where}.resources.limits")
            continue
        asked, limit = _amount(amount), _amount(limits[resource])
        if asked is None or limit is None:
            continue
        if _is_extended(resource) and asked != limit:
            message = f'Invalid value: "{amount}": must be equal to {resource} limit of {limits[resource]}'
            yield cause("FieldValueInvalid", message, f"{where}.resources.requests")
        elif asked > limit:
            message = f'Invalid value: "{amount}": must be less than or equal to {resource} limit of {limits[resource]}'
            yield cause("FieldValueInvalid", message, f"{where}.resources.requests")
    for index, port in enumerate(container.get("ports") or ()):
        for field in ("containerPort", "hostPort"):
            number = port.get(field, 0)
            if (number or field == "containerPort") and not 1 <= number <= 65535:
                message = f"Invalid value: {number}: must be between 1 and 65535, inclusive"
                yield cause("FieldValueInvalid", message, f"{where}.ports[{index}].{field}")


def _mount_faults(container: Manifest, where: str, volumes: set[str]) -> Faults:
    paths: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at, name, path = f"{where}.volumeMounts[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield _required(f"{at}.name")
        if name not in volumes:
            yield cause("FieldValueNotFound", f'Not found: "{name}"', f"{at}.name")
        if not path:
            yield _required(f"{at}.mountPath")
        if path in paths:
            yield cause("FieldValueInvalid", f'Invalid value: "{path}": must be unique', f"{at}.mountPath")
        paths.add(path)


def _claim_use_faults(container: Manifest, where: str, claims: set[str]) -> Faults:
    used: set[tuple[str, str]] = set()
    for index, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
        at, name = f"{where}.resources.claims[{index}]", claim.get("name") or ""
        if not name:
            yield _required(f"{at}.name")
        elif (name, claim.get("request") or "") in used:
            yield cause("FieldValueDuplicate", f'Duplicate value: "{name}"', at)
        elif name not in claims:
            others = "which is empty" if not claims else f"{', '.join(sorted(claims))}"
            yield cause("FieldValueNotFound", f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims {others}', at)
        used.add((name, claim.get("request") or ""))


def _pod_claim_faults(spec: Manifest, path: str) -> Faults:
    names: set[str] = set()
    for index, claim in enumerate(spec.get("resourceClaims") or ()):
        at, name = f"{path}.resourceClaims[{index}]", claim.get("name") or ""
        if not name:
            yield _required(f"{at}.name")
        elif name in names:
            yield cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{at}.name")
        names.add(name)
        sources = [claim.get(key) for key in ("resourceClaimName", "resourceClaimTemplateName")]
        if sum(source is not None for source in sources) != 1:
            shown = json.dumps(
                {"Name": name, "ResourceClaimName": sources[0], "ResourceClaimTemplateName": sources[1]}, separators=(",", ":")
            )
            rule = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            if sources == [None, None]:
                rule = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield cause("FieldValueInvalid", f"Invalid value: {shown}: {rule}", at)


def _gate_name_faults(spec: Manifest, path: str) -> Faults:
    names: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        at, name = f"{path}.schedulingGates[{index}]", gate.get("name") or ""
        for complaint in key_complaints(name):
            yield cause("FieldValueInvalid", f'Invalid value: "{name}": {complaint}', at)
        if name in names:
            yield cause("FieldValueDuplicate", f'Duplicate value: "{name}"', at)
        names.add(name)


def _resize_faults(container: Manifest, where: str) -> Faults:
    resources: set[str] = set()
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        resource, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource not in ("cpu", "memory"):
            yield _unsupported(f"{where}.resizePolicy", resource, ("cpu", "memory"))
        if restart not in ("NotRequired", "RestartContainer"):
            yield _unsupported(f"{where}.resizePolicy", restart, ("NotRequired", "RestartContainer"))
        if resource in resources:
            yield cause("FieldValueDuplicate", f'Duplicate value: "{resource}"', f"{where}.resizePolicy[{index}]")
        resources.add(resource)


def _resource_name_faults(amounts: Manifest, path: str, owner: str, standard: frozenset[str]) -> Faults:
    """Names without a domain have to be standard ones. Names with a domain may not look like a quota's."""
    for name in amounts:
        at, lead = f"{path}[{name}]", f'Invalid value: "{name}": '
        if "/" not in name:
            if name not in STANDARD_RESOURCES and not name.startswith(("hugepages-", "attachable-volumes-")):
                yield cause("FieldValueInvalid", f"{lead}must be a standard resource type or fully qualified", at)
            if name not in standard and not name.startswith("hugepages-"):
                yield cause("FieldValueInvalid", f"{lead}must be a standard resource for {owner}", at)
            continue
        complaints = key_complaints(name)
        for complaint in complaints:
            yield cause("FieldValueInvalid", f"{lead}{complaint.replace('a qualified name must', 'a valid label key must')}", at)
        if complaints or (_is_extended(name) and name.startswith("requests.")):
            yield cause("FieldValueInvalid", f"{lead}doesn't follow extended resource name standard", at)


def _is_extended(resource: str) -> bool:
    return "/" in resource and "kubernetes.io/" not in resource


def _amount(value: Any) -> int | None:
    try:
        return parse_nano(value)
    except QuantityError:
        return None


def resource_list_faults(amounts: Manifest | None, path: str) -> Faults:
    """Negative amounts, and fractions of what only comes whole."""
    for name, amount in (amounts or {}).items():
        nano = _amount(amount)
        if nano is None:
            yield cause("FieldValueInvalid", f'Invalid value: "{amount}": expected a quantity', f"{path}[{name}]")
        elif nano < 0:
            message = f'Invalid value: "{amount}": must be greater than or equal to 0'
            yield cause("FieldValueInvalid", message, f"{path}[{name}]")
        elif _is_extended(name) and nano % 1_000_000_000:
            yield cause("FieldValueInvalid", f'Invalid value: "{amount}": must be an integer', f"{path}[{name}]")


def _toleration_faults(spec: Manifest, path: str) -> Faults:
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        where = f"{path}.tolerations[{index}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Equal", "Exists", "Lt", "Gt"):
            yield _unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        if not toleration.get("key") and operator != "Exists":
            said = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield cause("FieldValueInvalid", f'Invalid value: "{operator}": {said}', f"{where}.operator")
        if operator == "Exists" and toleration.get("value"):
            said = "value must be empty when `operator` is 'Exists'"
            yield cause("FieldValueInvalid", f'Invalid value: "{toleration["value"]}": {said}', f"{where}.operator")
        if toleration.get("effect") not in (None, "", "NoSchedule", "PreferNoSchedule", "NoExecute"):
            offered = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            yield _unsupported(f"{where}.effect", toleration["effect"], offered)
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            said = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield cause("FieldValueInvalid", f'Invalid value: "{toleration.get("effect", "")}": {said}', f"{where}.effect")


def _spread_faults(spec: Manifest, path: str) -> Faults:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = f"{path}.topologySpreadConstraints[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            message = f"Invalid value: {constraint.get('maxSkew', 0)}: must be greater than zero"
            yield cause("FieldValueInvalid", message, f"{where}.maxSkew")
        if not constraint.get("topologyKey"):
            yield cause("FieldValueRequired", "Required value: can not be empty", f"{where}.topologyKey")
        if constraint.get("whenUnsatisfiable") not in ("DoNotSchedule", "ScheduleAnyway"):
            found = constraint.get("whenUnsatisfiable", "")
            yield _unsupported(f"{where}.whenUnsatisfiable", found, ("DoNotSchedule", "ScheduleAnyway"))


def pod_update_faults(pod: Manifest, old: Manifest) -> Faults:
    """Only images, deadline, added tolerations, removed gates, and placement of gated pods may change."""
    new_spec, old_spec = dict(pod.get("spec") or {}), dict(old.get("spec") or {})
    if new_spec == old_spec:
        return
    for part in ("containers", "initContainers"):
        if len(new_spec.get(part) or ()) != len(old_spec.get(part) or ()):
            message = "Forbidden: pod updates may not add or remove containers"
            yield cause("FieldValueForbidden", message, f"spec.{part}")
            return
        if part in new_spec:
            new_spec[part] = [_without_image(each) for each in new_spec[part]]
            old_spec[part] = [_without_image(each) for each in old_spec[part]]
    yield from _gate_faults(new_spec, old_spec)
    gated = bool(old_spec.get("schedulingGates"))
    kept = list(new_spec.get("tolerations") or ())
    if any(each not in kept for each in old_spec.get("tolerations") or ()):
        message = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        yield cause("FieldValueForbidden", message, "spec.tolerations")
    free = {"tolerations", "schedulingGates", "activeDeadlineSeconds", "terminationGracePeriodSeconds"}
    if gated:
        free |= {"nodeSelector", "affinity"}
        for key, value in (old_spec.get("nodeSelector") or {}).items():
            if (new_spec.get("nodeSelector") or {}).get(key) != value:
                message = f"Invalid value: {new_spec.get('nodeSelector')}: only additions are allowed (no mutations or deletions)"
                yield cause("FieldValueInvalid", message, "spec.nodeSelector")
    if old_spec.get("terminationGracePeriodSeconds") != new_spec.get("terminationGracePeriodSeconds"):
        if not (old_spec.get("terminationGracePeriodSeconds", 0) < 0 and new_spec.get("terminationGracePeriodSeconds") == 1):
            free.discard("terminationGracePeriodSeconds")
    changed = sorted(key for key in new_spec.keys() | old_spec.keys() if key not in free and new_spec.get(key) != old_spec.get(key))
    if changed:
        yield cause("FieldValueForbidden", f"Forbidden: {UPDATE_RULE}\nchanged: {', '.join(changed)}", "spec")


def _without_image(container: Manifest) -> Manifest:
    return {key: value for key, value in container.items() if key != "image"}


def _gate_faults(new_spec: Manifest, old_spec: Manifest) -> Faults:
    before = {gate.get("name") for gate in old_spec.get("schedulingGates") or ()}
    for index, gate in enumerate(new_spec.get("schedulingGates") or ()):
        if gate.get("name") not in before:
            message = f"Forbidden: only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield cause("FieldValueForbidden", message, f"spec.schedulingGates[{index}].name")
