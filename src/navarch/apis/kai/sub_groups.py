"""The sub-group of a pod, by the labels that operators put on pods.

The names are those of the sub-groups that KAI's pod grouper makes, and roles where it makes none. Only the pod is read, so a pod keeps
its sub-group whether or not its owner is known.
"""

from __future__ import annotations

from typing import Final

from navarch.apis.operators.workload import MIN_MEMBER, number
from navarch.model.spec import Labels, SubGroupSpec

QUEUE_LABEL: Final = "kai.scheduler/queue"
SCHEDULER_NAME: Final = "kai-scheduler"
SEGMENT_SIZE: Final = "kai.scheduler/segment-size"
KUBEFLOW: Final = "training.kubeflow.org/"
JOBSET: Final = "jobset.sigs.k8s.io/"
LWS: Final = "leaderworkerset.sigs.k8s.io/"
RAY_CLUSTER: Final = "ray.io/cluster"
RAY_GROUP: Final = "ray.io/group"
POD_GANG: Final = "grove.io/podgang"
WHOLE: Final = "default"
"""The sub-group of pods that name none, in a group that has sub-groups."""
ROLE: Final = "role:"
"""Prefix of the name of a role that is not a sub-group."""
_ROLES_ONLY: Final = frozenset({"TFJob", "MPIJob", "XGBoostJob", "JAXJob"})
_GROUP_NAMES: Final = ("pod-group-name", "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")

SKIP_GROUPER: Final = "kai.scheduler/skip-podgrouper"
UNGROUPED: Final = "ungrouped"
"""In the key of a pod that is left without a group: the place of the kind of its owner."""

Owner = tuple[str, str, str]


def is_grouped(scheduler_name: str, labels: Labels) -> bool:
    """Whether a pod without a group is grouped as KAI does: it names KAI's scheduler, or a KAI queue."""
    return scheduler_name == SCHEDULER_NAME or QUEUE_LABEL in labels


def is_left_alone(annotations: Labels) -> bool:
    """Whether no group is made for the pod: what makes its PodGroup is still to come."""
    return annotations.get(SKIP_GROUPER) == "true"


def part_of(owner: Owner | None, labels: Labels, annotations: Labels) -> str:
    """The sub-group of a pod in its shadow job. Empty if its kind has no sub-groups, if the pod names a group itself, or if the
    pod gives a minimum itself.

    >>> part_of(("RayCluster", "c", "u"), {"ray.io/cluster": "c", "ray.io/group": "gpu"}, {})
    'gpu'
    """
    if owner is None or MIN_MEMBER in annotations or any(name in annotations for name in _GROUP_NAMES):
        return ""
    kind, name, _ = owner
    if kind == "PyTorchJob":
        role = labels.get(f"{KUBEFLOW}replica-type", "").lower() or WHOLE
        size = number(annotations.get(SEGMENT_SIZE))
        return f"worker-{number(labels.get(f'{KUBEFLOW}replica-index')) // size}" if role == "worker" and size else role
    if kind == "RayCluster":
        return labels.get(RAY_GROUP) or WHOLE
    if kind == "PodClique":
        return name if POD_GANG in labels else ""
    if kind == "Job" and f"{JOBSET}jobset-name" in labels:
        return replica_name(labels.get(f"{JOBSET}replicatedjob-name", ""), labels.get(f"{JOBSET}job-index", ""))
    if f"{LWS}name" in labels:
        index = labels.get(f"{LWS}worker-index")
        size, segment = number(annotations.get(f"{LWS}size")), number(annotations.get(f"{LWS}subgroup-size"))
        return WHOLE if index is None else _seat(number(index), size, segment)
    return ""


def role_of(part: str, owner: Owner | None, labels: Labels) -> str:
    """The role of a pod in its group: its sub-group, or its role if the kind has roles and no sub-groups.

    >>> role_of("", ("MPIJob", "m", "u"), {"training.kubeflow.org/job-role": "launcher"})
    'role:launcher'
    """
    if part or owner is None or owner[0] not in _ROLES_ONLY:
        return part
    role = labels.get(f"{KUBEFLOW}job-role") or labels.get(f"{KUBEFLOW}replica-type") or ""
    return f"{ROLE}{role.lower()}" if role else ""


def replica_name(replicated_job: str, index: str | int) -> str:
    return f"{replicated_job}-replica-{index}"


def leader_and_workers(size: int, segment: int = 0, *, leader_apart: bool = False) -> tuple[SubGroupSpec, ...]:
    """The sub-groups of a leader and its workers. Segments hold `segment` pods each. The leader is in the first segment, or in a
    sub-group of its own. The workers of the first segment have the same name in both cases, because a worker cannot tell.

    >>> [(p.name, p.min_member, p.parent) for p in leader_and_workers(5, 2)]
    [('segment-0', 0, ''), ('segment-1', 2, ''), ('leader', 1, 'segment-0'), ('workers', 2, 'segment-0')]
    """
    if not 1 < segment <= size:
        workers = (SubGroupSpec("workers", size - 1),) if size > 1 else ()
        return SubGroupSpec("leader", 1), *workers
    held = [0] * (_segment(size - 1, size, segment) + 1)
    for index in range(1, size):
        held[_segment(index, size, segment)] += 1
    rest = tuple(SubGroupSpec(f"segment-{i}", n) for i, n in enumerate(held) if i)
    if leader_apart:
        return SubGroupSpec("leader", 1), SubGroupSpec("workers", held[0]), *rest
    first = (SubGroupSpec("leader", 1, "segment-0"), SubGroupSpec("workers", held[0], "segment-0"))
    return SubGroupSpec("segment-0", 0, min_sub_groups=len(first)), *rest, *first


def _seat(index: int, size: int, segment: int) -> str:
    if index == 0:
        return "leader"
    if not 1 < segment <= size:
        return "workers"
    number = _segment(index, size, segment)
    return f"segment-{number}" if number else "workers"


def _segment(index: int, size: int, segment: int) -> int:
    """If the workers divide evenly into segments, the leader is an extra pod of the first segment; otherwise it is one of its pods."""
    if index == 0:
        return 0
    return (index - 1) // segment if (size - 1) % segment == 0 else index // segment
