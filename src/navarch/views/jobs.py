"""Jobs as people see them: one row for each PodGroup, or for the pods of one controller that have no group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from navarch.apis.core.pod_objects import Pod
from navarch.apis.kai.podgroups import UNSCHEDULABLE_CONDITION
from navarch.engine.pod_conditions import PROMISED
from navarch.engine.reasons import without_next_step
from navarch.engine.record import CycleRecord
from navarch.ingest.absent_jobs import why_absent
from navarch.ingest.groups import is_shadow
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, Labels, TaskSpec
from navarch.model.status import ON_NODE, TaskStatus
from navarch.model.timestamps import rfc3339
from navarch.views.job_names import job_name
from navarch.views.prospects import Prospect, StartTime

S = TaskStatus
NO_PODS = "it has no pods: none were made yet, or it is suspended"
USER_LABELS = ("navarch.io/user", "kai.scheduler/user", "user", "app.kubernetes.io/created-by")
"""Labels of a group or a pod that say whose it is, the first one that is there."""
WITHOUT_PHASE = frozenset({"coscheduling", "kai", "upstream"})
"""Dialects whose groups carry no phase of a cycle; the engine computes it from their pods."""
_GROUP_CONDITIONS = ("Unschedulable", UNSCHEDULABLE_CONDITION)
"""Condition types by which groups say that they wait."""
FindPod = Callable[[str, str], Pod | None]
"""(namespace, name) -> the pod as the API has it."""


@dataclass(frozen=True)
class JobRow:
    namespace: str
    name: str
    kind: str
    queue: str
    phase: str
    min_member: int
    pending: int
    running: int
    leaving: int
    succeeded: int
    failed: int
    priority: int
    created: float
    why: str = ""
    """What keeps it waiting, in one sentence."""
    messages: str = ""
    """That sentence and the conditions of its group."""
    prospect: Prospect | None = None
    """Of a job that waits and takes part."""
    group: str = ""
    """The PodGroup of a workload, if it has another name than the workload."""
    resource: str = ""
    """Its kind as kubectl takes it: `job.batch`."""
    labels: tuple[Labels, ...] = ()
    """Those of its group and of its pods."""
    key: str = ""
    """Its key in the model."""
    start: StartTime | None = None
    """When it starts, where that was asked for and is known."""
    start_unknown: str = ""
    """Why there is no start time."""
    user: str = ""
    """Whose it is, by a label (`USER_LABELS`): Kubernetes does not write down who created an object."""
    gpus: float = 0.0
    """Of its pods that run or wait."""
    nodes: int = 0
    """On which it has pods."""
    started: float | None = None
    """When the first of the pods that run started; None: none runs."""
    limit: float | None = None
    """Seconds that it may run."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """The key tells two ReplicaSets of one Deployment apart."""
        return self.namespace, self.resource, self.key

    @property
    def titles(self) -> frozenset[str]:
        """All that a user may type for it, in lower case."""
        before = (
            "",
            *(f"{each}/" for each in (self.namespace, self.kind.lower(), self.resource, self.resource.partition(".")[0]) if each),
        )
        return frozenset(f"{kind}{name}" for kind in before for name in (self.name, self.group) if name)

    @property
    def label_sets(self) -> Sequence[Labels]:
        return self.labels

    def to_dict(self) -> dict[str, Any]:
        pods = {"pending": self.pending, "running": self.running, "terminating": self.leaving}
        return {
            "namespace": self.namespace,
            "name": self.name,
            "kind": self.kind,
            **({"group": self.group} if self.group else {}),
            "queue": self.queue,
            "phase": self.phase,
            "minMember": self.min_member,
            "pods": {**pods, "succeeded": self.succeeded, "failed": self.failed},
            "priority": self.priority,
            **({"user": self.user} if self.user else {}),
            "gpus": int(self.gpus) if self.gpus == int(self.gpus) else self.gpus,
            "nodes": self.nodes,
            "started": None if self.started is None else rfc3339(self.started),
            "limitSeconds": self.limit,
            "created": rfc3339(self.created) if self.created else None,
            "place": None if self.prospect is None else {"place": self.prospect.place, "of": self.prospect.of},
            **({"never": self.prospect.never} if self.prospect is not None and self.prospect.never else {}),
            **({"eta": None if self.start is None else self.start.to_dict()} if self.start or self.start_unknown else {}),
            **({"etaReason": self.start_unknown} if self.start_unknown else {}),
            "why": self.messages or self.why,
        }


def job_rows(
    cluster: Cluster,
    record: CycleRecord,
    find_pod: FindPod,
    served: frozenset[str] | None,
    prospects: Mapping[str, Prospect],
) -> list[JobRow]:
    """One row a job, by key. `served`: the scheduler names that we decide for; None: all."""
    phases = {decision.job: decision.phase for decision in record.jobs}
    rows = (
        job_row(cluster, key, row, phases.get(key, "Pending"), find_pod, served, prospects.get(key))
        for key, row in sorted(cluster.jobs.rows.of.items())
    )
    return [row for row in rows if row is not None]


def job_row(
    cluster: Cluster,
    key: str,
    row: int,
    phase: str,
    find_pod: FindPod,
    served: frozenset[str] | None,
    prospect: Prospect | None,
) -> JobRow | None:
    """The row of one job; None: it has no pods and no object. `phase` is what the engine makes of its pods; the phase that its own
    object carries goes before it."""
    table = cluster.jobs
    spec = table.specs[row]
    counts = table.counts[row].tolist()
    if spec is None and not sum(counts):
        return None
    tasks = [task for number in sorted(table.tasks[row]) if (task := cluster.tasks.specs[number]) is not None]
    named = job_name(key, spec, tasks[0].labels if tasks else {})
    group = "" if is_shadow(key) else key.partition("/")[2]
    own_phase = spec.phase if spec is not None and not is_shadow(key) and spec.dialect not in WITHOUT_PHASE else ""
    phase = own_phase or phase
    running = sum(counts[s] for s in (S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING))
    messages = _messages(cluster, row, spec, find_pod, served, running) if counts[S.PENDING] else []
    if counts[S.PENDING] and prospect is not None and prospect.why:
        messages.insert(0, prospect.why)
    if not messages and spec is not None and not is_shadow(key) and not sum(counts) and phase in ("Pending", "Inqueue"):
        messages = (_on_group(spec) if phase == "Pending" else []) or [NO_PODS]
    return JobRow(
        namespace=named.namespace,
        name=named.name,
        kind=named.kind,
        queue=spec.queue if spec else "",
        phase=phase,
        min_member=spec.min_member if spec else 0,
        pending=counts[S.PENDING] + counts[S.PIPELINED],
        running=running,
        leaving=counts[S.RELEASING],
        succeeded=counts[S.SUCCEEDED],
        failed=counts[S.FAILED],
        priority=_priority(cluster, row, spec) if spec else 0,
        created=spec.created if spec else 0.0,
        why=messages[0] if messages else "",
        messages=_joined(messages),
        prospect=prospect,
        group=group if group != named.name else "",
        resource=named.resource,
        key=key,
        labels=(*(() if spec is None else (spec.labels,)), *(task.labels for task in tasks)),
        user=next(
            (
                each[name]
                for each in (spec.labels if spec else {}, *(t.labels for t in tasks[:1]))
                for name in USER_LABELS
                if name in each
            ),
            "",
        ),
        gpus=gpus_of(cluster, row),
        nodes=len({task.node for task in tasks if task.node and ON_NODE[task.status]}),
        started=min((task.started for task in tasks if task.started is not None and task.status == S.RUNNING), default=None),
        limit=limit_of(spec, tasks),
    )


def gpus_of(cluster: Cluster, row: int) -> float:
    """GPUs of the job's pods that run or wait, parts of shared ones included."""
    table, names = cluster.jobs, cluster.space.names
    total = sum(
        int(table.allocated[i, row] + table.pending[i, row])
        for i, name in enumerate(names[: table.allocated.shape[0]])
        if name.endswith("/gpu")
    )
    for task in table.tasks[row]:
        spec = cluster.tasks.specs[task]
        if spec is not None and spec.shape.devices is not None:
            total += spec.shape.devices.fraction * spec.shape.devices.count
    return total // 1000 if total % 1000 == 0 else total / 1000


def limit_of(spec: JobSpec | None, tasks: Sequence[TaskSpec]) -> float | None:
    """Seconds after which its pods are ended, or else those that its owner expects; None: nobody says."""
    limits = [task.active_deadline for task in tasks if task.active_deadline is not None]
    return max(limits) if limits else spec.expected_duration if spec is not None else None


def _joined(messages: list[str]) -> str:
    """All of them, but for those that others contain."""
    bare = [without_next_step(message) for message in messages]
    kept = [
        message
        for at, message in enumerate(messages)
        if not any(bare[at] in other for number, other in enumerate(messages) if number != at and (other != message or number < at))
    ]
    return "; ".join(kept)


def _priority(cluster: Cluster, row: int, spec: JobSpec) -> int:
    tasks = cluster.jobs.tasks[row]
    if not spec.priority_of_tasks or not tasks:
        return spec.priority
    return int(cluster.tasks.priority[list(tasks)].max())


def _messages(
    cluster: Cluster,
    row: int,
    spec: JobSpec | None,
    find_pod: FindPod,
    served: frozenset[str] | None,
    running: int,
) -> list[str]:
    """What the scheduler last wrote: to a pod that finds no node, then to the group unless it runs. Some jobs take no part in cycles:
    their group or queue does not exist, or their pods name another scheduler. For these the message is made here."""
    table = cluster.jobs
    if spec is None or spec.queue not in cluster.queues:
        return [why_absent(table.keys[row], spec).message]
    found = (cluster.tasks.specs[task] for task in table.tasks[row])
    waiting = sorted((task for task in found if task is not None and task.status == S.PENDING), key=lambda task: task.name)
    names = {task.scheduler_name for task in waiting}
    if served is not None and names and not names & served:
        return [f"its pods name the scheduler {', '.join(sorted(names))}"]
    pods = [find_pod(task.namespace, task.name) for task in waiting]
    refusals = [message for pod in pods if (message := refusal_of(pod, promised=False))]
    # A pod that waits only for its gang repeats the refusal of another pod after words of its own: the shortest is a pod's own.
    messages = [min(refusals, key=len)] if refusals else []
    if running < spec.min_member or not running:
        messages += [message for message in _on_group(spec) if message not in messages]
    return messages or [message for pod in pods if (message := refusal_of(pod))][:1]


def _on_group(spec: JobSpec) -> list[str]:
    return [c.message for c in spec.conditions if c.type in _GROUP_CONDITIONS and c.status == "True" and c.message]


def refusal_of(pod: Pod | None, *, promised: bool = True) -> str:
    """The message of a pod's condition that it has no node. `promised` False: not where it says that a node is promised."""
    for each in (pod.status.conditions or ()) if pod is not None else ():
        if each.type == "PodScheduled" and each.status == "False" and (promised or each.reason != PROMISED):
            return each.message or ""
    return ""
