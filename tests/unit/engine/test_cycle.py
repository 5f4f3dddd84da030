"""One cycle as a function: nothing but its arguments counts, whatever the cluster looks like."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import (
    ACTIONS,
    add_job,
    apply,
    binds,
    decided,
    evicted,
    phases,
    policy,
    promises,
    shape,
    task,
    with_nodes,
)

from navarch.engine.cycle import decide
from navarch.engine.job import Job
from navarch.engine.placement.class_view import ClassView
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Vote
from navarch.engine.policy import preset
from navarch.engine.reasons import Reason
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang
from navarch.plugins.priority import Priority

PRESETS = ("navarch", "volcano", "kube-batch", "kai", "kube-scheduler")


def by_preset(cluster: Cluster, name: str) -> CycleRecord:
    policy = preset(name, installed().catalogue())
    return decide(cluster.snapshot(policy.semantics.node_order), policy, installed(), now=1000.0)


def empty() -> Cluster:
    return Cluster()


def no_nodes() -> Cluster:
    cluster = with_nodes()
    add_job(cluster, "j", [shape(cpu=1), shape()])
    return cluster


def nodes_of_nothing() -> Cluster:
    cluster = with_nodes(("n", {"pods": 0}))
    cluster.put_node(NodeSpec("bare"))
    add_job(cluster, "j", [shape(cpu=1), shape()])
    return cluster


def groups_without_pods() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 1}))
    cluster.put_job(JobSpec("ns/zero", "default", min_member=0))
    cluster.put_job(JobSpec("ns/many", "default", min_member=5))
    return cluster


def minimum_above_pods() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 4}))
    add_job(cluster, "j", [shape(cpu=1)] * 2, minimum=3)
    return cluster


def overcommitted() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 1, "pods": 1}))
    add_job(cluster, "fat", [shape(cpu=4)] * 3, node="n")
    add_job(cluster, "j", [shape(cpu=1), shape()])
    return cluster


def vanished_node() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 4}), ("gone", {"cpu": 4}))
    add_job(cluster, "lost", [shape(cpu=2)] * 2, node="gone", priority=0)
    add_job(cluster, "run", [shape(cpu=2)] * 2, node="n", minimum=1)
    add_job(cluster, "j", [shape(cpu=2)] * 2, priority=10)
    cluster.remove_node("gone")
    return cluster


def deleted_queue() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 4}))
    cluster.put_queue(QueueSpec("q"))
    add_job(cluster, "run", [shape(cpu=2)], node="n", queue="q")
    add_job(cluster, "wait", [shape(cpu=2)], queue="q")
    add_job(cluster, "j", [shape(cpu=4)], priority=10)
    cluster.remove_queue("q")
    return cluster


def pods_without_groups() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 4}))
    cluster.put_task(task("a", shape(cpu=1), "ns/never"))
    cluster.put_task(task("b", shape(cpu=1), node="n"))
    cluster.put_task(task("c", shape(cpu=1)))
    add_job(cluster, "j", [shape(cpu=4)], priority=10)
    return cluster


def every_status() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=2, phase="Running"))
    for status in TaskStatus:
        if status not in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED):
            for node in ("n", "", "unknown"):
                cluster.put_task(task(f"{status.name}-{node}", shape(cpu=1), "ns/j", node, status=status))
    return cluster


def absurd() -> Cluster:
    most = (1 << 63) - 1
    cluster = with_nodes(("n", {"cpu": 4}))
    cluster.put_node(NodeSpec("huge", allocatable=(("cpu", most), ("memory", most), ("pods", most))))
    requests = (("cpu", most), ("memory", most), ("example.com/x", most))
    add_job(cluster, "absurd", [replace(shape(), requests=requests)] * 3)
    cluster.put_queue(QueueSpec("q", capability=requests, deserved=requests, guarantee=requests, weight=2147483647))
    add_job(cluster, "j", [shape(cpu=1)], queue="q", priority=2147483647)
    return cluster


def strange_queues() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 4}))
    cluster.put_queue(QueueSpec("a", parent="b", weight=0))
    cluster.put_queue(QueueSpec("b", parent="a", state="Closed"))
    cluster.put_queue(QueueSpec("c", parent="nobody", capability=(), deserved=(("cpu", 0),)))
    for name in ("a", "b", "c"):
        add_job(cluster, f"j{name}", [shape(cpu=1)], queue=name)
    return cluster


WORLDS = [
    empty, no_nodes, nodes_of_nothing, groups_without_pods, minimum_above_pods, overcommitted, vanished_node, deleted_queue,
    pods_without_groups, every_status, absurd, strange_queues,
]  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_a_cycle_leaves_nothing_large_to_the_garbage_collector(name: str) -> None:
    def alive() -> list[object]:
        return [each for each in gc.get_objects() if isinstance(each, Snapshot | ClassView | Plugin)]

    cluster = every_status()
    before = alive()  # kept, so that what other tests left cannot go meanwhile
    gc.disable()
    try:
        by_preset(cluster, name)
        known = {id(each) for each in before}
        assert [each for each in alive() if id(each) not in known] == []
    finally:
        gc.enable()


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("world", WORLDS)
def test_random_clusters_are_decided_deterministically(world: Callable[[], Cluster], name: str) -> None:
    first, second = by_preset(world(), name), by_preset(world(), name)
    assert replace(first, timings={}) == replace(second, timings={})
    names = {spec.name for spec in world().snapshot().nodes.specs}
    assert {b.node for b in first.binds} | {e.node for e in first.evictions} | {n.node for n in first.nominations} <= names


def test_no_nodes_is_a_reason_to_wait() -> None:
    record = decided(no_nodes(), Gang)
    assert not record.binds
    assert phases(record) == {"j": "Inqueue"}


def test_pods_of_a_vanished_node_are_never_evicted_for_room_elsewhere() -> None:
    record = decided(vanished_node(), Priority, Gang, actions=("allocate", "preempt"))
    assert not {"lost-0", "lost-1"} & set(evicted(record))


def test_actions_run_in_the_order_of_the_policy_and_unknown_ones_do_not() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "j", [shape(cpu=1)])
    record = decided(cluster, Gang, actions=("backfill", "sleep", "allocate"))
    timed = [key for key in record.timings if key in ("backfill", "sleep", "allocate")]
    assert timed == ["backfill", "allocate"]
    assert binds(record) == {"j-0": "n"}


def test_a_decided_cluster_stays_decided() -> None:
    cluster = with_nodes(("a", {"cpu": 4}), ("b", {"cpu": 4}))
    add_job(cluster, "low", [shape(cpu=2)] * 4, node="a", minimum=1)
    add_job(cluster, "high", [shape(cpu=2)] * 3, priority=10)
    add_job(cluster, "huge", [shape(cpu=3)] * 9, priority=20)
    for _ in range(4):
        record = decided(cluster, Priority, Gang, actions=("allocate", "preempt"))
        apply(cluster, record)
    before = cluster.snapshot()
    for _ in range(5):
        record = decided(cluster, Priority, Gang, actions=("allocate", "preempt"))
        assert (record.binds, record.evictions) == ([], [])
        assert promises(record) == {}
        apply(cluster, record)
    assert (cluster.snapshot().nodes.used == before.nodes.used).all()


class AdmitsNone(Plugin):
    """Admits jobs only beyond the shares of queues"""

    name = "admits-none"

    def job_enqueueable(self, job: Job) -> Vote | Reason:
        return Vote.PERMIT if self.session.beyond_shares else Reason("Full", "the shares are used up")


def test_a_job_that_enqueue_refused_is_not_admitted_where_the_cycle_is_cut_before_its_turn() -> None:
    cluster = with_nodes(("n", {"cpu": 4}))
    for number in range(2):
        job = add_job(cluster, f"j{number}", [shape(cpu=1 + number)])
        cluster.put_job(replace(job, phase="Pending", min_resources=requests_from({"cpu": 1})))
    rules, registry = policy("gang", "admits-none", actions=("enqueue", "allocate")), Registry([Gang, AdmitsNone], ACTIONS)
    whole = decide(cluster.snapshot(), rules, registry, 0.0)
    assert {job.phase for job in whole.jobs} == {"Inqueue"}
    cut = decide(cluster.snapshot(), rules, registry, 0.0, steps=1)
    assert cut.cut
    assert cut.jobs == []
