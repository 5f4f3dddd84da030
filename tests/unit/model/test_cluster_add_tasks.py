"""Many tasks added or changed at once: every column is, byte for byte, what doing it one by one gives."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.tables.tasks import TaskTable

SHAPES = [
    Shape(requests=requests_from(amounts)) for amounts in ({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, {}, {"nvidia.com/gpu": 1})
]
STATUSES = [TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.RELEASING, TaskStatus.SUCCEEDED, TaskStatus.UNKNOWN]


def tasks(rng: Random, count: int, prefix: str) -> list[TaskSpec]:
    found = []
    for number in range(count):
        status = rng.choice(STATUSES)
        found.append(
            TaskSpec(
                uid=f"{prefix}-{number}",
                namespace="ns",
                name=f"job-{prefix}-{number}",
                shape=rng.choice(SHAPES),
                job=rng.choice(("", "ns/a", "ns/b", "ns/c")),
                node="" if status == TaskStatus.PENDING else rng.choice(("n1", "n2", "unknown")),
                status=status,
                labels={"app": rng.choice("xyz")},
                started=rng.choice((None, 5.0)),
                created=float(number),
                gates=rng.choice(((), ("gate",))),
            )
        )
    return found


def small_cluster() -> Cluster:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.put_node(NodeSpec(name, allocatable=requests_from({"cpu": "8", "pods": 20})))
    cluster.put_job(JobSpec("ns/a", "q", namespace="ns", name="a"))
    return cluster


def columns(table: Any) -> dict[str, Any]:
    """What a table holds; columns without the places that no row uses yet."""
    top = table.rows.top if isinstance(table, TaskTable) else None
    found = {name: value for name, value in vars(table).items() if name not in ("space", "rows")}
    return {name: value[:top].tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}


@pytest.mark.parametrize("seed", range(20))
def test_all_at_once_is_one_by_one(seed: int) -> None:
    rng = Random(seed)
    first, second = tasks(rng, 30, "first"), tasks(rng, 50, "second")
    one_by_one, at_once = small_cluster(), small_cluster()
    for cluster in (one_by_one, at_once):
        for task in first:
            cluster.put_task(task)
        for task in first[::2]:
            cluster.remove_task(task.uid)  # rows are free again
    for task in second:
        one_by_one.put_task(task)
    at_once.add_tasks(second)
    for cluster in (one_by_one, at_once):
        cluster.put_job(JobSpec("ns/b", "q", namespace="ns", name="b"))
        cluster.snapshot()
    assert_equal(at_once, one_by_one)


def assert_equal(at_once: Cluster, one_by_one: Cluster) -> None:
    for table in ("tasks", "jobs", "nodes", "shapes"):
        assert columns(getattr(at_once, table)) == columns(getattr(one_by_one, table))
        if table != "shapes":
            assert vars(getattr(at_once, table).rows) == vars(getattr(one_by_one, table).rows)
    assert at_once.identities.pairs == one_by_one.identities.pairs


@pytest.mark.parametrize("seed", range(20))
def test_pods_that_change_together_are_as_changed_one_by_one(seed: int) -> None:
    rng = Random(seed)
    first = tasks(rng, 60, "first")
    one_by_one, at_once = small_cluster(), small_cluster()
    for cluster in (one_by_one, at_once):
        cluster.add_tasks(first)
        cluster.snapshot()
    changed = [
        replace(
            task,
            status=(status := rng.choice(STATUSES)),
            node="" if status == TaskStatus.PENDING else rng.choice((task.node or "n1", "n1", "n2")),
            started=rng.choice((None, 7.0)),
            nominated_node=rng.choice(("", "n1")),
            labels=rng.choice((task.labels, task.labels, {"app": "new"})),
        )
        for task in rng.sample(first, 40)
    ]
    for task in sorted(changed, key=lambda task: task.labels == {"app": "new"}, reverse=True):
        one_by_one.put_task(task)
    at_once.put_tasks(changed)
    for cluster in (one_by_one, at_once):
        for table in (cluster.tasks, cluster.jobs, cluster.nodes):
            assert table.touched
            table.touched.clear()
    assert_equal(at_once, one_by_one)
