"""The group that KAI would make for a pod that has none, by what owns the pod.

A pod of a Deployment, a Job or nobody is a group of its own; most other controllers' pods form one group of which each may
start alone. What serves (Deployments, Knative) is `inference` and is not preempted, notebooks are `build`, all else `train`.
Only what a pod itself says is read, since owners are not at hand: a LeaderWorkerSet writes its size on each pod, so its
groups are gangs; the replicas of a training operator's job are not written anywhere on its pods, so such a job starts pod
by pod unless an annotation gives its minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from navarch.dialects.kai import (
    DEFAULT_PRIORITY,
    PREEMPTIBLE_BELOW,
    QUEUE_LABEL,
    SCHEDULER_NAME,
)
from navarch.engine.arguments import WrongKind, duration
from navarch.model.spec import JobSpec, Labels, PriorityClassSpec, TaskSpec, TopologyDemand

DEFAULT_QUEUE: Final = "default-queue"
BUILT_IN_CLASSES: Final[Mapping[str, int]] = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
CLASS_LABEL: Final = "priorityClassName"
PREEMPTIBILITY_LABEL: Final = "kai.scheduler/preemptibility"
MIN_MEMBER: Final = "kai.scheduler/batch-min-member"
PREEMPTION_DELAY: Final = "kai.scheduler/preemption-delay"
TOPOLOGY: Final = "kai.scheduler/topology"
REQUIRED_PLACEMENT: Final = "kai.scheduler/topology-required-placement"
PREFERRED_PLACEMENT: Final = "kai.scheduler/topology-preferred-placement"
_SPARK_APP: Final = "spark-app-selector"
_LWS: Final = "leaderworkerset.sigs.k8s.io/"
_KNATIVE: Final = "serving.knative.dev/revision"
_NOTEBOOK: Final = "notebook-name"
_TEMPLATE_HASH: Final = "pod-template-hash"

Owner = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Grouping:
    """`kind` and `name` make the group's key; `min_member` and `priority_class` are the defaults of the workload."""

    kind: str
    name: str
    min_member: int = 1
    priority_class: str = "train"


def is_grouped(scheduler_name: str, labels: Labels) -> bool:
    """Whether a pod without a group is grouped in KAI's way: it is KAI's to schedule, or names a queue of KAI's."""
    return scheduler_name == SCHEDULER_NAME or QUEUE_LABEL in labels


def grouping_of(name: str, owner: Owner | None, labels: Labels, annotations: Labels) -> Grouping:
    """
    >>> grouping_of("web-5c-x7", ("ReplicaSet", "web-5c", "u"), {"pod-template-hash": "5c"}, {})
    Grouping(kind='pod', name='web-5c-x7', min_member=1, priority_class='inference')
    """
    if owner is None:
        if _SPARK_APP in labels and "spark-app-name" in labels:
            return Grouping("sparkapplication", labels[_SPARK_APP])
        return Grouping("pod", name)
    kind, owner_name, _ = owner
    if f"{_LWS}name" in labels and f"{_LWS}group-index" in labels:
        group = f"{labels[f'{_LWS}name']}-{labels[f'{_LWS}group-index']}"
        return Grouping("leaderworkerset", group, _number(annotations.get(f"{_LWS}size")) or 1)
    if kind == "ReplicaSet" and (_KNATIVE in labels or owner_name.endswith(f"-{labels.get(_TEMPLATE_HASH)}")):
        return Grouping("pod", name, priority_class="inference")
    if kind == "Job":
        least = _number(annotations.get(MIN_MEMBER))
        return Grouping("job", owner_name, least) if least else Grouping("pod", name)
    if kind == "StatefulSet" and _NOTEBOOK in labels:
        return Grouping("notebook", labels[_NOTEBOOK], priority_class="build")
    served = "inference" if kind == "SPOTRequest" else "train"
    return Grouping(kind.lower(), owner_name, _number(annotations.get(MIN_MEMBER)) or 1, served)


def key_of(namespace: str, name: str, owner: Owner | None, labels: Labels, annotations: Labels) -> str:
    grouping = grouping_of(name, owner, labels, annotations)
    return f"{namespace}/{grouping.kind}/{grouping.name}"


def job_of(leader: TaskSpec, classes: Mapping[str, PriorityClassSpec]) -> JobSpec:
    """The group in memory, as its oldest pod tells it."""
    labels, annotations = leader.labels, leader.annotations
    grouping = grouping_of(leader.name, leader.owner, labels, annotations)
    priority_class, priority = _priority(labels.get(CLASS_LABEL, ""), grouping.priority_class, classes)
    preemptibility = labels.get(PREEMPTIBILITY_LABEL, "")
    below = None if preemptibility in ("preemptible", "non-preemptible") else PREEMPTIBLE_BELOW
    return JobSpec(
        key=f"{leader.namespace}/{grouping.kind}/{grouping.name}",
        queue=_queue(labels),
        min_member=grouping.min_member,
        namespace=leader.namespace,
        name=grouping.name,
        uid=leader.owner[2] if leader.owner and grouping.kind != "pod" else leader.uid,
        dialect="pod",
        priority=priority,
        priority_class=priority_class,
        default_priority=priority,
        preemptable=preemptibility != "non-preemptible" if below is None else priority < below,
        preemptible_below=below,
        created=leader.created,
        phase="Inqueue",
        topology=_topology(annotations),
        preemption_delay=_seconds(annotations.get(PREEMPTION_DELAY)),
        labels=labels,
        annotations=annotations,
        shadow=True,
        owner=leader.owner or ("Pod", leader.name, leader.uid),
    )


def _queue(labels: Labels) -> str:
    return labels.get(QUEUE_LABEL) or labels.get("project") or DEFAULT_QUEUE


def _priority(wanted: str, default: str, classes: Mapping[str, PriorityClassSpec]) -> tuple[str, int]:
    """A class that the pod names must exist; else the workload's, whose value is known even where no object says it."""
    if wanted and wanted in classes:
        return wanted, classes[wanted].value
    if default in classes:
        return default, classes[default].value
    return default, BUILT_IN_CLASSES.get(default, DEFAULT_PRIORITY)


def _topology(annotations: Labels) -> TopologyDemand | None:
    topology = annotations.get(TOPOLOGY)
    if not topology:
        return None
    required, preferred = annotations.get(REQUIRED_PLACEMENT, ""), annotations.get(PREFERRED_PLACEMENT, "")
    return TopologyDemand(topology, required, preferred, hard=bool(required))


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _seconds(text: str | None) -> float:
    if not text:
        return 0.0
    try:
        return max(0.0, duration(text))
    except WrongKind:
        return 0.0
