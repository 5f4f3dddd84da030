"""What the API server fills into a pod, or into the pod template of a workload.

Clients leave most fields of a pod out, and schedulers read the filled-in pod. Requests that follow from limits, the scheduler's
name, host ports of host-network pods and merged match-label keys decide where a pod may go, so pods from files need the same
treatment. All functions here change the object they are given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navarch.model.quantity import canonical, form_of, format_nano, nano_to_milli, parse_nano
from navarch.object_types import Manifest

_NANO_PER_MILLI = 1_000_000


def default_pod(pod: Manifest) -> None:
    """Everything a pod gets when it is decoded: spec, requests from limits, host ports, qosClass, phase."""
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    for container in containers(spec):
        requests_from_limits(container)
    _pod_level_resources(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in containers(spec):
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def prepare_pod(pod: Manifest) -> None:
    """What a pod gets when it is created: phase, QoS class, the gated condition, merged match-label keys."""
    spec = pod["spec"]
    status = pod.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    if not status.get("qosClass"):
        status["qosClass"] = qos_class(spec)
    merge_match_label_keys(pod)
    if spec.get("schedulingGates"):
        conditions = status.setdefault("conditions", [])
        if not any(condition.get("type") == "PodScheduled" for condition in conditions):
            conditions.append(
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": None,
                    "lastTransitionTime": (pod.get("metadata") or {}).get("creationTimestamp"),
                }
            )


def default_pod_spec(spec: Manifest) -> None:
    """Defaults of every pod spec, in a pod or in a template."""
    _fill(spec, "dnsPolicy", "ClusterFirst")
    _fill(spec, "restartPolicy", "Always")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    _fill(spec, "schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in [*containers(spec), *(spec.get("ephemeralContainers") or ())]:
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    if spec.get("overhead"):
        round_resource_list(spec["overhead"])
    if spec.get("resources"):
        for part in ("limits", "requests"):
            round_resource_list(spec["resources"].get(part))


def containers(spec: Manifest) -> Iterator[Manifest]:
    """Init containers, then containers. An entry that is not a mapping is skipped; validation reports it."""
    for part in ("initContainers", "containers"):
        for container in spec.get(part) or ():
            if isinstance(container, dict):
                yield container


def requests_from_limits(container: Manifest) -> None:
    """A container that limits a resource and requests none of it requests as much as it limits."""
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests")
        if requests is None:
            requests = resources["requests"] = {}
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def round_resource_list(amounts: Manifest | None) -> None:
    """Rounds each amount up to a thousandth and writes it in canonical form.

    >>> amounts = {"cpu": "1.0001", "memory": "1024Mi"}
    >>> round_resource_list(amounts); amounts
    {'cpu': '1001m', 'memory': '1Gi'}
    """
    if amounts is None:
        return
    for name, amount in amounts.items():
        nano = parse_nano(amount)
        if nano % _NANO_PER_MILLI:
            amounts[name] = format_nano(nano_to_milli(nano) * _NANO_PER_MILLI, form_of(amount))
        else:
            amounts[name] = canonical(amount)


def qos_class(spec: Manifest) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory alone; pod-level resources replace those of containers.

    >>> qos_class({"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1Gi"},
    ...                                          "requests": {"cpu": "1", "memory": "1Gi"}}}]})
    'Guaranteed'
    """
    pod_level = spec.get("resources")
    parts = [pod_level] if pod_level else [container.get("resources") or {} for container in containers(spec)]
    requests = [_positive(part.get("requests")) for part in parts]
    limits = [_positive(part.get("limits")) for part in parts]
    if not any(requests) and not any(limits):
        return "BestEffort"
    whole = all(len(limit) == 2 and limit == request for request, limit in zip(requests, limits))
    return "Guaranteed" if whole else "Burstable"


def merge_match_label_keys(pod: Manifest) -> None:
    """Turns matchLabelKeys of affinity terms and spread constraints into requirements with the pod's own values."""
    labels = (pod.get("metadata") or {}).get("labels") or {}
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(name) or {}
        preferred = part.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms = [
            *(part.get("requiredDuringSchedulingIgnoredDuringExecution") or ()),
            *(each.get("podAffinityTerm") or {} for each in preferred),
        ]
        for term in terms:
            _require(term, "matchLabelKeys", "In", labels)
            _require(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _require(constraint, "matchLabelKeys", "In", labels)


def _require(term: Manifest, keys: str, operator: str, labels: Manifest) -> None:
    selector = term.get("labelSelector")
    if selector is None or not term.get(keys):
        return
    for key in term[keys]:
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            expressions = selector.setdefault("matchExpressions", [])
            if requirement not in expressions:
                expressions.append(requirement)


def _positive(amounts: Manifest | None) -> dict[str, int]:
    wanted = {name: parse_nano((amounts or {}).get(name)) for name in ("cpu", "memory") if name in (amounts or {})}
    return {name: nano for name, nano in wanted.items() if nano > 0}


def _pod_level_resources(spec: Manifest) -> None:
    """Pod-level requests and huge-page limits that follow from what the containers and the pod-level limits say."""
    resources = spec.get("resources")
    if not resources or not (resources.get("limits") or resources.get("requests")):
        return
    limits = dict(resources.get("limits") or {})
    requests = dict(resources.get("requests") or {})
    for name, amount in aggregate(spec, "limits").items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        resources["limits"] = limits
        for name, amount in aggregate(spec, "requests").items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def aggregate(spec: Manifest, part: str) -> dict[str, str]:
    """The requests or limits of all containers as one list: sums, with init containers and sidecars by the order in which they run."""
    total: dict[str, int] = {}
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    forms: dict[str, Any] = {}

    def amounts_of(container: Manifest) -> dict[str, int]:
        amounts = (container.get("resources") or {}).get(part) or {}
        for name, amount in amounts.items():
            forms.setdefault(name, form_of(amount))
        return {name: parse_nano(amount) for name, amount in amounts.items()}

    for container in spec.get("containers") or ():
        _add(total, amounts_of(container))
    for container in spec.get("initContainers") or ():
        own = amounts_of(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, own)
            _add(total, own)
            own = sidecars
        else:
            own = dict(own)
            _add(own, sidecars)
        for name, nano in own.items():
            peak[name] = max(peak.get(name, 0), nano)
    for name, nano in peak.items():
        total[name] = max(total.get(name, 0), nano)
    return {name: format_nano(total[name], forms[name]) for name in sorted(total)}


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _default_container(container: Manifest) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _is_latest(container.get("image") or "") else "IfNotPresent"
    _fill(container, "terminationMessagePath", "/dev/termination-log")
    _fill(container, "terminationMessagePolicy", "File")
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    elif isinstance(resources, dict):
        for part in ("limits", "requests"):
            round_resource_list(resources.get(part))
    for port in container.get("ports") or ():
        _fill(port, "protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            _fill(reference, "apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            for field, value in (
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ):
                _fill(probe, field, value)
            _default_http_get(probe)
            if probe.get("grpc") is not None:
                probe["grpc"].setdefault("service", "")
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_http_get(handler)


def _default_http_get(handler: Manifest) -> None:
    action = handler.get("httpGet")
    if action is not None:
        _fill(action, "path", "/")
        _fill(action, "scheme", "HTTP")


def _is_latest(image: str) -> bool:
    """Whether an image has no fixed version: its tag is `latest`, or it has neither tag nor digest."""
    if "@" in image:
        return False
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return not colon or tag == "latest"


def _default_volume(volume: Manifest) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None and volume[source].get("defaultMode") is None:
            volume[source]["defaultMode"] = 420
    if volume.get("hostPath") is not None and volume["hostPath"].get("type") is None:
        volume["hostPath"]["type"] = ""
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        if item.get("fieldRef") is not None:
            _fill(item["fieldRef"], "apiVersion", "v1")
    for source in (volume.get("projected") or {}).get("sources") or ():
        token = source.get("serviceAccountToken")
        if token is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            if item.get("fieldRef") is not None:
                _fill(item["fieldRef"], "apiVersion", "v1")
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
    if claim.get("spec") is not None:
        _fill(claim["spec"], "volumeMode", "Filesystem")


def _fill(obj: Manifest, field: str, value: Any) -> None:
    """Set a field that is absent, null or empty (Go's zero values)."""
    if not obj.get(field):
        obj[field] = value
