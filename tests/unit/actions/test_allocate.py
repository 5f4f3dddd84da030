"""allocate: gangs whole or not at all, elastic parts in turns, and what stands in the way."""

from __future__ import annotations

from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, apply, binds, decided, evicted, phases, promises, shape, task, waits, with_nodes

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.semantics import Semantics
from navarch.model.spec import JobSpec, QueueSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang
from navarch.plugins.priority import Priority


def test_a_gang_is_placed_whole_and_says_so_in_the_order_of_its_tasks() -> None:
    cluster = with_nodes(("a", {"cpu": 2}), ("b", {"cpu": 2}))
    add_job(cluster, "gang", [shape(cpu=1)] * 3)
    assert list(binds(decided(cluster, Gang)).items()) == [("gang-0", "a"), ("gang-1", "a"), ("gang-2", "b")]


def test_a_gang_that_does_not_fit_leaves_nothing_behind() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    add_job(cluster, "large", [shape(cpu=1)] * 3, created=0.0)
    add_job(cluster, "small", [shape(cpu=1)] * 2, created=1.0)
    record = decided(cluster, Gang)
    assert sorted(binds(record)) == ["small-0", "small-1"]
    told = "large-worker-2: 0/1 nodes are available: 1 Insufficient cpu"
    assert waits(record, "large") == [
        "cannot start: needs 3 CPUs, the cluster has 2",
        f"{told}, with 2 other pods of this job placed.",
    ]
    others_words = Semantics(refusals_tell_all=False, next_step_is_told=False)
    assert waits(decided(cluster, Gang, semantics=others_words), "large") == [f"{told.replace('available', 'unavailable')}."]


def test_nodes_held_by_partial_gangs_go_to_no_other_job() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    add_job(cluster, "large", [shape(cpu=1)] * 3, created=0.0)
    add_job(cluster, "small", [shape(cpu=1)] * 2, created=1.0)
    assert binds(decided(cluster, Gang, semantics=Semantics(partial_gang_holds_nodes=True))) == {}


def test_a_minimum_above_the_pods_there_are_waits_for_more_pods() -> None:
    cluster = with_nodes(("a", {"cpu": 9}))
    add_job(cluster, "short", [shape(cpu=1)] * 2, minimum=3)
    record = decided(cluster, Gang)
    assert not record.binds
    assert waits(record, "short") == ["Not enough valid tasks for gang-scheduling, valid: 2, min: 3"]
    cluster.put_task(task("third", shape(cpu=1), "ns/short"))
    assert len(decided(cluster, Gang).binds) == 3


def test_a_minimum_of_zero_is_no_gang() -> None:
    cluster = with_nodes(("a", {"cpu": 1}))
    add_job(cluster, "loose", [shape(cpu=1)] * 2, minimum=0)
    assert len(decided(cluster, Gang).binds) == 1


def test_beyond_their_minimum_jobs_grow_in_turns() -> None:
    cluster = with_nodes(("a", {"cpu": 6}))
    add_job(cluster, "first", [shape(cpu=1)] * 9, minimum=1, created=0.0)
    add_job(cluster, "second", [shape(cpu=1)] * 9, minimum=1, created=1.0)

    class Fewest(Plugin):
        name = "fewest"

        def job_order(self, job: Job) -> int:
            return job.ready_count

    found = binds(decided(cluster, Fewest, Gang))
    assert sorted(uid.rpartition("-")[0] for uid in found) == ["first"] * 3 + ["second"] * 3


def test_many_equal_tasks_beyond_the_minimum_are_all_placed() -> None:
    cluster = with_nodes(*((f"n{i:02d}", {"cpu": 10}) for i in range(30)))
    add_job(cluster, "elastic", [shape(cpu=1)] * 320, minimum=1)
    assert len(decided(cluster, Gang).binds) == 300


def test_a_job_with_pods_that_fit_and_pods_that_never_will_gets_the_former() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    add_job(cluster, "mixed", [shape(cpu=9), shape(cpu=1), shape(cpu=9), shape(cpu=1)], minimum=1)
    assert sorted(binds(decided(cluster, Gang))) == ["mixed-1", "mixed-3"]
    assert binds(decided(cluster, Gang, semantics=Semantics(misfit_ends_turn=True))) == {}


def test_roles_have_minimums_where_the_job_covers_them() -> None:
    cluster = with_nodes(("a", {"cpu": 3}))
    roles = (("master", 1), ("worker", 2))
    cluster.put_job(JobSpec("ns/j", "default", min_member=3, roles=roles, phase="Inqueue"))
    for name, role in (("m", "master"), ("w0", "worker"), ("w1", "worker"), ("w2", "worker")):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", role=role))
    assert {"m", "w0", "w1"} == set(binds(decided(cluster, Gang)))
    cluster.remove_task("m")
    record = decided(cluster, Gang)
    assert not record.binds, "three workers are enough for the job but a master is missing"


def test_releasing_resources_are_nominated_and_not_bound() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    cluster.put_task(task("leaving", shape(cpu=1), node="a", status=TaskStatus.RELEASING))
    add_job(cluster, "gang", [shape(cpu=1)] * 2, created=0.0)
    add_job(cluster, "late", [shape(cpu=1)], created=1.0)
    record = decided(cluster, Gang)
    assert not record.binds
    assert promises(record) == {"gang-1": "a"}
    cluster.remove_task("leaving")
    apply(cluster, record)
    assert sorted(binds(decided(cluster, Gang))) == ["gang-0", "gang-1"]


def test_a_promised_node_is_taken_even_if_another_comes_first() -> None:
    cluster = with_nodes(("a", {"cpu": 2}), ("b", {"cpu": 2}))
    job = add_job(cluster, "j", [shape(cpu=1)])
    spec = cluster.task("j-0")
    assert spec is not None
    cluster.put_task(replace(spec, nominated_node="b"))
    assert binds(decided(cluster, Gang)) == {"j-0": "b"}
    cluster.put_task(replace(spec, nominated_node="gone"))
    assert binds(decided(cluster, Gang)) == {"j-0": "a"}
    add_job(cluster, "full", [shape(cpu=2)], node="b")
    cluster.put_task(replace(spec, nominated_node="b"))
    assert binds(decided(cluster, Gang)) == {"j-0": "a"}
    assert job.min_member == 1


def test_jobs_that_were_not_admitted_wait_where_an_action_admits() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    job = add_job(cluster, "j", [shape(cpu=1)])
    cluster.put_job(replace(job, phase="Pending", min_resources=(("cpu", 1000),)))
    assert decided(cluster, Gang).binds
    assert not decided(cluster, Gang, actions=("allocate", "enqueue")).binds
    assert decided(cluster, Gang, actions=("enqueue", "allocate")).binds


class Limit(Plugin):
    """Queues of a size: `default` takes two tasks, `closed` is overused."""

    name = "limit"

    def overused(self, queue: Queue) -> Reason | None:
        return Reason("Overused", "closed") if queue.name == "closed" else None

    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> int | Reason:
        left = 2 - int(self.session.nodes.used[2].sum())
        return min(count, left) if left > 0 else Reason("Full", f"queue {queue.name} is full")


def test_a_queue_takes_as_many_as_it_may_and_tells_the_rest() -> None:
    cluster = with_nodes(("a", {"cpu": 9}))
    add_job(cluster, "gang", [shape(cpu=1)] * 3, created=0.0)
    add_job(cluster, "pair", [shape(cpu=1)] * 2, created=1.0)
    record = decided(cluster, Limit, Gang)
    assert sorted(binds(record)) == ["pair-0", "pair-1"]
    assert waits(record, "gang") == ["queue default is full"]


def test_an_overused_queue_is_passed_over_with_all_its_jobs() -> None:
    cluster = with_nodes(("a", {"cpu": 9}))
    cluster.put_queue(QueueSpec("closed"))
    for name in ("x", "y"):
        add_job(cluster, name, [shape(cpu=1)], queue="closed")
    add_job(cluster, "open", [shape(cpu=1)])
    record = decided(cluster, Limit, Gang)
    assert sorted(binds(record)) == ["open-0"]
    assert waits(record, "x") == waits(record, "y") == ["closed"]


def test_pods_that_ask_for_nothing_are_left_to_backfill() -> None:
    cluster = with_nodes(("a", {"cpu": 9}))
    add_job(cluster, "j", [shape(cpu=1), shape()], minimum=2)
    assert binds(decided(cluster, Gang)) == {"j-0": "a"}, "the empty one counts as ready"
    assert sorted(binds(decided(cluster, Gang, actions=("allocate", "backfill")))) == ["j-0", "j-1"]


def test_priority_goes_first_and_a_calm_cluster_stays_calm() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    add_job(cluster, "low", [shape(cpu=1)] * 2, priority=1, created=0.0)
    add_job(cluster, "high", [shape(cpu=1)] * 2, priority=9, created=1.0)
    first = decided(cluster, Priority, Gang)
    assert sorted(binds(first)) == ["high-0", "high-1"]
    assert phases(first)["high"] == "Inqueue"
    apply(cluster, first)
    for _ in range(5):
        record = decided(cluster, Priority, Gang)
        assert (binds(record), evicted(record), promises(record)) == ({}, [], {})
        assert phases(record) == {"high": "Running", "low": "Inqueue"}


def test_a_group_without_pods_is_admitted_where_no_other_action_admits() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    cluster.put_job(JobSpec("ns/empty", "default", namespace="ns", name="empty", min_member=2, dialect="volcano", phase="Pending"))
    assert phases(decided(cluster, Gang)) == {"empty": "Inqueue"}
    assert phases(decided(cluster, Gang, actions=("allocate", "enqueue")))["empty"] == "Inqueue"
    assert phases(decided(cluster, Gang, actions=("backfill",))) == {"empty": "Pending"}


def test_a_gang_that_a_later_turn_completes_is_bound_whole() -> None:
    """Three pods keep the nodes that they were promised. Node n1 is still being vacated, so the first turn binds nothing. The fourth
    pod makes the gang ready in the same cycle."""
    cluster = with_nodes(("n1", {"cpu": 2}), ("n2", {"cpu": 1}), ("n3", {"cpu": 1}))
    cluster.put_task(task("leaving", shape(cpu=2), node="n1", status=TaskStatus.RELEASING))
    add_job(cluster, "gang", [shape(cpu=1)] * 4, minimum=2)
    for number, node in enumerate(("n1", "n1", "n2")):
        pod = cluster.task(f"gang-{number}")
        assert pod is not None
        cluster.put_task(replace(pod, nominated_node=node))
    record = decided(cluster, Gang)
    assert binds(record) == {"gang-2": "n2", "gang-3": "n3"}
