"""enqueue: which jobs are admitted, in which order, and the reasons of the others."""

from __future__ import annotations

from collections.abc import Callable

from tests.worlds.small_cluster import decided, phases, waits, with_nodes

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Vote
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, QueueSpec


def world(*jobs: tuple[str, str, bool], queue: str = "default") -> Cluster:
    """(name, phase, says what it needs)"""
    cluster = with_nodes(("n", {"cpu": 8}))
    for number, (name, phase, says) in enumerate(jobs):
        needs = requests_from({"cpu": 1}) if says else None
        cluster.put_job(JobSpec(f"ns/{name}", queue, phase=phase, min_resources=needs, created=float(number)))
    return cluster


def gate(decide: Callable[[Job], Vote | Reason]) -> tuple[type[Plugin], list[str]]:
    """A plugin that decides, and the jobs that it was told were admitted."""
    admitted: list[str] = []

    class Gate(Plugin):
        name = "gate"

        def job_enqueueable(self, job: Job) -> Vote | Reason:
            return decide(job)

        def job_enqueued(self, job: Job) -> None:
            admitted.append(job.key)

    return Gate, admitted


def test_jobs_are_admitted_in_order_and_those_that_are_further_on_are_left_alone() -> None:
    kind, admitted = gate(lambda job: Vote.PERMIT)
    cluster = world(("b", "Pending", True), ("a", "", True), ("on", "Inqueue", True), ("runs", "Running", True))
    record = decided(cluster, kind, actions=("enqueue",))
    assert admitted == ["ns/b", "ns/a"]
    assert phases(record)["a"] == phases(record)["b"] == "Inqueue"


def test_a_rejected_job_does_not_keep_the_next_from_being_asked() -> None:
    kind, admitted = gate(lambda job: Vote.PERMIT if job.key == "ns/second" else Reason("Full", "no room"))
    cluster = world(("first", "Pending", True), ("second", "Pending", True))
    record = decided(cluster, kind, actions=("enqueue",))
    assert admitted == ["ns/second"]
    assert phases(record) == {"first": "Pending", "second": "Inqueue"}


def test_a_job_that_does_not_say_what_it_needs_is_admitted_without_asking() -> None:
    kind, admitted = gate(lambda job: Vote.REJECT)
    cluster = world(("silent", "Pending", False), ("open", "Pending", True))
    record = decided(cluster, kind, actions=("enqueue",))
    assert admitted == ["ns/silent"]
    assert phases(record) == {"open": "Pending", "silent": "Inqueue"}


def test_the_reason_is_recorded_for_jobs_with_pending_pods() -> None:
    from tests.worlds.small_cluster import shape, task

    kind, _ = gate(lambda job: Reason("Full", "no room"))
    cluster = world(("j", "Pending", True))
    cluster.put_task(task("t", shape(cpu=1), "ns/j"))
    record = decided(cluster, kind, actions=("enqueue", "allocate"))
    assert waits(record, "j") == ["no room"]
    assert not record.binds


def test_queues_take_turns() -> None:
    kind, admitted = gate(lambda job: Vote.ABSTAIN)
    cluster = world(("a1", "Pending", True), ("a2", "Pending", True), queue="a")
    for number, queue in enumerate(("a", "b")):
        cluster.put_queue(QueueSpec(queue, created=float(number)))
    cluster.put_job(JobSpec("ns/b1", "b", min_resources=requests_from({"cpu": 1})))

    class Fewest(Plugin):
        name = "fewest"

        def queue_order(self, left: Queue, right: Queue) -> int:
            def count(queue: Queue) -> int:
                return sum(1 for key in admitted if key.startswith(f"ns/{queue.name}"))

            return count(left) - count(right)

    decided(cluster, Fewest, kind, actions=("enqueue",))
    assert admitted == ["ns/a1", "ns/b1", "ns/a2"]
