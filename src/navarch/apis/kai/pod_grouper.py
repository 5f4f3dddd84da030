"""The group that KAI's pod grouper makes for a pod without one, from the owner of the pod.

The key of the group follows from the pod alone, so it does not change when the owner arrives later. The minimum comes from the owner
if its kind has one (`operators.readers`); otherwise each pod may start alone. Serving workloads (Deployments, Knative) have the class
`inference` and are not preempted, notebooks have `build`, all others `train`.

Queue, priority, preemptibility and topology come from the top owner if it sets them, otherwise from the oldest pod. Kinds that only
wrap another workload (a Workflow, a TrainJob) supply what that workload does not set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from navarch.apis.kai.podgroups import DEFAULT_PRIORITY, PREEMPTIBLE_BELOW
from navarch.apis.kai.sub_groups import (
    JOBSET,
    LWS,
    POD_GANG,
    QUEUE_LABEL,
    ROLE,
    UNGROUPED,
    WHOLE,
    is_grouped,
    is_left_alone,
    leader_and_workers,
)
from navarch.apis.operators.owners import Owners
from navarch.apis.operators.sub_group_minimums import marked
from navarch.apis.operators.workload import MIN_MEMBER, WorkloadSpec, number, topology_in
from navarch.engine.arguments import WrongKind, duration
from navarch.model.spec import JobSpec, Labels, PriorityClassSpec, SubGroupSpec, TaskSpec

__all__ = ("Grouping", "grouping_of", "is_grouped", "job_of", "key_of")

DEFAULT_QUEUE: Final = "default-queue"
NODE_POOL: Final = "kai.scheduler/node-pool"
BUILT_IN_CLASSES: Final[Mapping[str, int]] = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
CLASS_LABEL: Final = "priorityClassName"
RAY_CLASS_LABEL: Final = "ray.io/priority-class-name"
PREEMPTIBILITY_LABEL: Final = "kai.scheduler/preemptibility"
PREEMPTION_DELAY: Final = "kai.scheduler/preemption-delay"
STALENESS_GRACE: Final = "kai.scheduler/staleness-grace-period"
_SPARK_APP: Final = "spark-app-selector"
_KNATIVE: Final = "serving.knative.dev/revision"
_NOTEBOOK: Final = "notebook-name"
_TEMPLATE_HASH: Final = "pod-template-hash"
_WRAPPERS: Final = frozenset(
    {
        "Workflow",
        "TrainJob",
        "DynamoGraphDeployment",
        "PodCliqueSet",
        "PodGangSet",
        "TrainingWorkload",
        "InteractiveWorkload",
        "DistributedWorkload",
        "InferenceWorkload",
        "DistributedInferenceWorkload",
        "WorkloadRunner",
    }
)
"""Kinds that KAI skips: it groups the workload below them."""
_LAST: Final = frozenset({"Job", "Revision"})
"""Kinds at which the search for the top owner ends, although something owns them (a CronJob, a Knative Service)."""
_BY_LABEL: Final = (
    ("tekton.dev/pipelineRun", "PipelineRun"),
    ("seldon-deployment-id", "SeldonDeployment"),
    ("controller.devfile.io/devworkspace_name", "DevWorkspace"),
)
"""(label, kind): kinds that own their pods through other objects. A label of the pods names the owner, and with it the group."""

Owner = tuple[str, str, str]


class Grouping(Struct, frozen=True):
    """`kind` and `name` make the group's key. `owner` is kind and name of the object that the group is made for."""

    kind: str
    name: str
    priority_class: str = "train"
    owner: tuple[str, str] | None = None


def grouping_of(name: str, owner: Owner | None, labels: Labels) -> Grouping:
    """
    >>> grouping_of("web-5c-x7", ("ReplicaSet", "web-5c", "u"), {"pod-template-hash": "5c"})
    Grouping(kind='pod', name='web-5c-x7', priority_class='inference', owner=('Deployment', 'web'))
    """
    if owner is None:
        if _SPARK_APP in labels and "spark-app-name" in labels:
            return Grouping("sparkapplication", labels[_SPARK_APP])
        return Grouping("pod", name)
    kind, owner_name, _ = owner
    if f"{LWS}name" in labels and f"{LWS}group-index" in labels:
        whole = labels[f"{LWS}name"]
        return Grouping("leaderworkerset", f"{whole}-{labels[f'{LWS}group-index']}", owner=("LeaderWorkerSet", whole))
    if kind == "Job":
        if whole := labels.get(f"{JOBSET}jobset-name", ""):
            return _whole("JobSet", whole)
        return _whole("Job", owner_name)
    if kind == "PodClique" and (gang := labels.get(POD_GANG)):
        return _whole("PodGang", gang)
    for label, above in _BY_LABEL:
        if whole := labels.get(label, ""):
            return _whole(above, whole)
    if kind == "ReplicaSet":
        deployment = owner_name.removesuffix(f"-{labels.get(_TEMPLATE_HASH)}")
        if _KNATIVE in labels:
            return Grouping("pod", name, "inference", ("Revision", labels[_KNATIVE]))
        if deployment != owner_name:
            return Grouping("pod", name, "inference", ("Deployment", deployment))
    if kind == "StatefulSet" and _NOTEBOOK in labels:
        return _whole("Notebook", labels[_NOTEBOOK], "build")
    if kind == "RunaiJob":
        return Grouping("runaijob", name.rpartition("-")[0] or name, owner=(kind, owner_name))
    if kind in _WRAPPERS:
        return Grouping("pod", name, owner=(kind, owner_name))
    return _whole(kind, owner_name, "inference" if kind == "SPOTRequest" else "train")


def _whole(kind: str, name: str, priority_class: str = "train") -> Grouping:
    return Grouping(kind.lower(), name, priority_class, (kind, name))


def key_of(namespace: str, name: str, owner: Owner | None, labels: Labels, annotations: Labels) -> str:
    if is_left_alone(annotations):
        return f"{namespace}/{UNGROUPED}/{name}"
    grouping = grouping_of(name, owner, labels)
    return f"{namespace}/{grouping.kind}/{grouping.name}"


def job_of(
    leader: TaskSpec,
    classes: Mapping[str, PriorityClassSpec],
    owners: Owners,
    node_pool_key: str = "",
    queue_label: str = QUEUE_LABEL,
) -> JobSpec | None:
    """The shadow job, from its oldest pod and its owner. None: the owner has not arrived yet, or the pod is to have no such job."""
    if is_left_alone(leader.annotations):
        return None
    grouping = grouping_of(leader.name, leader.owner, leader.labels)
    key = f"{leader.namespace}/{grouping.kind}/{grouping.name}"
    chain = owners.chain(key, leader.namespace, *grouping.owner) if grouping.owner else []
    if grouping.owner and not chain and owners.will_arrive(grouping.owner[0]):
        return None
    workload = chain[0] if chain else None
    labels, annotations = _told(chain, leader)
    default = (workload.priority_class if workload else "") or labels.get(RAY_CLASS_LABEL, "")
    wanted = (default, labels.get(CLASS_LABEL, ""), leader.labels.get(CLASS_LABEL, ""), leader.priority_class)
    priority_class, priority = _priority(wanted, grouping.priority_class, classes)
    preemptibility = labels.get(PREEMPTIBILITY_LABEL) or leader.labels.get(PREEMPTIBILITY_LABEL, "")
    below = None if preemptibility in ("preemptible", "non-preemptible") else PREEMPTIBLE_BELOW
    least, parts, least_parts = _size(grouping, leader, workload, annotations, owners.roles(key))
    return JobSpec(
        key=key,
        queue=_queue(labels, leader.labels, node_pool_key or NODE_POOL, queue_label),
        min_member=least,
        namespace=leader.namespace,
        name=grouping.name,
        uid=_uid(grouping, leader, key),
        dialect="pod",
        priority=priority,
        priority_class=priority_class,
        default_priority=priority,
        preemptable=preemptibility != "non-preemptible" if below is None else priority < below,
        preemptible_below=below,
        created=workload.created if workload and workload.created and grouping.kind != "pod" else leader.created,
        phase="Inqueue",
        sub_groups=marked(parts, least_parts),
        min_sub_groups=least_parts,
        topology=(workload.topology if workload else None) or topology_in(annotations),
        preemption_delay=max(0.0, _seconds(annotations, leader.annotations, PREEMPTION_DELAY) or 0.0),
        staleness_grace=_seconds(annotations, leader.annotations, STALENESS_GRACE),
        labels=leader.labels,
        annotations=leader.annotations,
        shadow=True,
        owner=leader.owner or ("Pod", leader.name, leader.uid),
    )


def _told(chain: Sequence[WorkloadSpec], leader: TaskSpec) -> tuple[Labels, Labels]:
    """Labels and annotations of the top owner; those of the pod if no owner is known."""
    last = next((i for i, each in enumerate(chain) if each.kind in _LAST), len(chain))
    chain = chain[: last + 1]
    speaker = next((each for each in reversed(chain) if each.kind not in _WRAPPERS), None)
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    for wrapper in reversed(chain):
        if wrapper.kind in _WRAPPERS:
            labels.update(wrapper.labels)
            annotations.update(wrapper.annotations)
    labels.update(speaker.labels if speaker else leader.labels)
    annotations.update(speaker.annotations if speaker else leader.annotations)
    return labels, annotations


def _size(
    grouping: Grouping, leader: TaskSpec, workload: WorkloadSpec | None, annotations: Labels, roles: Sequence[str]
) -> tuple[int, tuple[SubGroupSpec, ...], int | None]:
    """Minimum, sub-groups, and how many of the sub-groups are needed."""
    if grouping.kind == "pod":
        return 1, _parts(roles), None
    if said := number(leader.annotations.get(MIN_MEMBER)):
        others = _parts(roles)
        return said, (SubGroupSpec(WHOLE, said), *others) if others else (), None
    least_parts = None
    if grouping.kind == "leaderworkerset":
        least, parts = _leader_worker_size(leader, workload)
    elif workload is None or workload.min_member is None:
        return number(annotations.get(MIN_MEMBER)) or 1, _parts(roles), None
    else:
        least, parts, least_parts = workload.min_member, workload.sub_groups, workload.min_sub_groups
    if workload is not None and workload.early is not None and all(role == workload.early[0] for role in roles):
        first, least = workload.early
        parts, least_parts = tuple(replace(part, parent="") for part in parts if part.name == first), None
    return least, _parts(roles, parts), least_parts


def _leader_worker_size(leader: TaskSpec, workload: WorkloadSpec | None) -> tuple[int, tuple[SubGroupSpec, ...]]:
    """Size and segments from annotations of the pod. They hold for this group even while the LeaderWorkerSet changes."""
    said = leader.annotations
    size = number(said.get(f"{LWS}size"))
    if not size:
        return (workload.min_member or 1, workload.sub_groups) if workload else (1, ())
    apart = said.get(f"{LWS}subgroup-policy-type") == "LeaderExcluded"
    if workload is not None and workload.sub_groups and workload.min_member == size:
        return size, workload.sub_groups
    return size, leader_and_workers(size, number(said.get(f"{LWS}subgroup-size")), leader_apart=apart)


def _parts(roles: Sequence[str], parts: tuple[SubGroupSpec, ...] = ()) -> tuple[SubGroupSpec, ...]:
    """Add a sub-group with minimum 0 for each role of pods that the owner does not list. Otherwise these pods would never start."""
    known = {part.name for part in parts}
    return *parts, *(SubGroupSpec(role, 0) for role in roles if role not in known and not role.startswith(ROLE))


def _uid(grouping: Grouping, leader: TaskSpec, key: str) -> str:
    if grouping.kind == "pod" or leader.owner is None:
        return leader.uid
    return leader.owner[2] if grouping.owner == leader.owner[:2] else key


def _queue(labels: Labels, own: Labels, node_pool_key: str, queue_label: str) -> str:
    """The owner's queue, the pod's queue, or the queue of their project in the pod's node pool."""
    if queue := labels.get(queue_label) or own.get(queue_label):
        return queue
    project = labels.get("project") or own.get("project")
    if not project:
        return DEFAULT_QUEUE
    return f"{project}-{own[node_pool_key]}" if own.get(node_pool_key) else project


def _priority(wanted: Sequence[str], default: str, classes: Mapping[str, PriorityClassSpec]) -> tuple[str, int]:
    """Name and value of the first class that exists; otherwise the class of the kind of workload, whose value is built in."""
    for name in (*wanted, default):
        if name and name in classes:
            return name, classes[name].value
    return default, BUILT_IN_CLASSES.get(default, DEFAULT_PRIORITY)


def _seconds(annotations: Labels, own: Labels, name: str) -> float | None:
    for text in (annotations.get(name), own.get(name)):
        if text:
            try:
                return duration(text)
            except WrongKind:
                continue
    return None
