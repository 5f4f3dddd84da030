"""preempt: victims inside a queue, and no eviction in vain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, apply, binds, decided, evicted, promises, shape, task, with_nodes

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.record import CycleRecord
from navarch.engine.semantics import STRICT, Semantics
from navarch.model.cluster import Cluster
from navarch.model.resources import BoolArray, FloatArray
from navarch.model.spec import JobSpec, QueueSpec
from navarch.model.status import TaskStatus
from navarch.plugins.conformance import Conformance
from navarch.plugins.gang import Gang
from navarch.plugins.priority import Priority

BOTH = ("allocate", "preempt")
AWARE = {"preempt": {"enableTopologyAwarePreemption": True}}


def preempted(cluster: Cluster, *more: type[Plugin], semantics: Semantics = STRICT, **options: Any) -> CycleRecord:
    return decided(cluster, Priority, Gang, *more, actions=BOTH, semantics=semantics, **options)


def full(*, minimum: int = 1, nodes: int = 2) -> Cluster:
    cluster = with_nodes(*((chr(97 + i), {"cpu": 4}) for i in range(nodes)))
    for i in range(nodes):
        add_job(cluster, f"low-{chr(97 + i)}", [shape(cpu=2)] * 2, node=chr(97 + i), minimum=minimum)
    return cluster


def test_as_many_as_are_needed_go_and_the_preemptor_is_promised_their_place() -> None:
    cluster = full()
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    record = preempted(cluster)
    assert evicted(record) == ["low-a-1"]
    assert promises(record) == {"high-0": "a"}
    assert record.nominations[0].evicting
    (eviction,) = record.evictions
    assert (eviction.for_, eviction.reason, eviction.action) == ("ns/high", "preempt", "preempt")
    apply(cluster, record)
    assert binds(preempted(cluster)) == {"high-0": "a"}


@pytest.mark.parametrize("priority", [0, -1])
def test_equal_or_lower_priority_takes_nothing(priority: int) -> None:
    cluster = full()
    add_job(cluster, "wait", [shape(cpu=2)], priority=priority)
    assert evicted(preempted(cluster)) == []


def test_a_gang_at_its_minimum_keeps_all_its_pods() -> None:
    cluster = full(minimum=2)
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    assert evicted(preempted(cluster)) == []


def test_nothing_is_evicted_for_a_gang_that_still_could_not_start() -> None:
    cluster = full()
    add_job(cluster, "high", [shape(cpu=2)] * 3, priority=9)
    record = preempted(cluster)
    assert evicted(record) == []
    assert promises(record) == {}


def test_a_whole_gang_is_served_over_several_nodes() -> None:
    cluster = full()
    add_job(cluster, "high", [shape(cpu=2)] * 2, priority=9)
    record = preempted(cluster)
    assert evicted(record) == ["low-a-1", "low-b-1"]
    assert sorted(promises(record).values()) == ["a", "b"]


def test_only_the_own_queue_is_asked() -> None:
    cluster = full()
    cluster.put_queue(QueueSpec("other"))
    add_job(cluster, "high", [shape(cpu=2)], priority=9, queue="other")
    assert evicted(preempted(cluster)) == []


def test_pods_that_may_not_be_evicted_and_critical_ones_stay() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    add_job(cluster, "low", [shape(cpu=1)], node="a", minimum=0)
    cluster.put_task(task("firm", shape(cpu=1), "ns/low", "a", preemptable=False))
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    assert evicted(preempted(cluster)) == []
    spec = cluster.task("low-0")
    assert spec is not None
    cluster.put_task(replace(spec, priority_class="system-node-critical"))
    add_job(cluster, "small", [shape(cpu=1)], priority=9)
    assert evicted(preempted(cluster, Conformance)) == []
    assert evicted(preempted(cluster)) == ["low-0"]


def test_idle_resources_reduce_the_victims() -> None:
    cluster = with_nodes(("a", {"cpu": 4}))
    add_job(cluster, "low", [shape(cpu=2)], node="a", minimum=0)
    add_job(cluster, "high", [shape(cpu=3)], priority=9)
    assert evicted(preempted(cluster)) == ["low-0"]


def test_victims_that_are_not_needed_stay() -> None:
    cluster = with_nodes(("a", {"cpu": 4}))
    add_job(cluster, "low", [shape(cpu=3), shape(cpu=1)], node="a", minimum=0)
    add_job(cluster, "high", [shape(cpu=3)], priority=9)
    assert evicted(preempted(cluster)) == ["low-0"], "the last goes first, but the large one alone is enough"
    assert evicted(preempted(cluster, semantics=Semantics(victims_are_minimal=False))) == ["low-0", "low-1"]


def test_a_pod_without_requests_takes_only_the_place_of_its_like() -> None:
    cluster = with_nodes(("a", {"cpu": 4, "pods": 2}))
    add_job(cluster, "low", [shape(cpu=1)], node="a", minimum=0)
    add_job(cluster, "lean", [shape()], node="a", minimum=0)
    add_job(cluster, "high", [shape()], priority=9)
    assert evicted(preempted(cluster)) == ["lean-0"]


def test_inside_a_job_better_tasks_take_the_place_of_worse_ones() -> None:
    cluster = with_nodes(("a", {"cpu": 2}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=1, phase="Running"))
    for number in range(2):
        cluster.put_task(task(f"old{number}", shape(cpu=1), "ns/j", "a", priority=1))
    cluster.put_task(task("new", shape(cpu=1), "ns/j", priority=5))
    record = preempted(cluster)
    assert evicted(record) == []
    assert evicted(decided(cluster, Priority, actions=BOTH)) == ["old1"]


def test_a_job_that_has_its_minimum_is_not_starving() -> None:
    cluster = with_nodes(("a", {"cpu": 3}))
    add_job(cluster, "low", [shape(cpu=1)], node="a", minimum=0)
    cluster.put_job(JobSpec("ns/high", "default", min_member=1, priority=9, phase="Running"))
    cluster.put_task(task("runs", shape(cpu=2), "ns/high", "a"))
    cluster.put_task(task("more", shape(cpu=1), "ns/high"))
    assert evicted(preempted(cluster)) == []


def test_a_promised_pod_does_not_evict_twice() -> None:
    cluster = full()
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    record = preempted(cluster)
    for uid in evicted(record):
        spec = cluster.task(uid)
        assert spec is not None
        cluster.put_task(replace(spec, status=TaskStatus.RELEASING, deleting=True, disruption_target=True))
    spec = cluster.task("high-0")
    assert spec is not None
    cluster.put_task(replace(spec, nominated_node="a"))
    again = preempted(cluster)
    assert evicted(again) == []
    assert promises(again) == {"high-0": "a"}


class OnlyEvens(NodeFilter):
    name = "evens"
    scope = Scope.STATIC

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        odd: BoolArray = np.arange(at.allocatable.shape[1]) % 2 == 1
        return odd

    def explain(self, task: TaskClass, at: Figures) -> list[Refusal]:
        return [Refusal("odd", ~self.mask(task, at), unresolvable=True)]


class NotA(Plugin):
    name = "not-a"

    def node_filters(self) -> list[NodeFilter]:
        return [OnlyEvens()]


def test_nodes_that_no_eviction_could_help_are_not_looked_at() -> None:
    cluster = full()
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    record = preempted(cluster, NotA)
    assert promises(record) == {"high-0": "b"}


class PreferLast(NodeScorer):
    name = "last"
    scope = Scope.ROW

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        return np.arange(at.allocatable.shape[1], dtype=np.float64) if isinstance(at.rows, slice) else at.rows.astype(np.float64)


class Last(Plugin):
    name = "last"

    def node_scorers(self) -> list[NodeScorer]:
        return [PreferLast()]


def test_the_best_node_is_asked_first() -> None:
    cluster = full(nodes=3)
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    assert promises(preempted(cluster, Last)) == {"high-0": "c"}


# topology-aware: the node whose victims cost least


def graded(*priorities: int) -> Cluster:
    cluster = with_nodes(*((chr(97 + i), {"cpu": 2}) for i in range(len(priorities))))
    for i, priority in enumerate(priorities):
        add_job(cluster, f"job{i}", [shape(cpu=2)], node=chr(97 + i), minimum=0, priority=priority)
    add_job(cluster, "high", [shape(cpu=2)], priority=99)
    return cluster


def aware(cluster: Cluster, **more: int) -> CycleRecord:
    configuration = {"preempt": {**AWARE["preempt"], "minCandidateNodesPercentage": 100, **more}}
    return preempted(cluster, configurations=configuration)


def test_the_lowest_victim_goes_wherever_it_stands() -> None:
    assert evicted(aware(graded(5, 3, 1, 4))) == ["job2-0"]
    assert evicted(preempted(graded(5, 3, 1, 4))) == ["job0-0"], "without it nodes go by score and name"


def test_fewer_victims_are_better_at_equal_priority() -> None:
    cluster = with_nodes(("a", {"cpu": 2}), ("b", {"cpu": 2}))
    add_job(cluster, "pair", [shape(cpu=1)] * 2, node="a", minimum=0)
    add_job(cluster, "one", [shape(cpu=2)], node="b", minimum=0)
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    assert evicted(aware(cluster)) == ["one-0"]


def test_among_equals_the_one_that_started_last_goes() -> None:
    cluster = graded(1, 1, 1)
    for number, started in enumerate((5.0, 50.0, 20.0)):
        spec = cluster.task(f"job{number}-0")
        assert spec is not None
        cluster.put_task(replace(spec, started=started))
    assert evicted(aware(cluster)) == ["job1-0"]


def test_only_so_many_nodes_are_tried() -> None:
    assert evicted(aware(graded(5, 3, 1, 4), minCandidateNodesPercentage=50)) == ["job1-0"]
    assert evicted(aware(graded(5, 3, 1, 4), maxCandidateNodesAbsolute=1)) == ["job0-0"]


def test_unneeded_victims_are_spared_and_nothing_is_left_where_it_does_not_fit() -> None:
    cluster = with_nodes(("a", {"cpu": 4}))
    add_job(cluster, "low", [shape(cpu=3), shape(cpu=1)], node="a", minimum=0)
    add_job(cluster, "high", [shape(cpu=3)], priority=9)
    assert evicted(aware(cluster)) == ["low-0"]
    add_job(cluster, "giant", [shape(cpu=5)], priority=99)
    record = aware(cluster)
    assert "giant-0" not in promises(record)


class Nobody(Plugin):
    name = "nobody"

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        return []


def test_a_refusal_of_any_plugin_is_final() -> None:
    cluster = full()
    add_job(cluster, "high", [shape(cpu=2)], priority=9)
    assert evicted(preempted(cluster, Nobody)) == []
    assert evicted(decided(cluster, actions=BOTH)) == [], "no plugin offers a victim, so none is evicted"
