"""The pods of a job as people see them: where each is, and why it waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from navarch.model.cluster import Cluster
from navarch.model.spec import TaskSpec
from navarch.model.status import STATUS_NAMES
from navarch.views.jobs import FindPod, refusal_of


@dataclass(frozen=True)
class PodRow:
    name: str
    status: str
    node: str
    created: float
    why: str = ""


def count_by_status(tasks: Iterable[TaskSpec]) -> dict[str, int]:
    """How many pods there are of each status, as `jobs[].pods` of `navarch plan` has them."""
    return {STATUS_NAMES[status]: count for status, count in sorted(Counter(task.status for task in tasks).items())}


def pod_rows(cluster: Cluster, job: str, find_pod: FindPod) -> list[PodRow]:
    """One row a pod, by name; none for a job that does not exist. `job`: its key in the model."""
    row = cluster.jobs.rows.of.get(job)
    if row is None:
        return []
    tasks = sorted(
        (task for number in cluster.jobs.tasks[row] if (task := cluster.tasks.specs[number]) is not None), key=lambda task: task.name
    )
    return [
        PodRow(task.name, STATUS_NAMES[task.status], task.node, task.created, refusal_of(find_pod(task.namespace, task.name)))
        for task in tasks
    ]
