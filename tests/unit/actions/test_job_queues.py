"""Which jobs take part in an action, and in which order."""

from __future__ import annotations

import pytest
from tests.worlds.small_cluster import add_job, job_in, open_session, policy, shape, task, with_nodes

from navarch.actions.job_queues import JobHeap, LateQueueHeap, QueueHeap, admitted, takes_part, waiting_tasks
from navarch.engine.session import Session
from navarch.model.spec import JobSpec, QueueSpec
from navarch.plugins.gang import Gang
from navarch.plugins.priority import Priority


@pytest.mark.parametrize(
    ("phase", "actions", "takes"),
    [
        ("Pending", ("enqueue", "allocate"), False),
        ("", ("enqueue", "allocate"), False),
        ("Pending", ("allocate",), True),
        ("Inqueue", ("enqueue", "allocate"), True),
        ("Running", ("enqueue", "allocate"), True),
        ("Unknown", ("enqueue", "allocate"), True),
    ],
)
def test_a_job_must_be_admitted_where_an_action_admits(phase: str, actions: tuple[str, ...], takes: bool) -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    cluster.put_job(JobSpec("ns/j", "default", phase=phase))
    session = open_session(cluster)
    session.policy = policy(actions=actions)
    assert admitted(session, job_in(session, "j")) == takes


def test_an_invalid_job_is_told_why_it_takes_no_part() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "short", [shape(cpu=1)], minimum=2)
    session = open_session(cluster, Gang)
    job = job_in(session, "short")
    assert not takes_part(session, job)
    assert not takes_part(session, job)
    assert [r.message for r in job.reasons] == ["Not enough valid tasks for gang-scheduling, valid: 1, min: 2"]


def names(session: Session, tasks: list[int]) -> list[str]:
    return [session.task(t).uid for t in tasks]


def test_gated_tasks_wait_for_someone_else() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    cluster.put_job(JobSpec("ns/j", "default", phase="Inqueue"))
    cluster.put_task(task("gated", shape(cpu=1), "ns/j", gates=("g",)))
    cluster.put_task(task("plain", shape(cpu=1), "ns/j"))
    cluster.put_task(task("empty", shape(), "ns/j"))
    cluster.put_task(task("runs", shape(cpu=1), "ns/j", "n"))
    session = open_session(cluster)
    job = job_in(session, "j")
    assert names(session, waiting_tasks(session, job, best_effort=None)) == ["plain", "empty"]
    assert names(session, waiting_tasks(session, job, best_effort=True)) == ["empty"]
    assert names(session, waiting_tasks(session, job, best_effort=False)) == ["plain"]


def test_jobs_come_best_first() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "b", [shape(cpu=1)], priority=1)
    add_job(cluster, "a", [shape(cpu=1)], priority=1)
    add_job(cluster, "c", [shape(cpu=1)], priority=9)
    session = open_session(cluster, Priority)
    heap = JobHeap(session)
    for job in session.all_jobs():
        heap.push(job)
    assert len(heap) == 3
    assert [found.key for _ in range(3) if (found := heap.pop())] == ["ns/c", "ns/a", "ns/b"]
    assert heap.pop() is None


@pytest.mark.parametrize("made", [QueueHeap, LateQueueHeap])
def test_queues_come_by_age_and_name_and_may_come_back(made: type[QueueHeap] | type[LateQueueHeap]) -> None:
    cluster = with_nodes()
    cluster.put_queue(QueueSpec("b", created=1.0))
    cluster.put_queue(QueueSpec("a", created=1.0))
    session = open_session(cluster)
    heap = made(session, session.queues.values())
    first = heap.pop()
    assert first is not None
    assert first.name == "default"
    heap.push(first)
    assert [q.name for _ in range(3) if (q := heap.pop())] == ["default", "a", "b"]
    assert heap.pop() is None


@pytest.mark.parametrize("count", [1, 12, 40])
def test_the_first_jobs_come_in_order_and_go_back(count: int) -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    for number in range(40):
        cluster.put_job(JobSpec(f"ns/j{number:02d}", "default", priority=number * 7 % 40))
    session = open_session(cluster, Priority)
    heap = JobHeap(session)
    for job in session.all_jobs():
        heap.push(job)
    first = heap.pop_first(count)
    assert [-job.priority for _, job in first] == [*range(-39, -39 + count)]
    assert len(heap) == 40 - count
    heap.push_all(first[::-1])
    found = [heap.pop() for _ in range(40)]
    assert [job.priority for job in found if job is not None] == [*range(39, -1, -1)]
