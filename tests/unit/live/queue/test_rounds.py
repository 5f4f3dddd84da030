"""Which waiting jobs a live cycle is given, and when each has its turn."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.live_core.cluster import CoreCluster
from tests.worlds.small_cluster import add_job, apply, shape, with_nodes

from navarch.engine.policy import preset
from navarch.installed import installed
from navarch.live.cycle import leave_out, run_cycle
from navarch.live.queue import rounds as rounds_module
from navarch.live.queue.rounds import Rounds
from navarch.model.cluster import Cluster
from navarch.model.spec import QueueSpec
from navarch.model.status import TaskStatus

REGISTRY = installed()


def cluster_of(*queues: str) -> Cluster:
    cluster = with_nodes(("a", {"cpu": 1000}))
    for queue in queues:
        cluster.put_queue(QueueSpec(queue, state="Open"))
    return cluster


def backlog() -> Cluster:
    """Six jobs of unlike size in each of two queues, the last one first."""
    cluster = cluster_of("q1", "q2")
    for queue in ("q1", "q2"):
        for number in range(6):
            add_job(cluster, f"{queue}-{number}", [shape(cpu=1 + number)], queue=queue, created=10.0 - number)
    return cluster


def given(cluster: Cluster, rounds: Rounds, *, in_order: bool = False) -> list[str]:
    """The jobs that the next cycle would try, without their namespace."""
    snapshot = cluster.snapshot()
    later = {cluster.jobs.keys[row] for row in rounds.leave_out(snapshot, in_order=in_order)}
    return sorted(key.partition("/")[2] for key in cluster.jobs.rows.of if key not in later)


def test_a_short_backlog_is_given_whole() -> None:
    assert len(given(backlog(), Rounds())) == 12


def test_the_queues_take_turns_and_the_oldest_of_each_comes_first() -> None:
    assert given(backlog(), Rounds(4.0)) == ["q1-4", "q1-5", "q2-4", "q2-5"]


def test_a_gang_is_given_whole() -> None:
    cluster = backlog()
    add_job(cluster, "gang", [shape(cpu=9)] * 80, queue="q1", created=1.0)
    assert given(cluster, Rounds(3.0)) == ["gang"]


def test_a_group_of_higher_priority_comes_first_whatever_its_pods_say() -> None:
    cluster = backlog()
    job = cluster.jobs.specs[cluster.jobs.rows.of["ns/q1-0"]]
    assert job is not None
    cluster.put_job(replace(job, priority=1000))
    assert given(cluster, Rounds(2.0)) == ["q1-0", "q2-5"]


def test_a_namespace_does_not_wait_behind_the_crowd_of_another() -> None:
    cluster = backlog()
    add_job(cluster, "late", [shape(cpu=77)], queue="q1", created=99.0, namespace="other")
    assert "late" in given(cluster, Rounds(3.0))
    assert "late" not in given(cluster, Rounds(3.0), in_order=True), "the policy keeps the order of the queue"


def test_a_job_of_higher_priority_does_not_wait_for_the_turns_of_other_namespaces() -> None:
    cluster = cluster_of("q1")
    for number in range(6):
        add_job(cluster, f"low-{number}", [shape(cpu=1 + number)], queue="q1", created=float(number), namespace=f"ns-{number}")
    for number in range(2):
        add_job(cluster, f"high-{number}", [shape(cpu=10 + number)], queue="q1", priority=9, created=50.0, namespace="ns-0")
    assert given(cluster, Rounds(3.0)) == ["high-0", "high-1", "low-0"]


def test_a_queue_of_many_namespaces_has_no_more_turns_than_another() -> None:
    cluster = cluster_of("q1", "q2")
    for number in range(6):
        add_job(cluster, f"many-{number}", [shape(cpu=1 + number)], queue="q1", created=float(number), namespace=f"ns-{number}")
        add_job(cluster, f"one-{number}", [shape(cpu=1 + number)], queue="q2", created=50.0 + number, namespace="ns-0")
    assert given(cluster, Rounds(4.0)) == ["many-0", "many-1", "one-0", "one-1"]


def test_a_cut_cycle_is_followed_by_one_with_half_as_many_jobs_down_to_one() -> None:
    cluster, rounds, counts = backlog(), Rounds(8.0), []
    for _ in range(5):
        counts.append(len(given(cluster, rounds)))
        rounds.end(cut=True)
    assert counts[-1] == 1
    assert counts == sorted(counts, reverse=True)


def test_every_job_has_its_turn_in_a_round_however_often_events_bring_all_back() -> None:
    cluster, rounds, seen = backlog(), Rounds(3.0), list[str]()
    for _ in range(5):
        seen += given(cluster, rounds)
        rounds.end(cut=False)
    assert set(seen) == set(given(cluster, Rounds())), "nobody is tried twice before all were tried once"
    first = seen[: len(set(seen))]
    assert len(set(first)) == len(first)


def test_a_job_with_pods_on_nodes_stays_and_asks_for_nothing() -> None:
    cluster = backlog()
    add_job(cluster, "grows", [shape(cpu=50), shape(cpu=51)], queue="q1", created=50.0)
    held = next(spec for spec in cluster.tasks.specs if spec is not None and spec.job == "ns/grows")
    cluster.put_task(replace(held, node="a", status=TaskStatus.RUNNING))
    snapshot = cluster.snapshot()
    rows = Rounds(2.0).leave_out(snapshot, in_order=True)
    leave_out(snapshot, rows)
    row = cluster.jobs.rows.of["ns/grows"]
    assert row in rows
    assert snapshot.jobs.specs[row] is not None
    assert not snapshot.jobs.marks.waiting[row]
    assert cluster.snapshot(instead_of=snapshot).jobs.marks.waiting[row], "the next cycle may try it"


def test_successive_cycles_reach_every_job() -> None:
    cluster, rounds, bound = backlog(), Rounds(2.0), list[str]()
    policy = preset("navarch", REGISTRY.catalogue())
    more = True
    while more:
        cycle = run_cycle(cluster, policy, REGISTRY, 100.0, 1, "c", rounds=rounds)
        rounds.end(cut=cycle.record.cut)
        more = cycle.more
        for bind in cycle.record.binds:
            bound.append(bind.job)
            cluster.remove_task(bind.uid)
            cluster.remove_job(bind.job)
    assert len(bound) == len(set(bound)) == 12


def test_a_job_that_uses_up_the_steps_of_a_cycle_by_itself_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allocate uses them up, so a cut cycle would end before the job had its turn in the actions that evict."""
    monkeypatch.setattr(rounds_module, "STEPS", 60)
    world = CoreCluster("navarch")
    world.queue("q")
    for number in range(100):
        world.node(f"n{number}", cpu=4)
    world.gang("never", "q", 61)
    for number in range(61):
        world.pod(f"never-{number}", {"cpu": f"{2000 + number}m" if number else "5"}, group="never")
    small = {f"small-{number}": f"{100 + number}m" for number in range(10)}
    for name, cpu in (small | {"none": "6"}).items():
        world.now += 1
        world.gang(name, "q", 1)
        world.pod(name, {"cpu": cpu}, group=name)
    for _ in range(12):
        world.cycle()
    assert set(world.bound) == set(small)
    assert world.codes["ns/never"] and world.codes["ns/none"]


def test_room_that_was_made_for_a_job_is_not_given_to_those_whose_turn_it_is() -> None:
    cluster = with_nodes(("a", {"cpu": 4}))
    add_job(cluster, "low", [shape(cpu=4)], node="a")
    add_job(cluster, "high", [shape(cpu=4)], priority=100, created=1.0)
    for number in range(10):
        add_job(cluster, f"crowd-{number}", [shape(cpu=f"{1000 + number}m")], priority=1, created=2.0 + number)
    policy, rounds = preset("navarch", REGISTRY.catalogue()), Rounds(4.0)
    first = run_cycle(cluster, policy, REGISTRY, 100.0, 1, "c", rounds=rounds).record
    rounds.end(cut=False)
    assert [eviction.uid for eviction in first.evictions] == ["low-0"]
    apply(cluster, first)
    cluster.remove_task("low-0")
    second = run_cycle(cluster, policy, REGISTRY, 101.0, 2, "c", rounds=rounds).record
    assert [bind.job for bind in second.binds] == ["ns/high"]


@pytest.mark.parametrize("name", ["navarch", "volcano", "kube-scheduler"])
def test_pods_of_a_job_that_sits_out_are_told_nothing_and_start_no_further_cycle_once_all_were_tried(name: str) -> None:
    cluster, policy, rounds, more = with_nodes(("a", {"cpu": 12})), preset(name, REGISTRY.catalogue()), Rounds(4.0), list[bool]()
    for number in range(12):
        add_job(cluster, f"grows-{number}", [shape(cpu=1), shape(cpu=f"{1000 + number}m")], minimum=1, created=float(number))
        held = cluster.task(f"grows-{number}-0")
        assert held is not None
        cluster.put_task(replace(held, node="a", status=TaskStatus.RUNNING))
    tried = list[str]()
    for number in range(3):
        cycle = run_cycle(cluster, policy, REGISTRY, 100.0, number, "c", rounds=rounds)
        rounds.end(cut=cycle.record.cut)
        more.append(cycle.more)
        assert len(cycle.snapshot.jobs.sitting_out) == 8
        assert {refusal.reason for decision in cycle.record.jobs for refusal in decision.refusals} == {"Unschedulable"}
        tried += [decision.job for decision in cycle.record.jobs if decision.refusals]
    assert len(tried) == len(set(tried)) == 12
    assert more == [True, True, False]


def test_under_a_policy_that_promises_room_the_first_job_of_a_queue_is_always_there_and_the_others_have_rounds() -> None:
    cluster, rounds, seen = backlog(), Rounds(4.0), set[str]()
    for _ in range(6):
        snapshot = cluster.snapshot()
        later = {cluster.jobs.keys[row] for row in rounds.leave_out(snapshot, promises=True)}
        now = {key.partition("/")[2] for key in cluster.jobs.rows.of if key not in later}
        assert {"q1-5", "q2-5"} <= now
        seen |= now
        rounds.end(cut=False)
    assert len(seen) == 12


def test_a_policy_that_keeps_the_order_asks_for_no_further_cycle_over_the_same_jobs() -> None:
    cluster, rounds = backlog(), Rounds(4.0)
    given(cluster, rounds, in_order=True)
    assert rounds.more
    rounds.end(cut=False)
    given(cluster, rounds, in_order=True)
    assert not rounds.more
