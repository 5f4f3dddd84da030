"""A snapshot is isolated from the cluster, both ways, and its nodes come in the order that was asked for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, open_session, row_in, shape, task, with_nodes

from navarch.model.cluster import Cluster
from navarch.model.spec import NodeSpec
from navarch.model.status import TaskStatus


def world() -> Cluster:
    cluster = with_nodes(("b", {"cpu": 8}), ("a", {"cpu": 4}))
    add_job(cluster, "run", [shape(cpu=1)] * 2, node="b")
    add_job(cluster, "wait", [shape(cpu=1)] * 2)
    return cluster


def test_changes_of_the_cluster_are_not_seen() -> None:
    cluster = world()
    snapshot = cluster.snapshot()
    before = (snapshot.nodes.used.copy(), snapshot.jobs.counts.copy(), [dict(t) for t in snapshot.jobs.tasks])
    cluster.remove_node("a")
    cluster.put_node(NodeSpec("b", allocatable=(("cpu", 1),)))
    cluster.remove_task("run-0")
    cluster.put_task(task("new", shape(cpu=2), "ns/run", "b"))
    cluster.remove_job("ns/wait")
    cluster.remove_queue("default")
    assert snapshot.nodes.names == ["a", "b"]
    assert snapshot.nodes.allocatable[0].tolist() == [4000, 8000]
    assert (snapshot.nodes.used == before[0]).all()
    assert (snapshot.jobs.counts == before[1]).all()
    assert snapshot.jobs.tasks == before[2]
    assert "default" in snapshot.queues
    assert snapshot.tasks.spec(0).uid == "run-0"


def test_decisions_of_a_session_are_not_seen_by_the_cluster_or_another_snapshot() -> None:
    cluster = world()
    twin = cluster.snapshot()
    session = open_session(cluster)
    row = row_in(session, "wait-0")
    job = session.job_of(row)
    assert job is not None
    statement = session.statement()
    statement.allocate(job, [row], [0], session.class_of(row))
    statement.evict(row_in(session, "run-0"))
    statement.commit()
    again = cluster.snapshot()
    assert (again.nodes.used == twin.nodes.used).all()
    assert (again.nodes.releasing == twin.nodes.releasing).all()
    assert (again.tasks.status == twin.tasks.status).all()
    assert (again.nodes.scoring == twin.nodes.scoring).all()


@pytest.mark.parametrize(("order", "names"), [("name", ["a", "b", "c"]), ("listed", ["b", "a", "c"])])
def test_nodes_come_by_name_or_as_they_were_listed(order: str, names: list[str]) -> None:
    cluster = world()
    cluster.put_node(NodeSpec("c", allocatable=(("cpu", 1),)))
    cluster.put_node(NodeSpec("b", allocatable=(("cpu", 7000),)))
    snapshot = cluster.snapshot(order)
    assert snapshot.nodes.names == names
    where = [spec.uid for spec in snapshot.tasks.specs if spec is not None and spec.node]
    assert {names[snapshot.tasks.node[row]] for row in range(len(where))} == {"b"}
    assert snapshot.nodes.row("b") == names.index("b")
    assert snapshot.nodes.row("nowhere") is None


def test_a_node_listed_again_after_it_had_gone_comes_last() -> None:
    cluster = world()
    cluster.remove_task("run-0")
    cluster.remove_task("run-1")
    cluster.remove_node("b")
    cluster.put_node(NodeSpec("b", allocatable=(("cpu", 1),)))
    assert cluster.snapshot("listed").nodes.names == ["a", "b"]


def test_orders_have_versions_of_their_own() -> None:
    cluster = world()
    assert cluster.snapshot("name").nodes.version != cluster.snapshot("listed").nodes.version
    assert cluster.snapshot("name").nodes.version == cluster.snapshot("name").nodes.version


def test_an_empty_cluster_has_an_empty_snapshot() -> None:
    snapshot = Cluster().snapshot()
    assert len(snapshot.nodes) == 0
    assert snapshot.nodes.used.shape == (3, 0)
    assert snapshot.tasks.status.shape == (0,)
    assert snapshot.jobs.counts.shape[0] == 0


def test_a_row_that_is_reused_between_two_snapshots_tells_each_its_own_pod() -> None:
    cluster = world()
    first = cluster.snapshot()
    cluster.remove_task("wait-1")
    cluster.put_task(task("late", shape(cpu=3), "ns/run", "a"))
    second = cluster.snapshot()
    row = next(i for i, spec in enumerate(second.tasks.specs) if spec is not None and spec.uid == "late")
    assert first.tasks.spec(row).uid == "wait-1"
    assert first.tasks.status[row] == TaskStatus.PENDING
    assert second.tasks.status[row] == TaskStatus.RUNNING
    assert first.shapes[first.tasks.shape[row]] == shape(cpu=1)
    assert second.shapes[second.tasks.shape[row]] == shape(cpu=3)


def test_a_dead_row_has_no_spec() -> None:
    cluster = world()
    cluster.remove_task("run-0")
    snapshot = cluster.snapshot()
    assert not snapshot.tasks.alive[0]
    with pytest.raises(AssertionError, match="task row 0 is dead"):
        snapshot.tasks.spec(0)


def test_a_replaced_pod_keeps_its_row() -> None:
    cluster = world()
    spec = cluster.task("wait-0")
    assert spec is not None
    row = cluster.tasks.rows.of["wait-0"]
    cluster.put_task(replace(spec, priority=7))
    assert cluster.tasks.rows.of["wait-0"] == row
    assert cluster.snapshot().tasks.priority[row] == 7
