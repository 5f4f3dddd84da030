"""Bodies of the requests to a Volcano extender: tasks, nodes, jobs and queues of the session, with Volcano's field names.

API objects inside a body are `Manifest`s, which the shell replaces by the objects.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from navarch.engine.arguments import TRUE, WrongKind, duration
from navarch.engine.job import Job
from navarch.engine.points.conversation import Manifest
from navarch.engine.queue import Queue
from navarch.engine.session import Session
from navarch.model.resources import CPU, MEMORY, PODS, IntArray, unit_of
from navarch.model.spec import Requests
from navarch.model.status import TaskStatus

Body = dict[str, Any]
_STATUS = {
    TaskStatus.PENDING: 1,
    TaskStatus.ALLOCATED: 2,
    TaskStatus.PIPELINED: 4,
    TaskStatus.BINDING: 8,
    TaskStatus.BOUND: 16,
    TaskStatus.RUNNING: 32,
    TaskStatus.RELEASING: 64,
    TaskStatus.SUCCEEDED: 128,
    TaskStatus.FAILED: 256,
    TaskStatus.UNKNOWN: 512,
}
"""Volcano's numbers of task statuses."""
_NO_TIME = "0001-01-01T00:00:00Z"


def task_info(session: Session, row: int, node: int | None = None, status: TaskStatus | None = None) -> Body:
    """A task as it stands in the session. `node`, `status`: where it stands otherwise."""
    spec = session.task(row)
    where = int(session.node[row]) if node is None else node
    name = session.nodes.names[where] if where >= 0 else ""
    stands = TaskStatus(int(session.status[row])) if status is None else status
    shape = int(session.shape[row])
    request = _resource(session, session.snapshot.shape_request[:, shape])
    moved = name != spec.node and (node is not None or stands in (TaskStatus.ALLOCATED, TaskStatus.BINDING))
    return {
        "UID": spec.uid,
        "Job": spec.job,
        "Name": spec.name,
        "Namespace": spec.namespace,
        "TaskRole": spec.role,
        "Resreq": request,
        "InitResreq": request,
        "DRAResreq": None,
        "ResourceClaimKeys": None,
        "ResourceClaimDRAResreq": None,
        "NodeName": name,
        "EvictionOccurred": row in session.promised_by_eviction,
        "JobAllocatedHyperNode": "",
        "Status": _STATUS[stands],
        "LastTransaction": None,
        "Priority": spec.priority,
        "VolumeReady": False,
        "Preemptable": spec.preemptable,
        "BestEffort": session.snapshot.shape_best_effort[shape],
        "HasRestartableInitContainer": any(part.phase == "sidecar" for part in spec.shape.parts),
        "SchGated": bool(spec.gates),
        "RevocableZone": _revocable_zone(spec.annotations),
        "NumaInfo": {"Policy": spec.annotations.get("volcano.sh/numa-topology-policy", ""), "ResMap": _zones(spec.annotations)},
        "Pod": Manifest("Pod", spec.namespace, spec.name, (("spec.nodeName", name),) if moved else (), uid=spec.uid),
        "PodAnnotations": dict(spec.annotations) or None,
        "CustomBindErrHandlerSucceeded": False,
    }


def node_info(session: Session, row: int) -> Body:
    nodes, spec = session.nodes, session.nodes.specs[row]
    pods = int(nodes.allocatable[PODS, row])
    residents = sorted(session.residents.on(row), key=lambda task: session.task(task).key)
    return {
        "Name": spec.name,
        "Node": Manifest("Node", "", spec.name),
        "State": {"Phase": 1, "Reason": ""},
        "Releasing": _resource(session, nodes.releasing[:, row]),
        "Pipelined": _resource(session, nodes.pipelined[:, row]),
        "Idle": _resource(session, nodes.allocatable[:, row] - nodes.used[:, row], pods, of=nodes.allocatable[:, row]),
        "Used": _resource(session, nodes.used[:, row]),
        "Allocatable": _resource(session, nodes.allocatable[:, row], pods),
        "Capacity": _capacity(spec.capacity),
        "ResourceUsage": {"MetricsTime": _NO_TIME, "CPUUsageAvg": {}, "MEMUsageAvg": {}},
        "Tasks": {session.task(task).key: task_info(session, task, status=_on_node(session, task)) for task in residents},
        "NumaInfo": None,
        "UnassignedNumaPods": None,
        "NumaSchedulerInfo": None,
        "RevocableZone": spec.labels.get("volcano.sh/revocable-zone", ""),
        "Others": {},
        "OversubscriptionNode": False,
        "OfflineJobEvicting": False,
        "OversubscriptionResource": _resource(session, np.zeros_like(nodes.used[:, row])),
        "ImageStates": {},
        "Generation": 0,
        "BindGeneration": 0,
    }


def _on_node(session: Session, row: int) -> TaskStatus:
    """A node shows a pod that this cycle placed as allocated, also when its binding has been decided."""
    status = TaskStatus(int(session.status[row]))
    new = status == TaskStatus.BINDING and session.task(row).status == TaskStatus.PENDING
    return TaskStatus.ALLOCATED if new else status


def job_info(session: Session, job: Job) -> Body:
    spec = job.spec
    tasks = {session.task(row).uid: task_info(session, row) for row in sorted(job.tasks, key=lambda row: session.task(row).uid)}
    by_status: dict[str, Body] = {}
    for uid, task in tasks.items():
        by_status.setdefault(str(task["Status"]), {})[uid] = task
    roles = dict(spec.roles)
    total: IntArray = session.snapshot.shape_request[:, session.shape[list(job.tasks)]].sum(axis=1)
    return {
        "UID": spec.key,
        "PgUID": spec.uid,
        "Name": spec.name,
        "Namespace": spec.namespace,
        "Queue": spec.queue,
        "Priority": spec.priority,
        "MinAvailable": job.min_member,
        "WaitingTime": _waiting_time(spec.annotations),
        "JobFitErrors": "",
        "NodesFitErrors": {},
        "AllocatedHyperNode": "",
        "NetworkTopology": None,
        "SubJobs": {spec.key: _sub_job(job, tasks, by_status)},
        "TaskToSubJob": dict.fromkeys(tasks, spec.key),
        "MinSubJobs": {},
        "TaskStatusIndex": by_status,
        "Tasks": tasks,
        "TaskMinAvailable": roles,
        "TaskMinAvailableTotal": sum(roles.values()),
        "Allocated": _resource(session, job.allocated),
        "TotalRequest": _resource(session, total),
        "CreationTimestamp": _moment(spec.created),
        "PodGroup": _pod_group(job),
        "ScheduleStartTimestamp": _moment(session.now),
        "Preemptable": spec.preemptable,
        "RevocableZone": _revocable_zone(spec.annotations),
        "Budget": _budget(spec.annotations),
    }


def _revocable_zone(annotations: Mapping[str, str]) -> str:
    """`*` or nothing: zones are not told apart, and what may be preempted may go to revocable nodes."""
    said = annotations.get("volcano.sh/revocable-zone")
    if said is not None:
        return said if said == "*" else ""
    return "*" if annotations.get("volcano.sh/preemptable") in TRUE else ""


def _zones(annotations: Mapping[str, str]) -> Any:
    """Zone -> resources, as the annotation of a placed pod has them."""
    try:
        found = msgspec.json.decode(annotations.get("volcano.sh/topology-decision", '{"numa": {}}'), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found.get("numa")


def _waiting_time(annotations: Mapping[str, str]) -> int | None:
    """Nanoseconds; the first annotation that is a positive duration counts."""
    for name in ("volcano.sh/sla-waiting-time", "sla-waiting-time"):
        with contextlib.suppress(WrongKind):
            if (seconds := duration(annotations.get(name, "0"))) > 0:
                return round(seconds * 1e9)
    return None


def _budget(annotations: Mapping[str, str]) -> Body:
    """The least that must run, or else the most that may be missing."""
    least = annotations.get("volcano.sh/jdb-min-available")
    most = annotations.get("volcano.sh/jdb-max-unavailable", "") if least is None else ""
    return {"MinAvailable": least or "", "MaxUnavailable": most}


def _sub_job(job: Job, tasks: Body, by_status: Body) -> Body:
    """Volcano has one sub-job of all tasks where a group names no others."""
    priorities = [task["Priority"] for task in tasks.values()]
    return {
        "GID": job.spec.key,
        "UID": job.spec.key,
        "Job": job.spec.key,
        "MinAvailable": job.min_member,
        "Priority": max(priorities, default=0),
        "MatchIndex": 0,
        "Tasks": tasks,
        "TaskStatusIndex": by_status,
        "AllocatedHyperNode": "",
        "NominatedHyperNode": "",
        "NetworkTopology": None,
    }


def queue_info(queue: Queue) -> Body:
    spec = queue.spec
    return {
        "UID": spec.name,
        "Name": spec.name,
        "Weight": spec.weight,
        "Weights": spec.annotations.get("volcano.sh/hierarchy-weights", ""),
        "Hierarchy": spec.annotations.get("volcano.sh/hierarchy", ""),
        "Queue": Manifest("Queue", "", spec.name, bare=True),
    }


def session_info(session: Session) -> Body:
    """Everything, for a server that keeps a picture of the cluster."""
    return {
        "Jobs": {job.key: job_info(session, job) for job in session.all_jobs()},
        "Nodes": {name: node_info(session, row) for row, name in enumerate(session.nodes.names)},
        "Queues": {name: queue_info(queue) for name, queue in sorted(session.queues.items()) if queue.spec.dialect != "implied"},
        "NamespaceInfo": {},
        "RevocableNodes": {},
        "NodeList": None,
    }


def _pod_group(job: Job) -> Any:
    if job.spec.shadow:
        metadata = {"name": job.spec.name, "namespace": job.spec.namespace}
        spec = {"minMember": job.min_member, "queue": job.spec.queue}
        return {"metadata": metadata, "spec": spec, "status": {"phase": job.phase}, "Version": "v1beta1"}
    changes = (("status.phase", job.phase), ("Version", "v1beta1"))
    return Manifest("PodGroup", job.spec.namespace, job.spec.name, changes, bare=True)


def _resource(session: Session, amounts: IntArray, most_tasks: int = 0, of: IntArray | None = None) -> Body:
    """Volcano's Resource. `of`: a resource that is in these amounts is told even if nothing is left of it."""
    names, told = session.snapshot.resource_names, amounts if of is None else of
    scalars = {names[i]: _scalar(names[i], int(amounts[i])) for i in np.flatnonzero(told).tolist() if i not in (CPU, MEMORY)}
    return _volcano_resource(int(amounts[CPU]), int(amounts[MEMORY]), scalars, most_tasks)


def _capacity(amounts: Requests) -> Body:
    have = dict(amounts)
    scalars = {name: _scalar(name, amount) for name, amount in have.items() if name not in ("cpu", "memory")}
    return _volcano_resource(have.get("cpu", 0), have.get("memory", 0), scalars, have.get("pods", 0))


def _volcano_resource(cpu: int, memory: int, scalars: Mapping[str, int], most_tasks: int) -> Body:
    return {"MilliCPU": cpu, "Memory": memory, "ScalarResources": dict(sorted(scalars.items())) or None, "MaxTaskNum": most_tasks}


def _scalar(name: str, amount: int) -> int:
    """Volcano counts every scalar in thousandths, but for pods."""
    return amount if name == "pods" or unit_of(name) == "milli" else amount * 1000


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
