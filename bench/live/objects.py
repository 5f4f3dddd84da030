"""Nodes, pods and groups of the load: the shapes of scheduler_perf's basic case."""

from __future__ import annotations

import json
from typing import Any

NAMESPACE = "load"
NODES = "/api/v1/nodes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
VOLCANO_GROUPS = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups"
UPSTREAM_GROUPS = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{NAMESPACE}/podgroups"


def _encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def node_name(index: int) -> str:
    return f"node-{index:05d}"


def node(index: int) -> bytes:
    """4 CPUs, 32 GiB, 110 pods: room for 40 of the pods below."""
    name = node_name(index)
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{index % 3}"}
    status = {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }
    return _encode({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status})


def pod(name: str, scheduler: str, *, group: str | None = None, upstream: bool = False) -> bytes:
    """100m and 500Mi. A group is named by Volcano's annotation or by the upstream field."""
    metadata: dict[str, Any] = {"name": name}
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
            }
        ],
    }
    if group is not None and upstream:
        spec["schedulingGroup"] = {"podGroupName": group}
    elif group is not None:
        metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
    return _encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def group(name: str, members: int, *, upstream: bool) -> tuple[str, bytes]:
    """Path and body of a gang that needs all its members."""
    metadata = {"name": name}
    if upstream:
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": members}}}
        version, path = "scheduling.k8s.io/v1alpha2", UPSTREAM_GROUPS
    else:
        spec = {"minMember": members, "queue": "default"}
        version, path = "scheduling.volcano.sh/v1beta1", VOLCANO_GROUPS
    return path, _encode({"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": spec})


def binding(name: str, node_name: str) -> tuple[str, bytes]:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }
    return f"{PODS}/{name}/binding", _encode(body)


def event(name: str, node_name: str) -> tuple[str, bytes]:
    """The Scheduled event that every scheduler writes beside a binding."""
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.scheduled", "namespace": NAMESPACE},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "bare",
        "reportingInstance": "bare-0",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": f"Successfully assigned {NAMESPACE}/{name} to {node_name}",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": NAMESPACE, "name": name},
    }
    return f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events", _encode(body)
