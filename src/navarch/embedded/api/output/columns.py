"""The columns that `kubectl get` shows of each kind, and the cells of a row.

One short table a kind: (heading, type, how to read it). A heading after a "+" shows with `-o wide` only. Custom kinds bring their
own columns as JSON paths.
"""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.output.pod_rows import pod_state
from navarch.embedded.api.subresources.scale import selector_text
from navarch.object_types import Manifest

Read = Callable[[Manifest, float], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its definition and how its cell is read."""

    name: str
    type: str
    read: Read
    wide: bool = False
    description: str = ""
    format: str = ""

    def definition(self) -> Manifest:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": 1 if self.wide else 0,
        }


def seconds_of(text: str) -> float | None:
    """Unix time of an RFC 3339 text, whole seconds."""
    try:
        return float(timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))
    except (ValueError, TypeError):
        return None


def human_duration(seconds: float) -> str:
    """A duration the way kubectl writes it.

    >>> human_duration(65), human_duration(150), human_duration(7500), human_duration(90000)
    ('65s', '2m30s', '125m', '25h')
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days < 2920 and days % 365 else f"{days // 365}y"


def since(text: str | None, now: float) -> str:
    moment = seconds_of(text) if text else None
    return "<unknown>" if moment is None else human_duration(now - moment)


def at(obj: Any, path: str, default: Any = None) -> Any:
    """The value at a dotted path."""
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
        if obj is None:
            return default
    return obj


def _path(path: str, default: Any = "") -> Read:
    return lambda obj, now: at(obj, path, default)


def _age(path: str = "metadata.creationTimestamp") -> Read:
    return lambda obj, now: since(at(obj, path), now)


def _count(path: str) -> Read:
    return lambda obj, now: len(at(obj, path, ()))


def _keys(*paths: str) -> Read:
    return lambda obj, now: sum(len(at(obj, path, ())) for path in paths)


def _containers(path: str, field: str) -> Read:
    return lambda obj, now: ",".join(str(each.get(field, "")) for each in at(obj, path, ()))


def _selector(path: str) -> Read:
    return lambda obj, now: selector_text(at(obj, path)) or "<none>"


def _ratio(part: str, whole: str) -> Read:
    return lambda obj, now: f"{at(obj, part, 0)}/{at(obj, whole, 0)}"


NAME = Column("Name", "string", _path("metadata.name"), format="name", description="Name of the object")
AGE = Column("Age", "string", _age(), description="Time since it was created")


def _c(name: str, read: Read, kind: str = "string") -> Column:
    return Column(name.lstrip("+"), kind, read, wide=name.startswith("+"))


def _pod(part: int) -> Read:
    return lambda obj, now: str(pod_state(obj)[part]) if part == 2 else pod_state(obj)[part]


def _or_none(path: str) -> Read:
    return lambda obj, now: at(obj, path) or "<none>"


def _gates(obj: Manifest, now: float) -> str:
    gates = at(obj, "spec.readinessGates", ())
    if not gates:
        return "<none>"
    true = {each["type"] for each in at(obj, "status.conditions", ()) if each.get("status") == "True"}
    return f"{sum(each['conditionType'] in true for each in gates)}/{len(gates)}"


def _node_status(obj: Manifest, now: float) -> str:
    ready = next((each for each in at(obj, "status.conditions", ()) if each["type"] == "Ready"), None)
    state = "Unknown" if ready is None else ("Ready" if ready.get("status") == "True" else "NotReady")
    return f"{state},SchedulingDisabled" if at(obj, "spec.unschedulable") else state


def _roles(obj: Manifest, now: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = at(obj, "metadata.labels", {})
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or "<none>"


def _address(kind: str) -> Read:
    def read(obj: Manifest, now: float) -> str:
        found = (each["address"] for each in at(obj, "status.addresses", ()) if each.get("type") == kind)
        return next(found, "<none>")

    return read


def _info(field: str) -> Read:
    return lambda obj, now: at(obj, f"status.nodeInfo.{field}") or "<unknown>"


def _event_last(obj: Manifest, now: float) -> str:
    seen = at(obj, "series.lastObservedTime") or obj.get("lastTimestamp") or obj.get("firstTimestamp") or obj.get("eventTime")
    return since(seen, now)


def _event_object(obj: Manifest, now: float) -> str:
    kind, name = at(obj, "involvedObject.kind", ""), at(obj, "involvedObject.name", "")
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _event_source(obj: Manifest, now: float) -> str:
    component = at(obj, "source.component") or obj.get("reportingComponent") or ""
    host = at(obj, "source.host") or obj.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def _event_count(obj: Manifest, now: float) -> str:
    return str(at(obj, "series.count") or obj.get("count") or 1)


def _job_status(obj: Manifest, now: float) -> str:
    true = {each["type"] for each in at(obj, "status.conditions", ()) if each.get("status") == "True"}
    for kind in ("Complete", "Failed"):
        if kind in true:
            return kind
    if at(obj, "metadata.deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if kind in true), "Running")


def _job_completions(obj: Manifest, now: float) -> str:
    done, wanted = at(obj, "status.succeeded", 0), at(obj, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(obj, "spec.parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(obj: Manifest, now: float) -> str:
    start = seconds_of(at(obj, "status.startTime", ""))
    if start is None:
        return ""
    end = seconds_of(at(obj, "status.completionTime", ""))
    return human_duration((now if end is None else end) - start)


def _ports(obj: Manifest, now: float) -> str:
    def port(each: Manifest) -> str:
        node = f":{each['nodePort']}" if each.get("nodePort") else ""
        return f"{each.get('port')}{node}/{each.get('protocol', 'TCP')}"

    return ",".join(port(each) for each in at(obj, "spec.ports", ())) or "<none>"


def _external(obj: Manifest, now: float) -> str:
    given = at(obj, "spec.externalIPs", [])
    given = given + [each.get("ip") or each.get("hostname") for each in at(obj, "status.loadBalancer.ingress", ())]
    if given:
        return ",".join(given)
    return "<pending>" if at(obj, "spec.type") == "LoadBalancer" else "<none>"


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(path: str) -> Read:
    return lambda obj, now: ",".join(_MODES.get(each, each) for each in at(obj, path, ()))


def _claim(obj: Manifest, now: float) -> str:
    reference = at(obj, "spec.claimRef", {})
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _default_class(obj: Manifest, now: float) -> str:
    notes = at(obj, "metadata.annotations", {})
    mark = " (default)" if notes.get("storageclass.kubernetes.io/is-default-class") == "true" else ""
    return f"{obj['metadata']['name']}{mark}"


def _quota(limits: bool) -> Read:
    def read(obj: Manifest, now: float) -> str:
        hard, used = at(obj, "status.hard", {}), at(obj, "status.used", {})
        names = [name for name in sorted(hard) if name.startswith("limits.") is limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return read


def _role(obj: Manifest, now: float) -> str:
    return f"{at(obj, 'roleRef.kind', '')}/{at(obj, 'roleRef.name', '')}"


def _or_na(path: str) -> Read:
    return lambda obj, now: str(value) if (value := at(obj, path)) is not None else "N/A"


def _yes(path: str) -> Read:
    return lambda obj, now: bool(at(obj, path, False))


def _template(path: str) -> list[Column]:
    return [
        _c("+Containers", _containers(f"{path}.spec.containers", "name")),
        _c("+Images", _containers(f"{path}.spec.containers", "image")),
    ]


CREATED = [NAME, Column("Created At", "date", _path("metadata.creationTimestamp"))]
COLUMNS: dict[str, list[Column]] = {
    "pods": [
        NAME, _c("Ready", _pod(0)), _c("Status", _pod(1)), _c("Restarts", _pod(2)), AGE, _c("+IP", _or_none("status.podIP")),
        _c("+Node", _or_none("spec.nodeName")), _c("+Nominated Node", _or_none("status.nominatedNodeName")),
        _c("+Readiness Gates", _gates),
    ],
    "nodes": [
        NAME, _c("Status", _node_status), _c("Roles", _roles), AGE, _c("Version", _path("status.nodeInfo.kubeletVersion")),
        _c("+Internal-IP", _address("InternalIP")), _c("+External-IP", _address("ExternalIP")),
        _c("+OS-Image", _info("osImage")), _c("+Kernel-Version", _info("kernelVersion")),
        _c("+Container-Runtime", _info("containerRuntimeVersion")),
    ],
    "events": [
        _c("Last Seen", _event_last), _c("Type", _path("type")), _c("Reason", _path("reason")), _c("Object", _event_object),
        _c("+Subobject", _path("involvedObject.fieldPath")), _c("+Source", _event_source), _c("Message", _path("message")),
        _c("+First Seen", _age("firstTimestamp")), _c("+Count", _event_count),
        Column("Name", "string", _path("metadata.name"), wide=True, format="name"),
    ],
    "namespaces": [NAME, _c("Status", _path("status.phase")), AGE],
    "services": [
        NAME, _c("Type", _path("spec.type")), _c("Cluster-IP", _or_none("spec.clusterIP")), _c("External-IP", _external),
        _c("Port(s)", _ports), AGE, _c("+Selector", _selector("spec.selector")),
    ],
    "configmaps": [NAME, _c("Data", _keys("data", "binaryData")), AGE],
    "secrets": [NAME, _c("Type", _path("type")), _c("Data", _count("data")), AGE],
    "serviceaccounts": [NAME, AGE],
    "resourcequotas": [NAME, _c("Request", _quota(False)), _c("Limit", _quota(True)), AGE],
    "limitranges": CREATED,
    "persistentvolumes": [
        NAME, _c("Capacity", _path("spec.capacity.storage")), _c("Access Modes", _modes("spec.accessModes")),
        _c("Reclaim Policy", _path("spec.persistentVolumeReclaimPolicy")), _c("Status", _path("status.phase")),
        _c("Claim", _claim), _c("StorageClass", _path("spec.storageClassName")), _c("Reason", _path("status.reason")), AGE,
        _c("+VolumeMode", _path("spec.volumeMode")),
    ],
    "persistentvolumeclaims": [
        NAME, _c("Status", _path("status.phase")), _c("Volume", _path("spec.volumeName")),
        _c("Capacity", _path("status.capacity.storage")), _c("Access Modes", _modes("status.accessModes")),
        _c("StorageClass", _path("spec.storageClassName")), AGE, _c("+VolumeMode", _path("spec.volumeMode")),
    ],
    "deployments.apps": [
        NAME, _c("Ready", _ratio("status.readyReplicas", "spec.replicas")),
        _c("Up-to-date", _path("status.updatedReplicas", 0)), _c("Available", _path("status.availableReplicas", 0)), AGE,
        *_template("spec.template"),
        _c("+Selector", _selector("spec.selector")),
    ],
    "replicasets.apps": [
        NAME, _c("Desired", _path("spec.replicas", 0), "integer"), _c("Current", _path("status.replicas", 0), "integer"),
        _c("Ready", _path("status.readyReplicas", 0), "integer"), AGE, *_template("spec.template"),
        _c("+Selector", _selector("spec.selector")),
    ],
    "statefulsets.apps": [
        NAME, _c("Ready", _ratio("status.readyReplicas", "spec.replicas")), AGE, *_template("spec.template"),
    ],
    "daemonsets.apps": [
        NAME, _c("Desired", _path("status.desiredNumberScheduled", 0), "integer"),
        _c("Current", _path("status.currentNumberScheduled", 0), "integer"),
        _c("Ready", _path("status.numberReady", 0), "integer"),
        _c("Up-to-date", _path("status.updatedNumberScheduled", 0), "integer"),
        _c("Available", _path("status.numberAvailable", 0), "integer"),
        _c("Node Selector", _selector("spec.template.spec.nodeSelector")), AGE, *_template("spec.template"),
        _c("+Selector", _selector("spec.selector")),
    ],
    "jobs.batch": [
        NAME, _c("Status", _job_status), _c("Completions", _job_completions), _c("Duration", _job_duration), AGE,
        *_template("spec.template"), _c("+Selector", _selector("spec.selector")),
    ],
    "cronjobs.batch": [
        NAME, _c("Schedule", _path("spec.schedule")), _c("Timezone", _or_none("spec.timeZone")),
        _c("Suspend", _yes("spec.suspend"), "boolean"), _c("Active", _count("status.active"), "integer"),
        _c("Last Schedule", lambda obj, now: since(at(obj, "status.lastScheduleTime"), now).replace("<unknown>", "<none>")),
        AGE, *_template("spec.jobTemplate.spec.template"),
    ],
    "poddisruptionbudgets.policy": [
        NAME, _c("Min Available", _or_na("spec.minAvailable")), _c("Max Unavailable", _or_na("spec.maxUnavailable")),
        _c("Allowed Disruptions", _path("status.disruptionsAllowed", 0), "integer"), AGE,
    ],
    "priorityclasses.scheduling.k8s.io": [
        NAME, _c("Value", _path("value", 0), "integer"), _c("Global-Default", _yes("globalDefault"), "boolean"), AGE,
        _c("PreemptionPolicy", _path("preemptionPolicy")),
    ],
    "leases.coordination.k8s.io": [NAME, _c("Holder", _path("spec.holderIdentity")), AGE],
    "storageclasses.storage.k8s.io": [
        Column("Name", "string", _default_class, format="name"), _c("Provisioner", _path("provisioner")),
        _c("ReclaimPolicy", _path("reclaimPolicy")), _c("VolumeBindingMode", _path("volumeBindingMode")),
        _c("AllowVolumeExpansion", _yes("allowVolumeExpansion"), "boolean"), AGE,
    ],
    "csinodes.storage.k8s.io": [NAME, _c("Drivers", _count("spec.drivers"), "integer"), AGE],
    "runtimeclasses.node.k8s.io": [NAME, _c("Handler", _path("handler")), AGE],
    "customresourcedefinitions.apiextensions.k8s.io": CREATED,
    "roles.rbac.authorization.k8s.io": CREATED,
    "clusterroles.rbac.authorization.k8s.io": CREATED,
    "rolebindings.rbac.authorization.k8s.io": [NAME, _c("Role", _role), AGE],
    "clusterrolebindings.rbac.authorization.k8s.io": [NAME, _c("Role", _role), AGE],
}  # fmt: skip


def columns_of(kind: Kind) -> list[Column]:
    """The columns of a kind; name and age where nothing else is known."""
    if kind.definition is not None:
        own = [_custom(each) for each in kind.definition["columns"]]
        return [NAME, *own] if own else [NAME, AGE]
    return COLUMNS.get(kind.stored, [NAME, AGE])


def _custom(column: Manifest) -> Column:
    steps = _json_path(column["jsonPath"])
    is_date = column.get("type") == "date"

    def read(obj: Manifest, now: float) -> Any:
        value = _walk(obj, steps)
        if value is None:
            return None
        if is_date:
            return since(str(value), now)
        return value if isinstance(value, str | int | float | bool) else str(value)

    return Column(
        column["name"],
        column.get("type", "string"),
        read,
        wide=bool(column.get("priority")),
        description=column.get("description", ""),
        format=column.get("format", ""),
    )


_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\*|\?\(@\.[^)]*\))\]|\['([^']*)'\]")
_FILTER = re.compile(r"\?\(@\.([\w.]+)\s*==\s*[\"']([^\"']*)[\"']\)")


def _json_path(path: str) -> list[str]:
    """.status.conditions[?(@.type=="Ready")].status -> its steps."""
    text = path.strip().strip("{}").replace("\\.", "\0")
    return [next(part for part in match.groups() if part).replace("\0", ".") for match in _STEP.finditer(text)]


_INDEX = re.compile(r"[0-9]{1,9}")


def _walk(value: Any, steps: list[str]) -> Any:
    for step in steps:
        condition = _FILTER.fullmatch(step)
        if condition is not None:
            found = value if isinstance(value, list) else ()
            value = next((each for each in found if str(at(each, condition.group(1))) == condition.group(2)), None)
        elif isinstance(value, list):
            index = 0 if step == "*" else int(step) if _INDEX.fullmatch(step) else len(value)
            value = value[index] if index < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return None
    return value
