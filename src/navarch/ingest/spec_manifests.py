"""API objects made again from the model, for servers outside that want to see them.

They hold what the model keeps: names, labels, annotations, requests, taints, statuses. The live scheduler keeps no more of most
objects.
"""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from navarch.model.cluster import Cluster
from navarch.model.resources import format_amount
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Requests, TaskSpec

Object = dict[str, Any]


def manifest_of(cluster: Cluster, kind: str, namespace: str, name: str, uid: str = "") -> Object:
    """The object; names alone if the model does not have it."""
    found: Object | None = None
    match kind:
        case "Node":
            row = cluster.nodes.rows.of.get(name)
            node = cluster.nodes.specs[row] if row is not None else None
            found = None if node is None else node_manifest(node)
        case "Queue":
            queue = cluster.queues.get(name)
            found = None if queue is None else queue_manifest(queue)
        case "PodGroup":
            row = cluster.jobs.rows.of.get(f"{namespace}/{name}")
            job = cluster.jobs.specs[row] if row is not None else None
            found = None if job is None else group_manifest(job)
        case "Pod":
            task = cluster.task(uid) if uid else None
            found = None if task is None else pod_manifest(task)
    return found if found is not None else {"metadata": _without_empty({"name": name, "namespace": namespace})}


def pod_manifest(task: TaskSpec) -> Object:
    spec: Object = {
        "containers": [{"name": "requests", "resources": {"requests": _amounts(task.shape.requests)}}],
        "nodeName": task.node,
        "schedulerName": task.scheduler_name,
        "priorityClassName": task.priority_class,
        "nodeSelector": dict(task.shape.node_selector),
    }
    if task.has_priority:
        spec["priority"] = task.pod_priority
    status = _without_empty({"phase": task.phase or "Pending", "nominatedNodeName": task.nominated_node})
    metadata = _metadata(task.name, task.namespace, task.uid, task.created, task.labels, task.annotations)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _without_empty(spec), "status": status}


def node_manifest(node: NodeSpec) -> Object:
    taints = [msgspec.to_builtins(taint) for taint in node.taints]
    status = {
        "allocatable": _amounts(node.allocatable),
        "capacity": _amounts(node.capacity),
        "conditions": [{"type": kind, "status": status} for kind, status in node.conditions],
    }
    spec = _without_empty({"taints": taints, "unschedulable": node.unschedulable})
    metadata = _metadata(node.name, "", node.uid, node.created, node.labels, node.annotations)
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def group_manifest(job: JobSpec) -> Object:
    spec = {"minMember": job.min_member, "queue": job.queue, "priorityClassName": job.priority_class}
    if job.min_resources is not None:
        spec["minResources"] = _amounts(job.min_resources)
    metadata = _metadata(job.name, job.namespace, job.uid, job.created, job.labels, job.annotations)
    return {"metadata": metadata, "spec": _without_empty(spec), "status": {"phase": job.phase}}


def queue_manifest(queue: QueueSpec) -> Object:
    spec: Object = {"weight": queue.weight, "parent": queue.parent, "reclaimable": queue.reclaimable}
    for name, amounts in (("capability", queue.capability), ("deserved", queue.deserved)):
        if amounts is not None:
            spec[name] = _amounts(amounts)
    metadata = _metadata(queue.name, "", queue.uid, queue.created, queue.labels, queue.annotations)
    return {"metadata": metadata, "spec": _without_empty(spec), "status": _without_empty({"state": queue.state})}


def _metadata(name: str, namespace: str, uid: str, created: float, labels: Any, annotations: Any) -> Object:
    moment = datetime.datetime.fromtimestamp(created, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = {"name": name, "namespace": namespace, "uid": uid, "labels": dict(labels), "annotations": dict(annotations)}
    return {**_without_empty(fields), "creationTimestamp": moment}


def _amounts(amounts: Requests) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in amounts if name != "pods" or amount > 1}


def _without_empty(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value not in ("", {}, [], None, False)}
