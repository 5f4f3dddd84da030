"""A session: which jobs take part, which tasks are alike, what every action may ask of it."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, binds, decided, job_in, open_session, row_in, shape, task, with_nodes

from navarch.engine.job import Job
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Reason
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.spec import Condition, JobSpec, QueueSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang


def keys(jobs: list[Job]) -> list[str]:
    return [job.key for job in jobs]


def world() -> Cluster:
    cluster = with_nodes(("a", {"cpu": 8}))
    add_job(cluster, "z-run", [shape(cpu=1)], node="a")
    add_job(cluster, "m-wait", [shape(cpu=1)])
    add_job(cluster, "b-wait", [shape(cpu=1)])
    return cluster


def test_jobs_come_by_key_whatever_order_they_arrived_in() -> None:
    session = open_session(world())
    assert keys(session.all_jobs()) == ["ns/b-wait", "ns/m-wait", "ns/z-run"]
    assert keys(session.jobs_with_pending()) == ["ns/b-wait", "ns/m-wait"]


def test_a_job_without_its_group_or_its_queue_takes_no_part() -> None:
    cluster = world()
    cluster.put_task(task("orphan", shape(cpu=1), "ns/no-group"))
    add_job(cluster, "no-queue", [shape(cpu=1)], queue="deleted")
    session = open_session(cluster)
    assert session.job_of(row_in(session, "orphan")) is None
    assert session.job_of(row_in(session, "no-queue-0")) is None
    assert "ns/no-queue" not in keys(session.all_jobs())


def test_a_queue_deleted_under_its_jobs_stops_only_them() -> None:
    cluster = world()
    cluster.put_queue(QueueSpec("other"))
    add_job(cluster, "elsewhere", [shape(cpu=1)], queue="other")
    cluster.remove_queue("default")
    record = decided(cluster, Gang)
    assert binds(record) == {"elsewhere-0": "a"}
    assert [d.job for d in record.jobs] == ["ns/elsewhere"]


def test_a_group_without_pods_is_a_job_without_tasks() -> None:
    cluster = with_nodes(("a", {"cpu": 1}))
    cluster.put_job(JobSpec("ns/empty", "default", min_member=3, phase="Inqueue"))
    session = open_session(cluster, Gang)
    job = job_in(session, "empty")
    assert job.tasks == ()
    assert job.tasks_in(TaskStatus.PENDING) == []
    assert not job.is_ready
    assert session.jobs_with_pending() == []


@pytest.mark.parametrize(("phase", "waits"), [("", True), ("Pending", True), ("Inqueue", False), ("Running", False)])
def test_jobs_that_were_not_admitted(phase: str, waits: bool) -> None:
    cluster = with_nodes(("a", {"cpu": 1}))
    cluster.put_job(JobSpec("ns/j", "default", phase=phase))
    assert (keys(open_session(cluster).unadmitted_jobs()) == ["ns/j"]) == waits


def test_pods_that_nothing_tells_apart_are_of_one_class() -> None:
    cluster = world()
    cluster.put_task(task("labelled", shape(cpu=1), "ns/m-wait", labels={"app": "x"}))
    session = open_session(cluster)
    plain, labelled = row_in(session, "m-wait-0"), row_in(session, "labelled")
    assert session.class_of(plain) is session.class_of(labelled)
    assert session.class_of(plain) is session.class_of(row_in(session, "b-wait-0"))


def test_classes_are_told_apart_by_what_rules_read() -> None:
    cluster = world()
    cluster.put_queue(QueueSpec("other"))
    add_job(cluster, "elsewhere", [shape(cpu=1)], queue="other")
    cluster.put_task(task("labelled", shape(cpu=1), "ns/m-wait", labels={"app": "x"}))
    cluster.put_task(task("other-label", shape(cpu=1), "ns/m-wait", labels={"tier": "y"}))

    by_label = open_session(cluster)
    by_label.distinguish_labels(["app"])
    rows = [row_in(by_label, uid) for uid in ("m-wait-0", "labelled", "other-label", "elsewhere-0")]
    classes = [by_label.class_of(row).number for row in rows]
    assert classes[0] == classes[2] == classes[3] != classes[1]

    by_queue = open_session(cluster)
    by_queue.distinguish_queues()
    assert by_queue.class_of(rows[0]) is not by_queue.class_of(rows[3])
    assert by_queue.class_of(rows[3]).queue == "other"

    by_hand = open_session(cluster)
    by_hand.distinguish_by(lambda row: by_hand.task(row).uid)
    assert len({by_hand.class_of(row).number for row in rows}) == 4


def test_queues_know_what_their_jobs_hold_and_ask_for() -> None:
    cluster = world()
    cluster.put_queue(QueueSpec("idle", parent="default"))
    session = open_session(cluster)
    queue, child = session.queues["default"], session.queues["idle"]
    assert queue.allocated.tolist() == [1000, 0, 1]
    assert queue.request.tolist() == [3000, 0, 3]
    assert not child.request.any()
    assert child.parent is queue
    assert queue.children == [child]


def test_a_ring_of_queues_is_not_walked_for_ever() -> None:
    cluster = Cluster()
    cluster.put_queue(QueueSpec("a", parent="b"))
    cluster.put_queue(QueueSpec("b", parent="a"))
    cluster.put_queue(QueueSpec("self", parent="self"))
    queues = open_session(cluster).queues
    assert [q.name for q in queues["a"].ancestors] == ["b"]
    assert queues["self"].parent is None


def conclude(session: Session, *, all_: bool) -> list[str]:
    session.report_all = all_
    return keys(session.jobs_to_conclude())


def test_a_job_that_is_as_its_group_says_needs_no_conclusion() -> None:
    cluster = world()
    said = (Condition("Scheduled", "True", "tasks in gang are ready to be scheduled"),)
    running = add_job(cluster, "calm", [shape(cpu=1)], node="a")
    cluster.put_job(replace(running, conditions=said))
    add_job(cluster, "unsaid", [shape(cpu=1)], node="a")
    finished = add_job(cluster, "done", [shape(cpu=1)], node="a")
    cluster.put_task(task("done-0", shape(cpu=1), "ns/done", status=TaskStatus.SUCCEEDED))
    cluster.put_job(replace(finished, conditions=said, phase="Completed"))
    session = open_session(cluster, Gang)
    assert conclude(session, all_=False) == ["ns/b-wait", "ns/m-wait", "ns/unsaid", "ns/z-run"]
    assert conclude(open_session(cluster), all_=False) == ["ns/b-wait", "ns/m-wait"], "no plugin there sets the condition"
    assert "ns/calm" in conclude(session, all_=True)
    touched = open_session(cluster)
    job_of_calm = touched.job_of(row_in(touched, "calm-0"))
    assert job_of_calm is not None
    assert "ns/calm" not in conclude(touched, all_=False), "to be looked at is no news"
    job_of_calm.refuse(Reason("Test", "something was found out"))
    assert "ns/calm" in conclude(touched, all_=False)


def test_shared_figures_are_made_once_and_told_before_the_plugins() -> None:
    class Tally:
        def __init__(self, session: Session) -> None:
            self.moves = 0

        def on_allocate(self, change: Change) -> None:
            self.moves += len(change.tasks)

        def on_deallocate(self, change: Change) -> None:
            self.moves -= len(change.tasks)

    session = open_session(world())
    tally = session.shared(Tally)
    assert session.shared(Tally) is tally
    row = row_in(session, "m-wait-0")
    job = job_in(session, "m-wait")
    statement = session.statement()
    statement.allocate(job, [row], [0], session.class_of(row))
    assert tally.moves == 1
    statement.discard()
    assert tally.moves == 0


def shard(mode: str | None, nodes: object = ("a",)) -> tuple[list[bool] | None, bool]:
    cluster = with_nodes(("a", {"cpu": 1}), ("b", {"cpu": 1}))
    policy = dataclasses.replace(open_session(cluster).policy, params={"shardingMode": mode, "nodesInShard": nodes})
    session = Session(cluster.snapshot(), policy, Registry((), ()), now=0.0)
    return None if session.shard is None else session.shard.tolist(), session.shard_is_hard


def test_the_sharding_mode_says_which_nodes_are_ours() -> None:
    assert shard("hard") == ([True, False], True)
    assert shard("soft", ["b"]) == ([False, True], False)
    assert shard("none") == (None, False)
    assert shard(None) == (None, False)
    assert shard("hard", None) == ([False, False], True)


def test_one_absurd_pod_does_not_keep_others_from_running() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    most = (1 << 63) - 1
    add_job(cluster, "absurd", [replace(shape(), requests=(("cpu", most), ("memory", most)))] * 3)
    add_job(cluster, "modest", [shape(cpu=1)])
    record = decided(cluster, Gang)
    assert binds(record) == {"modest-0": "a"}
