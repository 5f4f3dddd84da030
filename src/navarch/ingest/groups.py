"""Shadow jobs: the jobs that ingest makes for pods without a group.

Pods of one controller form one shadow job. Each of its pods may start alone, unless an annotation or a disruption budget with the same
controller sets a higher minimum. Where the policy requires groups (`groupRequired`), such a budget is what makes the job, as in the
first releases of kube-batch. A shadow job is never written to the API server. Its key is `namespace/kind/name`, one part longer
than the key of a PodGroup, so the two never collide.

A shadow job takes its fields from its oldest pod, so the order in which pods arrive does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from navarch.apis.admission.admission import SYSTEM_PRIORITY_CLASSES
from navarch.apis.dialect import Settings
from navarch.apis.kai.awaited_groups import AwaitedGroups
from navarch.apis.kai.pod_grouper import is_grouped, job_of
from navarch.apis.operators.owners import Owners
from navarch.apis.operators.workload import WorkloadSpec
from navarch.apis.upstream.workloads import gang_of, is_member
from navarch.engine.record import JobDecision
from navarch.ingest.expected_duration import expected_duration
from navarch.model.label_syntax import parse_count
from navarch.model.spec import (
    Condition,
    DisruptionBudgetSpec,
    JobSpec,
    Labels,
    NamespaceSpec,
    PriorityClassSpec,
    TaskSpec,
)

Owner = tuple[str, str, str]
MIN_MEMBER_ANNOTATIONS = ("scheduling.k8s.io/group-min-member", "scheduling.volcano.sh/group-min-member")
NAMESPACE_QUEUE = "scheduling.volcano.sh/queue-name"
NODE_LABELS = "topology.kubernetes.io/"


def owner_key(namespace: str, pod: str, owner: Owner | None) -> str:
    """Key of the shadow job of a pod.

    >>> owner_key("prod", "web-5c-x7", ("ReplicaSet", "web-5c", "u1")), owner_key("prod", "alone", None)
    ('prod/replicaset/web-5c', 'prod/pod/alone')
    """
    return f"{namespace}/{owner[0].lower()}/{owner[1]}" if owner else f"{namespace}/pod/{pod}"


def own_labels(labels: Labels) -> Labels:
    """A pod's labels without those that the API server copies from its node when it is bound."""
    for name in labels:
        if name.startswith(NODE_LABELS):
            return {name: value for name, value in labels.items() if not name.startswith(NODE_LABELS)}
    return labels


def same_own_labels(a: Labels, b: Labels) -> bool:
    return a == b or own_labels(a) == own_labels(b)


def same_member(a: TaskSpec, b: TaskSpec) -> bool:
    """Whether two versions of a pod say the same about the shadow job that it is in."""
    return (
        a.job == b.job
        and a.annotations == b.annotations
        and same_own_labels(a.labels, b.labels)
        and a.pod_priority == b.pod_priority
        and a.priority_class == b.priority_class
        and a.owner == b.owner
        and a.created == b.created
        and a.active_deadline == b.active_deadline
        and a.scheduler_name == b.scheduler_name
    )


def is_shadow(key: str) -> bool:
    return key.count("/") == 2


def shown_key(key: str) -> str:
    """A job's key as users see it: `namespace/name`; for shadow jobs the name of the owner or of the pod."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{name.rpartition('/')[2]}" if name else key


def queue_of(wanted: str, namespace: str, settings: Settings, namespaces: Mapping[str, NamespaceSpec]) -> str:
    """The queue of a job that names the queue `wanted` (may be empty). An annotation of the namespace replaces the default."""
    if wanted and wanted != settings.default_queue:
        return wanted
    known = namespaces.get(namespace)
    if known is not None and (named := known.annotations.get(NAMESPACE_QUEUE)):
        return named
    if wanted:
        return wanted
    return namespace if settings.namespace_as_queue else settings.default_queue


def class_value(name: str, classes: Mapping[str, PriorityClassSpec], otherwise: int = 0) -> int:
    """The value of a priority class; that of the global default if the name is empty or unknown; otherwise `otherwise`."""
    found = classes.get(name) if name else None
    if found is not None:
        return found.value
    if name in SYSTEM_PRIORITY_CLASSES:
        return SYSTEM_PRIORITY_CLASSES[name]
    return min((each.value for each in classes.values() if each.global_default), default=otherwise)


def completed(
    job: JobSpec,
    settings: Settings,
    namespaces: Mapping[str, NamespaceSpec],
    classes: Mapping[str, PriorityClassSpec],
) -> JobSpec:
    """The job with the fields that other objects decide: its queue if it names none, its priority, and whether it may be preempted."""
    queue = queue_of(job.queue, job.namespace, settings, namespaces)
    priority = class_value(job.priority_class, classes, job.default_priority)
    preemptable = job.preemptable if job.preemptible_below is None else priority < job.preemptible_below
    expected = expected_duration(job.annotations)
    if (queue, priority, preemptable, expected) == (job.queue, job.priority, job.preemptable, job.expected_duration):
        return job
    return replace(job, queue=queue, priority=priority, preemptable=preemptable, expected_duration=expected)


class _Group(Struct):
    members: dict[str, tuple[TaskSpec, str]] = field(default_factory=dict)
    """uid -> the task and the queue that it names."""
    leader: TaskSpec | None = None
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    last_started: float | None = None
    last_evicted: float | None = None
    stale_since: float | None = None
    spec: JobSpec | None = None


class ShadowGroups:
    """All shadow jobs, updated pod by pod. Each change returns the job to put, or None if it did not change."""

    def __init__(
        self,
        settings: Settings,
        namespaces: Mapping[str, NamespaceSpec],
        classes: Mapping[str, PriorityClassSpec] = MappingProxyType({}),
        owners: Owners | None = None,
        awaited: AwaitedGroups | None = None,
    ) -> None:
        self._settings = settings
        self._classes = classes
        self._namespaces = namespaces
        self._groups: dict[str, _Group] = {}
        self._budgets: dict[str, dict[tuple[str, str], int]] = {}
        """Job -> (namespace, name) of a budget -> the minimum that it sets."""
        self._job_of_budget: dict[tuple[str, str], str] = {}
        self.owners = Owners() if owners is None else owners
        self._awaited = awaited
        self.awaiting: dict[str, float] = {}
        """Job whose pods wait for KAI's pod grouper -> when the oldest of them was created."""

    def put(self, task: TaskSpec, queue: str = "") -> JobSpec | None:
        """Add or change a pod; `queue` is the queue that it names (`pod_reader.queue_of`)."""
        group = self._groups.setdefault(task.job, _Group())
        group.members[task.uid] = task, queue
        news = self.owners.joined(task)
        leader = group.leader
        if leader is None or leader.uid == task.uid or _age(task) < _age(leader):
            group.leader = task if leader is None or leader.uid != task.uid else _oldest(group)
            return self._refreshed(task.job, group)
        return self._refreshed(task.job, group) if news else None

    def put_all(self, tasks: Iterable[tuple[TaskSpec, str]]) -> list[JobSpec]:
        """Add pods that are in no group yet, each with the queue that it names; returns the jobs to put, each made once."""
        changed: dict[str, _Group] = {}
        for task, queue in tasks:
            group = self._groups.get(task.job)
            if group is None:
                group = self._groups[task.job] = _Group()
            group.members[task.uid] = task, queue
            news = self.owners.joined(task)
            leader = group.leader
            if leader is None or (task.created <= leader.created and _age(task) < _age(leader)):
                group.leader = task
                news = True
            if news:
                changed[task.job] = group
        return [spec for job, group in changed.items() if (spec := self._refreshed(job, group)) is not None]

    def remove(self, job: str, uid: str) -> tuple[JobSpec | None, bool]:
        """Remove a pod; returns the changed job or None, and whether the job is gone with its last pod."""
        group = self._groups.get(job)
        if group is None or group.members.pop(uid, None) is None:
            return None, False
        if not group.members:
            self.awaiting.pop(job, None)
            del self._groups[job]
            self.owners.forget(job)
            return None, True
        news = self.owners.left(job, uid)
        if group.leader is not None and group.leader.uid == uid:
            group.leader = _oldest(group)
            return self._refreshed(job, group), False
        return self._refreshed(job, group) if news else None, False

    def put_workload(self, workload: WorkloadSpec) -> list[JobSpec]:
        """Add or change an owner; returns the jobs that it changes."""
        return self._made_anew(self.owners.put(workload))

    def no_longer_awaited(self) -> list[JobSpec]:
        """The jobs of pods that have waited long enough for a group."""
        return self._made_anew(list(self.awaiting))

    def classes_changed(self) -> list[JobSpec]:
        """Priority classes changed; returns the jobs that this changes. Most shadow jobs have the priority of their pods."""
        return self._made_anew(
            job for job, group in self._groups.items() if group.leader and is_grouped(group.leader.scheduler_name, group.leader.labels)
        )

    def namespace_changed(self, namespace: str) -> list[JobSpec]:
        """The queue annotation of a namespace changed; returns the jobs that this changes."""
        return self._made_anew(job for job in self._groups if job.startswith(f"{namespace}/"))

    def _made_anew(self, jobs: Iterable[str]) -> list[JobSpec]:
        found = ((job, self._groups.get(job)) for job in jobs)
        return [spec for job, group in found if group is not None and (spec := self._refreshed(job, group)) is not None]

    def put_budget(self, budget: DisruptionBudgetSpec) -> list[JobSpec]:
        """A budget with a controller sets the minimum of that controller's job, as in kube-batch before it had PodGroups. Returns the
        jobs that it changes."""
        before = self._forget_budget(budget.namespace, budget.name)
        jobs = [before] if before else []
        if budget.owner is not None and budget.min_available is not None:
            job = owner_key(budget.namespace, "", budget.owner)
            self._job_of_budget[budget.namespace, budget.name] = job
            self._budgets.setdefault(job, {})[budget.namespace, budget.name] = budget.min_available
            jobs.append(job)
        return self._made_anew(dict.fromkeys(jobs))

    def remove_budget(self, namespace: str, name: str) -> list[JobSpec]:
        """Returns the jobs that it changes."""
        job = self._forget_budget(namespace, name)
        return self._made_anew([job]) if job else []

    def _forget_budget(self, namespace: str, name: str) -> str | None:
        """The job whose minimum it set."""
        job = self._job_of_budget.pop((namespace, name), None)
        if job is not None:
            del self._budgets[job][namespace, name]
            if not self._budgets[job]:
                del self._budgets[job]
        return job

    def budget_job(self, namespace: str, name: str) -> str:
        """The job whose minimum this budget sets; empty: none."""
        return self._job_of_budget.get((namespace, name), "")

    def is_made(self, job: str) -> bool:
        """Whether its pods form a job. Where a group is required, those without a budget of their controller form none."""
        group = self._groups.get(job)
        return group is not None and group.spec is not None

    def settle(self, job: str, decided: JobDecision | JobSpec) -> JobSpec | None:
        """Keep the phase, conditions and times that a cycle decided: no object of the API server holds them."""
        group = self._groups.get(job)
        if group is None:
            return None
        group.phase, group.conditions = decided.phase, decided.conditions
        group.last_started, group.last_evicted = decided.last_started, decided.last_evicted
        group.stale_since = decided.stale_since
        return self._refreshed(job, group)

    def _refreshed(self, job: str, group: _Group) -> JobSpec | None:
        assert group.leader is not None
        leader = group.leader
        if not self._settings.shadow_groups and job not in self._budgets and not is_member(job):
            group.spec = None
            return None
        if not is_member(job) and is_grouped(leader.scheduler_name, leader.labels):
            if group.spec is None and self._awaits(job, group):
                return None
            made = job_of(leader, self._classes, self.owners, self._settings.node_pool_key, self._settings.queue_label)
            return made and _kept(group, replace(made, phase=group.phase or "Inqueue"))
        annotations, wanted = leader.annotations, group.members[leader.uid][1]
        namespace, _, name = job.split("/", 2)
        queue = queue_of(wanted, namespace, self._settings, self._namespaces)
        if is_member(job):
            gang = gang_of(job, leader, self.owners, queue)
            return gang and _kept(group, replace(gang, phase=group.phase))
        spec = JobSpec(
            key=job,
            queue=queue,
            min_member=self._min_member(job, leader),
            namespace=namespace,
            name=name,
            uid=leader.owner[2] if leader.owner else leader.uid,
            dialect="pod",
            priority=leader.pod_priority,
            priority_class=leader.priority_class,
            preemptable=annotations.get("volcano.sh/preemptable") == "true",
            never_preempted=annotations.get("volcano.sh/preemptable", "true") != "true",
            created=leader.created,
            expected_duration=expected_duration(annotations, leader.active_deadline),
            phase=group.phase,
            labels=own_labels(leader.labels),
            annotations=annotations,
            shadow=True,
            owner=leader.owner or ("Pod", name, leader.uid),
        )
        return _kept(group, spec)

    def _awaits(self, job: str, group: _Group) -> bool:
        """Whether the pods wait for a PodGroup. Pods that are on nodes do not: they count in their job at once."""
        leader = group.leader
        self.awaiting.pop(job, None)
        if leader is None or self._awaited is None or any(task.node for task, _ in group.members.values()):
            return False
        if self._awaited.awaits(leader):
            self.awaiting[job] = leader.created
        return job in self.awaiting

    def _min_member(self, job: str, leader: TaskSpec) -> int:
        for name in MIN_MEMBER_ANNOTATIONS:
            number = parse_count(leader.annotations.get(name, ""))
            if number is not None:
                return number
        budgets = self._budgets.get(job)
        return max(budgets.values()) if budgets else 1


def _kept(group: _Group, spec: JobSpec) -> JobSpec | None:
    """The job with what cycles decided about it; None if that changes nothing."""
    spec = replace(
        spec,
        conditions=group.conditions,
        last_started=group.last_started,
        last_evicted=group.last_evicted,
        stale_since=group.stale_since,
    )
    if spec == group.spec:
        return None
    group.spec = spec
    return spec


def _age(task: TaskSpec) -> tuple[float, str, str]:
    return task.created, task.name, task.uid


def _oldest(group: _Group) -> TaskSpec:
    return min((task for task, _ in group.members.values()), key=_age)
