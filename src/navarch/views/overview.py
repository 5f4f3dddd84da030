"""A cluster at a glance, as plain rows: its jobs, queues and nodes, computed from the model that scheduling itself uses.

`navarch jobs|queues|nodes` fill the model from any API server, `navarch up` has it at hand; both show the same rows. What a queue
deserves and has comes from the policy's own plugins: a session is opened and closed over a snapshot with no action between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from navarch.apis.core.pod_objects import Pod
from navarch.apis.kai.podgroups import UNSCHEDULABLE_CONDITION
from navarch.apis.operators.readers import KINDS as OWNERS
from navarch.engine.cycle import decide
from navarch.engine.never import never_starts
from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord, QueueFigures
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.engine.waiting_order import waiting_order
from navarch.ingest.absent_jobs import why_absent
from navarch.ingest.groups import is_shadow, shown_key
from navarch.model.cluster import Cluster
from navarch.model.objects.queue_usage import QUEUE_USAGE
from navarch.model.resources import UNLIMITED, format_amount
from navarch.model.spec import JobSpec, QueueSpec, Requests
from navarch.model.status import IS_TERMINAL, TaskStatus
from navarch.model.tables.jobs import JobTable
from navarch.model.timestamps import rfc3339

S = TaskStatus
WITHOUT_PHASE = frozenset({"coscheduling", "kai", "upstream"})
"""Dialects whose groups have no phase of a cycle's: theirs is what the engine makes of their pods."""
NOT_FOR_ITSELF = "its gang is not ready"
"""How a refusal begins that repeats what another pod of the gang was told."""
_REFUSED = ("Unschedulable", "SchedulingGated")
"""Reasons of a pod that has no node for its own sake; others wait for their gang, or for a node that is promised to them."""
_WORKLOADS = {kind.kind.lower(): kind.kind for kind in OWNERS}
_ON_GROUPS = ("Unschedulable", UNSCHEDULABLE_CONDITION)
"""Conditions by which groups say that they wait."""
Amounts = Mapping[str, float]
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
    said: str = ""
    """All that was said to it: that sentence, and what stands on its group."""
    place: int = 0
    """Its place among the jobs that wait in its queue; 0: it does not wait, or takes no part."""
    of: int = 0
    never: str = ""
    """Why it does not start even on the empty cluster, where that is sure."""

    def to_dict(self) -> dict[str, Any]:
        pods = {"pending": self.pending, "running": self.running, "terminating": self.leaving}
        return {
            "namespace": self.namespace,
            "name": self.name,
            "kind": self.kind,
            "queue": self.queue,
            "phase": self.phase,
            "minMember": self.min_member,
            "pods": {**pods, "succeeded": self.succeeded, "failed": self.failed},
            "priority": self.priority,
            "created": rfc3339(self.created) if self.created else None,
            "place": {"place": self.place, "of": self.of} if self.place else None,
            **({"never": self.never} if self.never else {}),
            "why": self.said or self.why,
        }


@dataclass(frozen=True)
class QueueRow:
    name: str
    depth: int
    parent: str
    state: str
    weight: int
    priority: int
    quota: Mapping[str, str]
    limit: Mapping[str, str]
    deserved: Amounts
    fair_share: Amounts | None
    """None: the policy does not divide the cluster over a tree of queues."""
    usage: Mapping[str, float]
    """What it held over time, as a fraction of the cluster, by resource; empty where nobody keeps that."""
    allocated: Amounts
    request: Amounts
    share: float
    waiting: int
    """Jobs that wait with at least one pod."""
    running: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "parent": self.parent,
            "state": self.state,
            "weight": self.weight,
            "priority": self.priority,
            "quota": dict(self.quota),
            "limit": dict(self.limit),
            "deserved": shown(self.deserved),
            **({} if self.fair_share is None else {"fairShare": shown(self.fair_share)}),
            **({"usage": {name: round(part, 4) for name, part in sorted(self.usage.items())}} if self.usage else {}),
            "allocated": shown(self.allocated),
            "request": shown(self.request),
            "share": round(self.share, 4),
            "jobs": {"waiting": self.waiting, "running": self.running},
        }


@dataclass(frozen=True)
class NodeRow:
    name: str
    status: str
    zone: str
    allocatable: Amounts
    used: Amounts
    created: float
    labels: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        free = {name: amount - self.used.get(name, 0) for name, amount in self.allocatable.items()}
        return {
            "name": self.name,
            "status": self.status,
            "zone": self.zone,
            "allocatable": shown(self.allocatable),
            "used": shown(self.used),
            "free": shown(free),
        }


@dataclass(frozen=True)
class Overview:
    jobs: list[JobRow]
    queues: list[QueueRow]
    nodes: list[NodeRow]
    others: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(namespace, scheduler) -> how many pods wait for a scheduler that is none of ours."""


def shown(amounts: Amounts) -> dict[str, str]:
    """Quantities as Kubernetes writes them; a resource without limit is left out."""
    return {name: format_amount(name, amount) for name, amount in sorted(amounts.items()) if amount < UNLIMITED}


def overview(
    cluster: Cluster,
    policy: Policy,
    registry: Registry,
    now: float,
    find_pod: FindPod,
    served: frozenset[str] | None = None,
) -> Overview:
    """All rows of a cluster, in an order that does not depend on how it was filled. `served`: names whose pods are ours; None: all
    that are there."""
    record = decide(cluster.snapshot(policy.semantics.node_order), replace(policy, actions=()), registry, now)
    jobs = _jobs(cluster, record, find_pod, served, _prospects(cluster, policy, registry, now))
    return Overview(jobs, _queues(cluster, record, jobs), _nodes(cluster), {} if served is None else _others(cluster, served))


@dataclass(frozen=True)
class _Prospect:
    """A waiting job's place in its queue, how many wait there, and why it never starts, if that is so."""

    place: int
    of: int
    never: str


def _prospects(cluster: Cluster, policy: Policy, registry: Registry, now: float) -> dict[str, _Prospect]:
    session = Session(cluster.snapshot(policy.semantics.node_order), policy, registry, now)
    for name in policy.actions[:1]:
        action = registry.action(name, policy.dialect)
        if action is not None:
            action(session)  # some take an account of shared devices when they are made
    waiting = [job for job in session.jobs_with_pending() if job.ready_count < max(1, job.min_member)]
    counts = Counter(job.queue.name for job in waiting)
    places: Counter[str] = Counter()
    found = {}
    for job in waiting_order(session, waiting):
        places[job.queue.name] += 1
        never = never_starts(session, job)
        found[job.key] = _Prospect(places[job.queue.name], counts[job.queue.name], never.message if never else "")
    session.dissolve()
    return found


def _others(cluster: Cluster, served: frozenset[str]) -> dict[tuple[str, str], int]:
    waiting = (task for task in cluster.tasks.specs if task is not None and task.status == S.PENDING and not task.node)
    counts = Counter((task.namespace, task.scheduler_name) for task in waiting if task.scheduler_name not in served)
    return dict(sorted(counts.items()))


def _jobs(
    cluster: Cluster,
    record: CycleRecord,
    find_pod: FindPod,
    served: frozenset[str] | None,
    prospects: Mapping[str, _Prospect],
) -> list[JobRow]:
    phases = {decision.job: decision.phase for decision in record.jobs}
    table = cluster.jobs
    rows = []
    for key, row in sorted(table.rows.of.items()):
        spec = table.specs[row]
        counts = table.counts[row].tolist()
        if spec is None and not sum(counts):
            continue
        namespace, _, name = shown_key(key).partition("/")
        told = spec is not None and not is_shadow(key) and spec.dialect not in WITHOUT_PHASE
        phase = (spec.phase if spec is not None and told else "") or phases.get(key, "Pending")
        running = sum(counts[s] for s in (S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING))
        said = _said(cluster, table, row, spec, find_pod, served, running) if counts[S.PENDING] else []
        if not said and spec is not None and not is_shadow(key) and not sum(counts) and phase in ("Pending", "Inqueue"):
            said = ["it has no pods yet"]
        prospect = prospects.get(key)
        rows.append(
            JobRow(
                namespace=namespace,
                name=name,
                kind=_kind(key, spec),
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
                why=said[0] if said else "",
                said="; ".join(said[1:] if any(said[0] in each for each in said[1:]) else said) if said else "",
                place=prospect.place if prospect is not None else 0,
                of=prospect.of if prospect is not None else 0,
                never=prospect.never if prospect is not None else "",
            )
        )
    return rows


def _priority(cluster: Cluster, row: int, spec: JobSpec) -> int:
    tasks = cluster.jobs.tasks[row]
    if not spec.priority_of_tasks or not tasks:
        return spec.priority
    return int(cluster.tasks.priority[list(tasks)].max())


def _kind(key: str, spec: JobSpec | None) -> str:
    """What users call it: the workload that a job in memory is made for, where that is known, else what owns its pods."""
    if is_shadow(key):
        if (named := _WORKLOADS.get(key.split("/")[1])) is not None:
            return named
        return spec.owner[0] if spec is not None and spec.owner else key.split("/")[1].capitalize()
    return "PodGroup"


def _said(
    cluster: Cluster,
    table: JobTable,
    row: int,
    spec: JobSpec | None,
    find_pod: FindPod,
    served: frozenset[str] | None,
    running: int,
) -> list[str]:
    """What the scheduler last said: on the first of its pods that finds no node, and on the group unless that is running. A job
    whose group or queue does not exist takes no part in cycles, nor does one whose pods wait for someone else: it is said here."""
    if spec is None or spec.queue not in cluster.queues:
        return [why_absent(table.keys[row], spec).message]
    found = (cluster.tasks.specs[task] for task in table.tasks[row])
    waiting = sorted((task for task in found if task is not None and task.status == S.PENDING), key=lambda task: task.name)
    names = {task.scheduler_name for task in waiting}
    if served is not None and names and not names & served:
        return [f"its pods name the scheduler {', '.join(sorted(names))}"]
    refusals = [each for task in waiting if (each := _refusal(find_pod(task.namespace, task.name)))]
    words = [next((each for each in refusals if not each.startswith(NOT_FOR_ITSELF)), refusals[0])] if refusals else []
    if running < spec.min_member or not running:
        on_group = (c.message for c in spec.conditions if c.type in _ON_GROUPS and c.status == "True" and c.message)
        words += [message for message in on_group if message not in words]
    return words or [each for task in waiting if (each := _told(find_pod(task.namespace, task.name)))][:1]


def _refusal(pod: Pod | None) -> str:
    return _told(pod, _REFUSED)


def _told(pod: Pod | None, reasons: Container[str] | None = None) -> str:
    """What a pod was told that has no node."""
    for each in (pod.status.conditions or ()) if pod is not None else ():
        if each.type == "PodScheduled" and each.status == "False" and (reasons is None or each.reason in reasons):
            return each.message or ""
    return ""


def _queues(cluster: Cluster, record: CycleRecord, jobs: list[JobRow]) -> list[QueueRow]:
    figures = {each.queue: each for each in record.queues}
    allocated = _totals(cluster.queues, figures, "allocated")
    request = _totals(cluster.queues, figures, "request")
    usage = cluster.objects.get(QUEUE_USAGE, {})
    waiting: dict[str, int] = {}
    running: dict[str, int] = {}
    for job in jobs:
        for name in _way_up(cluster.queues, job.queue):
            waiting[name] = waiting.get(name, 0) + bool(job.pending)
            running[name] = running.get(name, 0) + bool(job.running)
    rows = []
    for name, depth in _tree(cluster.queues):
        spec = cluster.queues[name]
        own = figures.get(name) or QueueFigures(name, {}, {}, {}, 0.0)
        rows.append(
            QueueRow(
                name=name,
                depth=depth,
                parent=spec.parent if spec.parent in cluster.queues else "",
                state=spec.state or "Open",
                weight=spec.weight,
                priority=spec.priority,
                quota=_quota(spec),
                limit=_limit(spec),
                deserved=own.deserved,
                fair_share=own.fair_share,
                usage=usage.get(("", name), {}),
                allocated=allocated[name],
                request=request[name],
                share=own.share,
                waiting=waiting.get(name, 0),
                running=running.get(name, 0),
            )
        )
    return rows


def _tree(queues: Mapping[str, QueueSpec]) -> list[tuple[str, int]]:
    """Names with their depth, each below its parent, by name; a circle is broken where it is first met."""
    below: dict[str, list[str]] = {}
    for name, spec in sorted(queues.items()):
        below.setdefault(spec.parent if spec.parent in queues and spec.parent != name else "", []).append(name)
    found: list[tuple[str, int]] = []
    seen: set[str] = set()

    def walk(parent: str, depth: int) -> None:
        for name in below.get(parent, ()):
            if name not in seen:
                seen.add(name)
                found.append((name, depth))
                walk(name, depth + 1)

    walk("", 0)
    found += [(name, 0) for name in sorted(queues) if name not in seen]
    return found


def _totals(queues: Mapping[str, QueueSpec], figures: Mapping[str, QueueFigures], part: str) -> dict[str, dict[str, float]]:
    """Own figures and those of all queues below, by name."""
    totals: dict[str, dict[str, float]] = {name: {} for name in queues}
    for name in queues:
        own = figures.get(name)
        if own is None:
            continue
        # whoever divides the cluster over the tree has summed up already
        for above in (name,) if own.with_below else _way_up(queues, name):
            for resource, amount in getattr(own, part).items():
                totals[above][resource] = totals[above].get(resource, 0) + amount
    return totals


def _way_up(queues: Mapping[str, QueueSpec], name: str) -> list[str]:
    """The queue and all above it; of a circle, each once."""
    found: list[str] = []
    while name in queues and name not in found:
        found.append(name)
        name = queues[name].parent
    return found


def _limit(spec: QueueSpec) -> dict[str, str]:
    """What the queue may never exceed."""
    found = {
        name: f"{share.limit:g}" if name == "gpu" else format_amount(name, share.limit)
        for name, share in sorted(spec.shares.items())
        if share.limit >= 0
    }
    return found | _named(spec.capability, found)


def _quota(spec: QueueSpec) -> dict[str, str]:
    """What the queue's object itself says it is owed."""
    found: dict[str, str] = {}
    for name, share in sorted(spec.shares.items()):
        if share.quota >= 0:
            found[name] = f"{share.quota:g}" if name == "gpu" else format_amount(name, share.quota)
    for requests in (spec.deserved, spec.guarantee):
        found.update(_named(requests, found))
    return found


def _named(requests: Requests | None, known: Mapping[str, str]) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in requests or () if name not in known}


def _nodes(cluster: Cluster) -> list[NodeRow]:
    table, names = cluster.nodes, cluster.space.names
    shared = _shared_devices(cluster)
    rows = []
    for name, row in sorted(table.rows.of.items()):
        spec = table.specs[row]
        if spec is None:
            continue
        status = "Ready" if spec.ready else "NotReady"
        if spec.unschedulable:
            status += ",SchedulingDisabled"
        size = table.used.shape[0]
        used = {each: int(table.used[i, row]) for i, each in enumerate(names[:size]) if table.used[i, row]}
        device = next((each for each in dict(spec.allocatable) if each.endswith("/gpu")), "") if name in shared else ""
        if device:
            used[device] = used.get(device, 0) + 1000 * len(shared[name])
        rows.append(
            NodeRow(
                name=name,
                status=status,
                zone=spec.labels.get("topology.kubernetes.io/zone", ""),
                allocatable=dict(spec.allocatable),
                used=used,
                created=spec.created,
                labels=spec.labels,
            )
        )
    return rows


def _shared_devices(cluster: Cluster) -> dict[str, set[str]]:
    """Node -> the devices of it that pods share. Their shares are in no resource list, but a shared device is no longer free."""
    found: dict[str, set[str]] = {}
    for task in cluster.tasks.specs:
        if task is not None and task.gpu_groups and task.node and not IS_TERMINAL[task.status]:
            found.setdefault(task.node, set()).update(task.gpu_groups)
    return found
