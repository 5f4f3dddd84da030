"""The task table: one row a pod, reused after it is gone."""

from __future__ import annotations

import pytest
from tests.worlds.small_cluster import shape, task

from navarch.model.status import TaskStatus
from navarch.model.tables.tasks import TaskTable, pod_index


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("job-worker-7", 7),
        ("a-b-c-12", 12),
        ("web-7", -1),
        ("a-b-c", -1),
        ("a-b-", -1),
        ("", -1),
        ("a-b-\u0667", -1),
        ("a-b-" + "9" * 40, -1),
        ("a-b-007", 7),
    ],
)
def test_the_number_at_the_end_of_a_name(name: str, number: int) -> None:
    assert pod_index(name) == number


def test_a_dropped_row_tells_nothing_and_is_taken_by_the_next_pod() -> None:
    tasks = TaskTable()
    old = task("old", shape(cpu=1), node="n", gates=("wait",), priority=9, preemptable=False)
    row = tasks.add(old, shape=3, job=2, node=1, labels=4)
    tasks.drop("old")
    assert not tasks.alive[row]
    assert tasks.specs[row] is None
    assert tasks.job[row] == tasks.node[row] == -1
    assert tasks.add(task("new", shape()), shape=0, job=-1, node=-1, labels=0) == row
    assert tasks.alive[row]
    assert not tasks.gated[row]
    assert tasks.preemptable[row]
    assert tasks.priority[row] == 1
    assert tasks.status[row] == TaskStatus.PENDING


def test_columns_grow_with_the_pods() -> None:
    tasks = TaskTable()
    rows = [tasks.add(task(f"t{i}", shape(), created=float(i)), shape=i, job=-1, node=-1, labels=0) for i in range(100)]
    assert rows == list(range(100))
    assert tasks.shape[:100].tolist() == list(range(100))
    assert tasks.created[99] == 99.0
