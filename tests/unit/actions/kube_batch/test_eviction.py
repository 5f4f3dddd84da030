"""preempt and reclaim as kube-batch has them: victims alone cover the request."""

from __future__ import annotations

from tests.worlds.small_cluster import add_job, evicted, promises, shape, task, with_nodes

from navarch.actions.kube_batch.eviction import KubeBatchPreempt, KubeBatchReclaim
from navarch.engine.cycle import decide
from navarch.engine.plugin import Plugin
from navarch.engine.policy.compat import COMPAT
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, QueueSpec
from navarch.model.status import TaskStatus
from navarch.plugins.conformance import Conformance
from navarch.plugins.gang import KubeBatchGang
from navarch.plugins.kube_batch.proportion import KubeBatchProportion
from navarch.plugins.priority import KubeBatchPriority


def decided(cluster: Cluster, action: str, *tiers: list[type[Plugin]]) -> CycleRecord:
    options = tuple(tuple(PluginOption(kind.name) for kind in tier) for tier in tiers)
    policy = Policy((action,), options, compat="kube-batch", dialect="kube-batch", semantics=COMPAT["kube-batch"])
    registry = Registry([kind for tier in tiers for kind in tier], [KubeBatchPreempt, KubeBatchReclaim])
    return decide(cluster.snapshot("listed"), policy, registry, 0.0)


def preempted(cluster: Cluster) -> CycleRecord:
    return decided(cluster, "preempt", [KubeBatchPriority, KubeBatchGang, Conformance])


def test_idle_resources_do_not_reduce_the_victims() -> None:
    cluster = with_nodes(("a", {"cpu": 4}))
    add_job(cluster, "low", [shape(cpu=2)], node="a", minimum=1)
    add_job(cluster, "high", [shape(cpu=3)], priority=9)
    assert evicted(preempted(cluster)) == []
    add_job(cluster, "low2", [shape(cpu=2)], node="a", minimum=1)
    assert evicted(preempted(cluster)) == ["low-0", "low2-0"]


def test_bound_pods_are_not_victims() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    cluster.put_job(JobSpec("ns/low", "default", min_member=1))
    cluster.put_task(task("low", shape(cpu=2), "ns/low", "a", status=TaskStatus.BOUND))
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    assert evicted(preempted(cluster)) == []


def test_victims_go_in_the_reverse_order_of_tasks_whatever_their_job() -> None:
    cluster = with_nodes(("a", {"cpu": 3}))
    add_job(cluster, "one", [shape(cpu=1)], node="a", minimum=1, priority=3, created=9.0)
    add_job(cluster, "two", [shape(cpu=1)] * 2, node="a", minimum=1, priority=3, created=5.0)
    add_job(cluster, "high", [shape(cpu=1)], priority=9)
    assert evicted(preempted(cluster)) == ["two-1"], "the highest number goes first, then the youngest"


def test_a_gang_that_would_not_be_ready_evicts_nothing() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    add_job(cluster, "low", [shape(cpu=1)] * 2, node="a", minimum=1)
    add_job(cluster, "high", [shape(cpu=1)] * 3, priority=9)
    assert evicted(preempted(cluster)) == []


def test_inside_a_job_tasks_that_the_first_phase_left_take_the_place_of_others() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=1))
    for number in range(2):
        cluster.put_task(task(f"old{number}", shape(cpu=1), "ns/j", "a", priority=number))
    cluster.put_task(task("asked", shape(cpu=2), "ns/j", created=1.0))
    cluster.put_task(task("left", shape(cpu=1), "ns/j", created=2.0))
    record = decided(cluster, "preempt", [KubeBatchGang])
    assert evicted(record) == ["old1"]
    assert promises(record) == {"left": "a"}, "the first phase asked for one task only: the job has its minimum"


def test_a_pod_without_requests_evicts_nothing_and_is_promised_the_node() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    add_job(cluster, "low", [shape(cpu=2)], node="a", minimum=1)
    add_job(cluster, "high", [shape()], priority=9)
    record = preempted(cluster)
    assert evicted(record) == []
    assert promises(record) == {"high-0": "a"}


def borrowed() -> Cluster:
    cluster = with_nodes(("a", {"cpu": 8, "memory": "8Gi"}))
    cluster.put_queue(QueueSpec("mine"))
    cluster.put_queue(QueueSpec("theirs"))
    add_job(cluster, "run", [shape(cpu=2, memory="2Gi")] * 4, node="a", queue="theirs", minimum=1)
    add_job(cluster, "want", [shape(cpu=2, memory="2Gi")] * 3, queue="mine", minimum=1)
    return cluster


def test_reclaim_serves_one_task_of_a_job() -> None:
    record = decided(borrowed(), "reclaim", [KubeBatchGang, KubeBatchProportion])
    assert len(evicted(record)) == 1
    assert list(promises(record)) == ["want-0"]


def test_each_job_of_the_queue_gets_its_turn_while_the_queue_is_below_its_due() -> None:
    cluster = borrowed()
    for number in range(3):
        add_job(cluster, f"more{number}", [shape(cpu=2, memory="2Gi")], queue="mine", created=1.0 + number)
    record = decided(cluster, "reclaim", [KubeBatchGang, KubeBatchProportion])
    assert len(evicted(record)) == 2
    assert sorted(promises(record)) == ["more0-0", "want-0"]


def test_where_proportion_stands_in_a_later_tier_only_the_gang_is_asked() -> None:
    cluster = borrowed()
    cluster.put_queue(QueueSpec("theirs", weight=9))
    together = decided(cluster, "reclaim", [KubeBatchGang, KubeBatchProportion])
    apart = decided(cluster, "reclaim", [KubeBatchGang], [KubeBatchProportion])
    assert (len(evicted(together)), len(evicted(apart))) == (0, 1)


def test_a_queue_whose_first_job_gets_nothing_has_had_its_turn() -> None:
    cluster = borrowed()
    add_job(cluster, "giant", [shape(cpu=9, memory="2Gi")], queue="mine", priority=9)
    record = decided(cluster, "reclaim", [KubeBatchPriority, KubeBatchGang, KubeBatchProportion])
    assert evicted(record) == []
