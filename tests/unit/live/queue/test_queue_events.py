"""A change that frees capacity activates the jobs that wait for it, and no other change does: one change a test, no clock."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.live_core.cluster import POLICIES, CoreCluster

from navarch.apis.dialect import Settings
from navarch.engine.reasons import Event
from navarch.live.cache.object_changes import permits_more, same_object
from navarch.live.core import LiveCore
from navarch.live.queue.equivalence_classes import PROBE
from navarch.model.resources import requests_from
from navarch.model.spec import NamespaceSpec, NodeSpec, ObjectSpec, QueueSpec, QuotaSpec

ONE = {"cpu": "1"}


def world_of(policy: str, *, cpu: int = 4) -> CoreCluster:
    world = CoreCluster(policy)
    top = "dep" if policy == "kai" else ""
    if top:
        world.queue(top)
    world.queue("a", parent=top)
    world.node("n", cpu=cpu, memory="64Gi")
    return world


def by_team(rule: str) -> dict[str, Any]:
    """About pods `app: x` in namespaces of the team."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    term["namespaceSelector"] = {"matchLabels": {"team": "t"}}
    return {rule: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pod_resized_down_in_place_activates_waiting_jobs(policy: str) -> None:
    world = world_of(policy)
    world.pod("first", {"cpu": "4"}, queue="a")
    world.settle()
    for name in ("next-1", "next-2", "next-3"):
        world.pod(name, {"cpu": "2"}, queue="a")
    world.settle()
    world.resize("first", "2")
    world.settle()
    assert world.bound == ["first", "next-1"]


def test_a_pod_resized_up_in_place_activates_no_job() -> None:
    world = world_of("navarch")
    world.pod("first", {"cpu": "3"}, queue="a")
    world.settle()
    world.pod("second", {"cpu": "2"}, queue="a")
    world.settle()
    world.resize("first", "4")
    assert world.scheduling_queue.inactive() == ["ns/pod/second"]


@pytest.mark.parametrize("policy", POLICIES)
def test_namespace_affinity_holds_when_a_namespace_gains_its_label(policy: str) -> None:
    world = world_of(policy)
    world.cache.put(NamespaceSpec("ns"))
    world.pod("host", ONE, queue="a", labels={"app": "x"})
    world.pod("guest", ONE, queue="a", affinity=by_team("podAffinity"))
    world.settle()
    assert world.bound == ["host"]
    world.cache.put(NamespaceSpec("ns", labels={"team": "t"}))
    world.settle()
    assert world.bound == ["host", "guest"]


@pytest.mark.parametrize("policy", POLICIES)
def test_namespace_anti_affinity_ends_when_the_namespace_loses_its_label(policy: str) -> None:
    world = world_of(policy)
    world.cache.put(NamespaceSpec("ns", labels={"team": "t"}))
    world.pod("guard", ONE, queue="a", affinity=by_team("podAntiAffinity"))
    world.settle()
    world.pod("kept-away", ONE, queue="a", labels={"app": "x"})
    world.settle()
    assert world.bound == ["guard"]
    world.cache.put(NamespaceSpec("ns"))
    world.settle()
    assert world.bound == ["guard", "kept-away"]


def test_labels_of_namespaces_that_no_rule_reads_activate_no_job() -> None:
    world = world_of("navarch")
    world.pod("first", {"cpu": "4"}, queue="a")
    world.pod("second", ONE, queue="a")
    world.settle()
    world.cache.put(NamespaceSpec("ns", labels={"team": "t"}))
    assert world.scheduling_queue.inactive() == ["ns/pod/second"]


def test_a_nominated_place_that_is_given_up_goes_to_a_waiting_job() -> None:
    """Its nomination is taken back while the room on the node is free: the jobs that wait for that room become active."""
    world = world_of("kube-scheduler")
    world.pod("large", {"cpu": "4"})
    world.settle()
    world.pod("urgent", {"cpu": "4"}, priority="high")
    world.settle()
    assert list(world.leaving) == ["large"]
    world.pod("small", ONE)
    world.settle()
    assert "ns/pod/small" in world.scheduling_queue.inactive()
    world.cache.assumed.nominations.clear()
    world.cache.refresh("urgent")
    assert "ns/pod/small" not in world.scheduling_queue.inactive()


class Sleepers:
    """A cache and two inactive jobs: one waits for a change of a node, the other for one of a queue."""

    def __init__(self, settings: Settings) -> None:
        core = LiveCore(settings, lambda instruction: None)
        self.scheduling_queue, self.cache = core.queue, core.cache
        self.sleep()

    def sleep(self) -> None:
        for job, event in (("node", Event.NODE_CHANGED), ("queue", Event.QUEUE_CHANGED), ("quota", Event.QUOTA_CHANGED)):
            self.scheduling_queue.add_unschedulable(job, (event,), 1, 0.0)

    def woken(self) -> set[str]:
        found = {"node", "queue", "quota"} - set(self.scheduling_queue.inactive())
        self.sleep()
        return found


def test_events_of_other_node_pools_activate_no_job() -> None:
    """Each heartbeat of a node of another pool is shown here as well."""
    sleepers = Sleepers(Settings(node_pool_key="pool", node_pool="mine"))
    theirs = NodeSpec("n", labels={"pool": "theirs"}, allocatable=requests_from({"cpu": 1}))
    sleepers.cache.put(theirs)
    sleepers.cache.put(QueueSpec("q", labels={"pool": "theirs"}))
    assert sleepers.woken() == set()
    sleepers.cache.put(replace(theirs, labels={"pool": "mine"}))
    sleepers.cache.put(QueueSpec("q", labels={"pool": "mine"}))
    sleepers.sleep()
    sleepers.cache.put(theirs)
    assert sleepers.woken() == {"node"}
    sleepers.cache.put(QueueSpec("q", labels={"pool": "theirs"}))
    assert sleepers.woken() == {"queue"}


def test_a_queue_of_another_pool_does_not_take_one_away_that_needs_no_object() -> None:
    sleepers = Sleepers(Settings(node_pool_key="pool", node_pool="mine"))
    assert "default" in sleepers.cache.cluster.queues
    sleepers.cache.put(QueueSpec("default", labels={"pool": "theirs"}))
    assert "default" in sleepers.cache.cluster.queues


def test_a_namespace_that_is_a_queue_activates_its_jobs() -> None:
    sleepers = Sleepers(Settings(namespace_as_queue=True))
    sleepers.cache.put(NamespaceSpec("team"))
    assert sleepers.woken() == {"queue"}
    sleepers.cache.put(NamespaceSpec("team", annotations={"seen": "again"}))
    assert sleepers.woken() == set()


def test_a_raised_quota_activates_the_jobs_that_wait_for_it() -> None:
    sleepers = Sleepers(Settings())
    quota = QuotaSpec("ns", "q", hard=(("cpu", 4000), ("pods", 5)), used=(("cpu", 4000),))
    sleepers.cache.put(quota)
    sleepers.cache.put(replace(quota, used=(("cpu", 4000), ("pods", 1))))
    assert sleepers.woken() == set(), "more of it is used"
    sleepers.cache.put(quota)
    assert sleepers.woken() == {"quota"}
    sleepers.cache.remove(quota)
    assert sleepers.woken() == {"quota"}
    assert permits_more(quota, replace(quota, hard=(("cpu", 4001), ("pods", 1)))), "of one resource more, of another less"
    assert permits_more(quota, replace(quota, hard=(("pods", 5),))), "one is not limited any more"
    assert not permits_more(quota, replace(quota, hard=(*quota.hard, ("memory", 1))))


@pytest.mark.parametrize("kind", ["HyperNode", "Numatopology"])
def test_an_object_written_without_a_change_activates_no_job(kind: str) -> None:
    sleepers = Sleepers(Settings())

    def shown(version: str, **spec: str) -> None:
        value = {"kind": kind, "metadata": {"name": "o", "resourceVersion": version}, "spec": spec}
        sleepers.cache.put(ObjectSpec(kind, "", "o", value))

    shown("1", tier="1")
    assert sleepers.woken() == {"node"}
    shown("2", tier="1")
    assert sleepers.woken() == set()
    shown("3", tier="2")
    assert sleepers.woken() == {"node"}


def test_replica_sets_do_not_activate_jobs_that_wait_for_a_node() -> None:
    """One comes with each roll-out. Whose like a pod is may matter to a few, and they are tried a few at a time."""
    core = LiveCore(Settings(), lambda instruction: None)
    scheduling_queue, cache = core.queue, core.cache
    for number in range(100):
        scheduling_queue.add_unschedulable(
            f"j{number}", (Event.POD_REMOVED, Event.NODE_CHANGED), 1, 0.0, equivalence="alike", requests=(("cpu", 1000),)
        )
    value = {"kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "ns"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    cache.put(ObjectSpec("ReplicaSet", "ns", "r", value))
    assert len(scheduling_queue) == 100 - PROBE


def test_objects_are_told_apart_by_what_they_say() -> None:
    said = {"metadata": {"name": "o", "resourceVersion": "1"}, "spec": {"a": 1}}
    assert same_object(said, said | {"metadata": {"name": "o", "resourceVersion": "2"}})
    assert not same_object(said, said | {"metadata": {"name": "o", "annotations": {"b": "c"}}})
    assert not same_object(said, said | {"spec": {"a": 2}})
    assert not same_object(None, said)


@pytest.mark.parametrize("policy", ["navarch", "kai"])
def test_a_lowered_priority_of_a_group_lets_another_job_preempt_it(policy: str) -> None:
    world = world_of(policy)
    world.gang("old", "a", 2, priority_class="high")
    world.gang("new", "a", 1, priority_class="low")
    for member in range(2):
        world.pod(f"old-{member}", {"cpu": "2"}, group="old", queue="a", priority="low")
    world.settle()
    world.pod("new-0", {"cpu": "2"}, group="new", queue="a", priority="high")
    world.settle()
    assert world.scheduling_queue.inactive() == ["ns/new"]
    group = world.cache.group("ns/old")
    assert group is not None
    world.cache.put(replace(group, priority_class=""))
    world.settle()
    assert sorted(world.leaving) == ["old-0", "old-1"]


def test_a_pulled_image_activates_no_job() -> None:
    sleepers = Sleepers(Settings())
    node = NodeSpec("n", allocatable=requests_from({"cpu": 1}))
    sleepers.cache.put(node)
    pulled = replace(node, images=((("busybox",), 1),))
    sleepers.cache.put(pulled)
    assert sleepers.woken() == set()
    assert sleepers.cache.cluster.nodes.specs[0] == pulled
    sleepers.cache.put(replace(pulled, allocatable=requests_from({"cpu": 2})))
    assert sleepers.woken() == {"node"}
