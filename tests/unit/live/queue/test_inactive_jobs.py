"""What activates an inactive job, and what lets it keep what it had: one small cluster a test, no clock."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.live_core.cluster import POLICIES, CoreCluster

from navarch.engine.reasons import Event
from navarch.engine.record import Bind, CycleRecord, Eviction
from navarch.ingest.expected_duration import EXPECTED_DURATION
from navarch.live.commit import Unsupported
from navarch.live.queue.equivalence_classes import PROBE, UNCOUNTED, occupied_requests
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.model.resources import requests_from
from navarch.model.spec import ObjectSpec, QueueShare, Shape, TaskSpec

ONE = {"cpu": "1"}


def world_of(policy: str, *, cpu: int = 2, unsupported: Unsupported = lambda bind, task: "", **more: Any) -> CoreCluster:
    world = CoreCluster(policy, unsupported)
    top = "dep" if policy == "kai" else ""
    if top:
        world.queue(top)
    for name in "ab":
        world.queue(name, parent=top)
    world.node("n", cpu=cpu, memory="64Gi", **more)
    return world


def near(app: str) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize("policy", POLICIES)
def test_affinity_sees_a_pod_placed_later_in_the_same_cycle(policy: str) -> None:
    world = world_of(policy)
    world.pod("guest", ONE, queue="a", priority="high", affinity=near("host"))
    world.pod("host", ONE, queue="a", labels={"app": "host"})
    world.settle()
    assert world.bound == ["host", "guest"]


def test_a_gang_that_keeps_nodes_while_it_is_tried_does_not_lose_them_in_its_sleep() -> None:
    """kube-batch lets a gang that is not ready yet keep what it got: later jobs find it taken."""
    world = world_of("kube-batch", cpu=3)
    world.gang("gang", "a", 3, priority_class="high")
    for member in range(3):
        world.pod(f"gang-{member}", {"cpu": "2"} if member else ONE, group="gang")
    world.settle()
    world.now += 5
    world.pod("late", {"cpu": "2"}, queue="a")
    world.settle()
    assert world.bound == []
    assert world.scheduling_queue.inactive() == ["ns/pod/late"]


@pytest.mark.parametrize("policy", ["navarch", "volcano", "kai"])
def test_a_job_with_nominated_nodes_for_its_minimum_stays_active(policy: str) -> None:
    """An elastic gang whose minimum will fit when a pod has left is not passed over for the pods beyond it."""
    world = world_of(policy)
    world.pod("old", {"cpu": "2"}, queue="a")
    world.settle()
    world.terminate("old")
    world.gang("gang", "a", 2)
    for member in range(3):
        world.pod(f"gang-{member}", ONE, group="gang")
    world.settle()
    assert world.records[-1].jobs[0].pods == {"Pipelined": 2, "Pending": 1}
    assert world.scheduling_queue.inactive() == []


def test_a_gang_beyond_its_share_starts_when_others_ask_for_less() -> None:
    """Volcano's proportion refuses a gang that exceeds its share. Navarch's own policy is work-conserving and starts it at once."""
    world = world_of("volcano", cpu=4)
    world.gang("mine", "a", 3)
    world.gang("theirs", "b", 4)
    for member in range(3):
        world.pod(f"mine-{member}", ONE, group="mine")
    for member in range(4):
        world.pod(f"theirs-{member}", ONE, group="theirs")
    world.settle()
    assert world.bound == []
    for member in range(3):
        world.end(f"theirs-{member}")
    world.settle()
    assert sorted(world.bound) == ["mine-0", "mine-1", "mine-2"]


@pytest.mark.parametrize("policy", ["navarch", "volcano", "kai"])
def test_the_queue_share_of_a_leaving_pod_goes_to_the_next_job_at_once(policy: str) -> None:
    world = world_of(policy, cpu=8)
    limit = QueueShare(-1.0, 1000.0, 1.0)
    world.queue("a", parent="dep" if policy == "kai" else "", capability=requests_from(ONE), shares={"cpu": limit})
    world.pod("first", ONE, queue="a")
    world.pod("next", ONE, queue="a")
    world.settle()
    assert world.bound == ["first"]
    world.terminate("first")
    world.settle()
    assert world.bound == ["first", "next"]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_elastic_gang_that_lost_its_pods_is_not_taken_for_one_that_has_them(policy: str) -> None:
    world = world_of(policy, cpu=3)
    for name in ("g1", "g2", "g3"):
        world.gang(name, "a", 1)
        for member in range(2):
            world.pod(f"{name}-{member}", ONE, group=name)
    world.settle()
    if policy == "kube-scheduler":  # pods are placed as they are, whatever their gang
        assert sorted(world.running) == ["g1-0", "g1-1", "g2-0"]
        return
    assert sorted(world.running) == ["g1-0", "g2-0", "g3-0"]
    world.end("g3-0")
    world.settle()
    assert sorted(world.running) == ["g1-0", "g2-0", "g3-1"]


def test_a_queue_that_becomes_reclaimable_loses_a_pod_at_once() -> None:
    """Its own refusal speaks of room, and nothing in it of queues."""
    world = world_of("navarch", cpu=4)
    world.queue("b", reclaimable=False)
    for number in range(4):
        world.pod(f"b{number}", ONE, queue="b")
    world.settle()
    world.pod("mine", ONE, queue="a")
    world.settle()
    assert world.leaving == {}
    world.queue("b", reclaimable=True)
    world.settle()
    assert len(world.leaving) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_claim_activates_the_pods_that_name_it(policy: str) -> None:
    world = world_of(policy)
    world.pod("p", ONE, queue="a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    world.settle()
    assert world.scheduling_queue.inactive() == ["ns/pod/p"]
    modes, claim = ["ReadWriteOnce"], {"namespace": "ns", "name": "data", "uid": "u"}
    spec = {"accessModes": modes, "capacity": {"storage": "1"}, "claimRef": claim, "hostPath": {"path": "/d"}}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": spec, "status": {"phase": "Bound"}}
    world.cache.put(ObjectSpec("PersistentVolume", "", "disk", volume))
    meta = claim | {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec = {"accessModes": modes, "volumeName": "disk", "resources": {"requests": {"storage": "1"}}}
    made = {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {"phase": "Bound"}}
    world.cache.put(ObjectSpec("PersistentVolumeClaim", "ns", "data", made))
    world.settle()
    assert world.bound == ["p"]


def test_a_nominated_place_is_free_when_its_pod_is_deleted() -> None:
    world = world_of("kube-scheduler", cpu=3)
    world.pod("victim", {"cpu": "2"}, priority="low")
    world.settle()
    world.pod("strong", {"cpu": "3"}, priority="high")
    world.settle()
    world.pod("weak", ONE, priority="low")
    world.settle()
    assert list(world.leaving) == ["victim"]
    assert world.bound == ["victim"]
    world.end("strong")
    world.settle()
    assert world.bound == ["victim", "weak"]


def test_a_new_job_activates_the_oldest_equal_job() -> None:
    """Room that nothing told of: the first to look for it finds it, and that must not be the youngest."""
    world = world_of("navarch", cpu=1)
    for name in ("running", "elder", "young"):
        world.pod(name, ONE, queue="a")
        world.now += 1
    world.settle()
    assert world.bound == ["running"]
    world.cache.cluster.remove_task("running")
    world.now += 1
    world.pod("late", ONE, queue="a")
    world.settle()
    assert world.bound == ["running", "elder"]


def test_a_job_that_cannot_be_bound_here_is_held_and_leaves_the_capacity_to_others() -> None:
    def unsupported(bind: Bind, task: TaskSpec) -> str:
        return "no" if task.name == "odd" else ""

    world = world_of("kai", cpu=4, gpu=1, unsupported=unsupported)
    world.gang("odd", "a", 1, preemptable=True)
    world.pod("odd", ONE, group="odd", annotations={"gpu-fraction": "0.5"})
    world.now += 1
    world.pod("other", {"nvidia.com/gpu": "1"}, queue="a")
    world.settle()
    assert world.bound == ["other"]
    assert world.scheduling_queue.inactive() == ["ns/odd"]


def test_the_end_of_a_pod_with_anti_affinity_activates_more_jobs_than_its_requests_allow() -> None:
    asks = requests_from({"cpu": 1})
    for freed, woken in ((asks, 2), ((*asks, UNCOUNTED), PROBE), ((), 1)):
        scheduling_queue = SchedulingQueue()
        for number in range(100):
            scheduling_queue.add_unschedulable(
                f"ns/{number:02d}", (Event.POD_REMOVED,), 1, 0.0, equivalence="same", requests=asks, created=float(number)
            )
        assert scheduling_queue.activate_on(Event.POD_REMOVED, freed) == woken


def test_pending_pods_that_go_activate_one_job_of_a_class_per_cycle() -> None:
    world = world_of("navarch", cpu=1)
    for number in range(10):
        world.pod(f"p{number}", ONE, queue="a")
        world.pod(f"q{number}", ONE, queue="b", priority="low")
    world.settle()
    asleep = len(world.scheduling_queue)
    for number in range(1, 8):
        world.end(f"q{number}")
    assert asleep - len(world.scheduling_queue) == 7 + 2, "those that went, and one of each family"


def test_constraints_without_a_quantity_are_marked() -> None:
    assert occupied_requests(Shape(requests=requests_from({"cpu": 1}))) == requests_from({"cpu": 1})
    assert UNCOUNTED in occupied_requests(Shape(claims=(("gpu", "claim"),)))


def test_a_group_that_moves_or_goes_leaves_room_in_its_queue() -> None:
    for moves in (True, False):
        world = world_of("navarch", cpu=8)
        world.queue("a", capability=requests_from(ONE))
        world.gang("old", "a", 1)
        world.pod("old-0", ONE, group="old")
        world.now += 1
        world.gang("new", "a", 1)
        world.pod("new-0", ONE, group="new")
        world.settle()
        group = world.cache.group("ns/old")
        assert group is not None
        assert world.bound == ["old-0"]
        if moves:
            world.cache.put(replace(group, queue="b"))
        else:
            world.cache.remove(group)
        world.settle()
        assert world.bound == ["old-0", "new-0"]


def test_a_pod_whose_gate_is_lifted_is_tried_where_gangs_do_not_matter() -> None:
    world = world_of("kube-scheduler")
    world.gang("gang", "a", 3)
    world.pod("gang-0", ONE, group="gang", schedulingGates=[{"name": "g"}])
    world.settle()
    assert world.scheduling_queue.inactive() == ["ns/gang"]
    world.change("gang-0", schedulingGates=[])
    world.settle()
    assert world.bound == ["gang-0"]


def test_a_pod_that_is_given_a_place_and_taken_again_in_one_cycle_is_not_deleted_for_it() -> None:
    world = world_of("kai")
    world.pod("p", ONE, queue="a")
    record = CycleRecord()
    record.binds.append(Bind("ns/p", "n", "p", "ns/pod/p"))
    record.evictions.append(Eviction("ns/p", "n", "p", "ns/pod/p", "reclaim", "ns/other", "reclaim", ""))
    world.core.commit(record, 0.0)
    assert (world.bound, world.leaving) == ([], {})


@pytest.mark.parametrize(("policy", "started"), [("fifo", []), ("fifo-skip", ["small"])])
def test_a_queue_keeps_its_order_while_its_first_job_is_inactive(policy: str, started: list[str]) -> None:
    world = world_of(policy, cpu=2)
    world.pod("large", {"cpu": "4"}, queue="a")
    world.settle()
    assert world.scheduling_queue.inactive() == ["ns/pod/large"]
    world.now += 0.5
    world.pod("small", ONE, queue="a")
    world.settle()
    assert world.bound == started


@pytest.mark.parametrize("queue", ["a", "b"])
@pytest.mark.parametrize(("expected", "started"), [("2h", []), ("10m", ["late"])])
def test_a_promise_is_kept_while_the_job_that_has_it_is_inactive(queue: str, expected: str, started: list[str]) -> None:
    world = world_of("easy", cpu=4)
    for name, cpu, time in (("runs", "3", "1h"), ("large", "4", "1m")):
        world.gang(name, "a", 1, annotations={EXPECTED_DURATION: time})
        world.pod(f"{name}-0", {"cpu": cpu}, group=name)
        world.settle()
        world.now += 5
    assert (world.bound, world.scheduling_queue.inactive()) == (["runs-0"], ["ns/large"])
    world.gang("late", queue, 1, annotations={EXPECTED_DURATION: expected})
    world.pod("late-0", ONE, group="late")
    world.settle()
    assert world.bound[1:] == [f"{name}-0" for name in started]
    assert "Reserved" in world.codes["ns/large"]
