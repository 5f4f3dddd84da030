"""backfill: pods that ask for nothing."""

from __future__ import annotations

from tests.worlds.small_cluster import add_job, binds, decided, open_session, row_in, shape, task, waits, with_nodes

from navarch.actions.backfill import Backfill
from navarch.model.spec import JobSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang

BOTH = ("allocate", "backfill")


def test_empty_pods_go_where_a_pod_slot_is_free_even_if_all_else_is_taken() -> None:
    cluster = with_nodes(("full", {"cpu": 1, "pods": 1}), ("open", {"cpu": 1, "pods": 3}))
    add_job(cluster, "run", [shape(cpu=1)], node="full")
    add_job(cluster, "busy", [shape(cpu=1)], node="open")
    add_job(cluster, "empty", [shape()] * 3, minimum=1)
    record = decided(cluster, Gang, actions=BOTH)
    assert binds(record) == {"empty-0": "open", "empty-1": "open"}
    assert waits(record, "empty") == ["empty-worker-2: 0/2 nodes are available: 2 Insufficient pods."]


def test_pods_with_requests_are_not_its_business() -> None:
    cluster = with_nodes(("n", {"cpu": 4}))
    add_job(cluster, "j", [shape(cpu=1)])
    assert binds(decided(cluster, Gang, actions=("backfill",))) == {}


def test_a_gang_that_is_not_ready_is_not_bound_by_its_empty_pods() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "gang", [shape(cpu=1), shape(cpu=1), shape()])
    record = decided(cluster, Gang, actions=BOTH)
    assert binds(record) == {}


def test_gated_and_invalid_ones_wait() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    cluster.put_job(JobSpec("ns/gated", "default", phase="Inqueue"))
    cluster.put_task(task("g", shape(), "ns/gated", gates=("x",)))
    add_job(cluster, "short", [shape()], minimum=2)
    assert binds(decided(cluster, Gang, actions=BOTH)) == {}


def test_a_promise_to_an_empty_pod_is_taken_back_for_a_real_place() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "j", [shape(), shape()], minimum=1)
    session = open_session(cluster, Gang)
    row = row_in(session, "j-0")
    job = session.job_of(row)
    assert job is not None
    session.statement().pipeline(job, [row], [0], session.class_of(row))
    Backfill(session).execute()
    assert session.status[row] == TaskStatus.BINDING
    assert not session.nodes.pipelined.any()
