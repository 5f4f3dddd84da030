"""What the API server fills into objects other than pods: one small function for each group and kind.

All functions change the object they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from navarch.apis.admission.pod_defaults import default_pod, default_pod_spec, round_resource_list
from navarch.object_types import Manifest

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def default_object(obj: Manifest) -> None:
    """Apply the defaults of the object's kind, if it has any.

    >>> job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {}}
    >>> default_object(job); job["spec"]["backoffLimit"]
    6
    """
    group = obj.get("apiVersion", "").rpartition("/")[0]
    change = DEFAULTS.get((group, obj.get("kind", "")))
    if change is not None:
        change(obj)


def _fill(obj: Manifest, field: str, value: Any) -> None:
    if obj.get(field) is None or obj.get(field) == "":
        obj[field] = value


def _child(obj: Manifest, field: str) -> Manifest:
    child = obj.get(field)
    if child is None:
        child = obj[field] = {}
    found: Manifest = child
    return found


def _template(spec: Manifest) -> None:
    template = spec.get("template")
    if isinstance(template, dict):
        metadata = _child(template, "metadata")
        metadata.setdefault("creationTimestamp", None)
        if metadata["creationTimestamp"] is None:
            del metadata["creationTimestamp"]
        default_pod_spec(_child(template, "spec"))


def _deployment(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    _fill(spec, "replicas", 1)
    strategy = _child(spec, "strategy")
    _fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = _child(strategy, "rollingUpdate")
        _fill(rolling, "maxUnavailable", "25%")
        _fill(rolling, "maxSurge", "25%")
    _fill(spec, "revisionHistoryLimit", 10)
    _fill(spec, "progressDeadlineSeconds", 600)
    _template(spec)


def _replica_set(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    _fill(spec, "replicas", 1)
    _template(spec)


def _replication_controller(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    _fill(spec, "replicas", 1)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = _child(obj, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    _template(spec)


def _daemon_set(obj: Manifest) -> None:
    metadata = _child(obj, "metadata")
    _child(metadata, "annotations").setdefault(TEMPLATE_GENERATION, "1")
    spec = _child(obj, "spec")
    strategy = _child(spec, "updateStrategy")
    _fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = _child(strategy, "rollingUpdate")
        _fill(rolling, "maxUnavailable", 1)
        _fill(rolling, "maxSurge", 0)
    _fill(spec, "revisionHistoryLimit", 10)
    _template(spec)


def _stateful_set(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    _fill(spec, "podManagementPolicy", "OrderedReady")
    strategy = _child(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        _child(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        _fill(strategy["rollingUpdate"], "partition", 0)
    retention = _child(spec, "persistentVolumeClaimRetentionPolicy")
    _fill(retention, "whenDeleted", "Retain")
    _fill(retention, "whenScaled", "Retain")
    _fill(spec, "replicas", 1)
    _fill(spec, "revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        _claim(claim)
    _template(spec)


def _job(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(spec, "parallelism", 1)
    _fill(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = _child(obj, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    _fill(spec, "completionMode", "NonIndexed")
    _fill(spec, "suspend", False)
    _fill(spec, "podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    _fill(spec, "manualSelector", False)
    _template(spec)


def _cron_job(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    _fill(spec, "concurrencyPolicy", "Allow")
    _fill(spec, "suspend", False)
    _fill(spec, "successfulJobsHistoryLimit", 3)
    _fill(spec, "failedJobsHistoryLimit", 1)
    inner = (spec.get("jobTemplate") or {}).get("spec")
    if isinstance(inner, dict):
        _template(inner)


def _node(obj: Manifest) -> None:
    status = _child(obj, "status")
    for part in ("capacity", "allocatable"):
        round_resource_list(status.get(part))
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])


def _namespace(obj: Manifest) -> None:
    metadata = _child(obj, "metadata")
    if metadata.get("name"):
        labels = _child(metadata, "labels")
        labels["kubernetes.io/metadata.name"] = metadata["name"]
    _fill(_child(obj, "status"), "phase", "Active")


def _service(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    _fill(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        _fill(_child(_child(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800)
    _fill(spec, "type", "ClusterIP")
    for port in spec.get("ports") or ():
        _fill(port, "protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _fill(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] != "ExternalName":
        _fill(spec, "internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, "allocateLoadBalancerNodePorts", True)


def _secret(obj: Manifest) -> None:
    _fill(obj, "type", "Opaque")


def _volume(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    round_resource_list(spec.get("capacity"))
    _fill(_child(obj, "status"), "phase", "Pending")
    if spec.get("hostPath") is not None and spec["hostPath"].get("type") is None:
        spec["hostPath"]["type"] = ""
    _fill(spec, "persistentVolumeReclaimPolicy", "Retain")
    _fill(spec, "volumeMode", "Filesystem")


def _claim(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    _fill(spec, "volumeMode", "Filesystem")
    resources = spec.get("resources") or {}
    for part in ("limits", "requests"):
        round_resource_list(resources.get(part))
    _fill(_child(obj, "status"), "phase", "Pending")


def _storage_class(obj: Manifest) -> None:
    _fill(obj, "reclaimPolicy", "Delete")
    _fill(obj, "volumeBindingMode", "Immediate")


def _csi_driver(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    for field, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("volumeLifecycleModes", ["Persistent"]),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        _fill(spec, field, value)


def _priority_class(obj: Manifest) -> None:
    _fill(obj, "preemptionPolicy", "PreemptLowerPriority")


def _pod_group(obj: Manifest) -> None:
    if obj.get("apiVersion") == "scheduling.k8s.io/v1alpha2":
        _fill(_child(obj, "spec"), "disruptionMode", "Pod")


def _autoscaler(obj: Manifest) -> None:
    if obj.get("apiVersion") == "autoscaling/v1":
        _fill(_child(obj, "spec"), "minReplicas", 1)
        _fill(obj["spec"], "targetCPUUtilizationPercentage", 80)


def _network_policy(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _resource_claim(obj: Manifest) -> None:
    spec = obj.get("spec") or {}
    for request in ((spec.get("spec") or spec).get("devices") or {}).get("requests") or ():
        for each in [request.get("exactly"), *(request.get("firstAvailable") or ())]:
            if each is not None:
                _fill(each, "allocationMode", "ExactCount")
                if each["allocationMode"] == "ExactCount":
                    _fill(each, "count", 1)


def _custom_resource_definition(obj: Manifest) -> None:
    spec = _child(obj, "spec")
    names = _child(spec, "names")
    _fill(names, "singular", str(names.get("kind") or "").lower())
    _fill(names, "listKind", f"{names.get('kind') or ''}List")
    _fill(_child(spec, "conversion"), "strategy", "None")


def _limit_range(obj: Manifest) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        default, request = _child(item, "default"), _child(item, "defaultRequest")
        for name, amount in (item.get("max") or {}).items():
            default.setdefault(name, amount)
        for name, amount in [*default.items(), *(item.get("min") or {}).items()]:
            request.setdefault(name, amount)


def _quota(obj: Manifest) -> None:
    round_resource_list((obj.get("spec") or {}).get("hard"))


def _role_binding(obj: Manifest) -> None:
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            _fill(subject, "apiGroup", "rbac.authorization.k8s.io")
    if obj.get("roleRef") is not None:
        _fill(obj["roleRef"], "apiGroup", "rbac.authorization.k8s.io")


DEFAULTS: dict[tuple[str, str], Callable[[Manifest], None]] = {
    ("", "Pod"): default_pod,
    ("", "Node"): _node,
    ("", "Namespace"): _namespace,
    ("", "Service"): _service,
    ("", "Secret"): _secret,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "LimitRange"): _limit_range,
    ("", "ResourceQuota"): _quota,
    ("", "ReplicationController"): _replication_controller,
    ("", "PodTemplate"): _template,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("resource.k8s.io", "ResourceClaim"): _resource_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): _resource_claim,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition,
    ("batch", "CronJob"): _cron_job,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("scheduling.k8s.io", "PodGroup"): _pod_group,
    ("rbac.authorization.k8s.io", "RoleBinding"): _role_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _role_binding,
}
