"""Volcano's Job (batch.volcano.sh): the PodGroup and the pods that its controller makes.

The group has the minimum of the Job, and each role has the minimum of its task. minResources is the sum over the first pods, in the
order of the tasks' priority.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navarch.apis.admission.admission import AdmissionContext
from navarch.apis.core.objects import from_manifest, identity
from navarch.apis.core.pod_objects import Pod
from navarch.apis.core.shape import shape_reader
from navarch.apis.core.template_fields import count, mappings, template_at
from navarch.apis.errors import ObjectError
from navarch.model.resources import format_amount
from navarch.object_types import ReadOnlyManifest

PodMade = tuple[str, ReadOnlyManifest, dict[str, str], dict[str, str], str]
"""Name, template, labels, annotations, and the path of the template in the Job."""


def volcano_job(job: ReadOnlyManifest) -> Iterator[dict[str, Any] | PodMade]:
    spec, metadata = job["spec"], job["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace") or "default"
    tasks = [dict(task) for task in mappings(job, "spec.tasks", spec.get("tasks"))]
    for i, task in enumerate(tasks):
        task.setdefault("name", f"default{i}")
        task["path"] = f"spec.tasks[{i}].template"
        task["replicas"] = count(job, f"spec.tasks[{i}].replicas", task.get("replicas"), 1)
        task["template"] = template_at(job, task["path"], task.get("template"))
        if task.get("minAvailable") is not None:
            task["minAvailable"] = count(job, f"spec.tasks[{i}].minAvailable", task["minAvailable"], 0)
    group = f"{name}-{metadata['uid']}" if metadata.get("uid") else name
    queue = spec.get("queue") or "default"
    yield _pod_group(job, tasks, group, queue)
    for task in tasks:
        template = _template(spec, task)
        for i in range(task["replicas"]):
            facts = {
                "volcano.sh/job-name": name,
                "volcano.sh/task-spec": task["name"],
                "volcano.sh/task-index": str(i),
                "volcano.sh/queue-name": queue,
            }
            labels = {**facts, "volcano.sh/job-namespace": namespace}
            annotations = {**facts, "scheduling.k8s.io/group-name": group}
            yield f"{name}-{task['name']}-{i}", template, labels, annotations, task["path"]


def _pod_group(job: ReadOnlyManifest, tasks: list[dict[str, Any]], group: str, queue: str) -> dict[str, Any]:
    spec, metadata = job["spec"], job["metadata"]
    given = count(job, "spec.minAvailable", spec.get("minAvailable"), 0)
    minimum = given or sum(task.get("minAvailable") or task["replicas"] for task in tasks)
    group_spec: dict[str, Any] = {
        "minMember": minimum,
        "minTaskMember": {
            task["name"]: task["replicas"] if task.get("minAvailable") is None else task["minAvailable"] for task in tasks
        },
        "queue": queue,
        "minResources": _minimum(job, tasks, minimum),
    }
    for field in ("priorityClassName", "networkTopology"):
        if spec.get(field):
            group_spec[field] = spec[field]
    uid = metadata.get("uid") or group
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": metadata["name"], "uid": uid, "controller": True}
    group_metadata: dict[str, Any] = {
        "name": group,
        "namespace": metadata.get("namespace") or "default",
        "annotations": dict(metadata.get("annotations") or {}),
        "labels": dict(metadata.get("labels") or {}),
        "ownerReferences": [owner],
    }
    if metadata.get("creationTimestamp"):
        group_metadata["creationTimestamp"] = metadata["creationTimestamp"]
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": group_metadata, "spec": group_spec}


def _template(spec: ReadOnlyManifest, task: ReadOnlyManifest) -> dict[str, Any]:
    """The task's template, with the Job's settings for all pods where the template has none."""
    pod = dict((task.get("template") or {}).get("spec") or {})
    pod.setdefault("schedulerName", spec.get("schedulerName") or "volcano")
    if spec.get("priorityClassName"):
        pod.setdefault("priorityClassName", spec["priorityClassName"])
    return {**(task.get("template") or {}), "spec": pod}


def _minimum(job: ReadOnlyManifest, tasks: list[dict[str, Any]], pods: int) -> dict[str, str]:
    total: dict[str, int] = {}
    for task in sorted(tasks, key=_priority, reverse=True):
        count = min(task["replicas"], pods)
        pods -= count
        try:
            sample = from_manifest({"spec": task["template"].get("spec") or {}}, Pod)
            requests = shape_reader(AdmissionContext()).read(sample, placed=False).requests if count > 0 else ()
        except ObjectError as error:
            raise error.within(*identity(job), task["path"]) from None
        for resource, amount in requests:
            total[resource] = total.get(resource, 0) + count * amount
    return {resource: format_amount(resource, amount) for resource, amount in sorted(total.items())}


def _priority(task: ReadOnlyManifest) -> int:
    return int(((task.get("template") or {}).get("spec") or {}).get("priority") or 0)
