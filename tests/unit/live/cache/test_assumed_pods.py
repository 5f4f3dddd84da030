"""Decisions count at once and yield to the truth."""

from __future__ import annotations

from msgspec.structs import replace

from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods, AssumedStatus
from navarch.model.spec import Condition, JobSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

PENDING = TaskSpec("u1", "default", "a", Shape())
BOUND = replace(PENDING, node="n1", status=TaskStatus.BOUND)
GROUP = JobSpec("default/g", "default", uid="g1", phase="Pending")


def bind(node: str = "n1") -> AssumedBind:
    return AssumedBind("u1", "default", "a", node, "default/pod/a", 0.0)


def test_a_bind_stands_until_the_watch_shows_it() -> None:
    assumed = AssumedPods()
    assumed.binds["u1"] = bind()
    assumed.observe(PENDING)
    assert (assumed.as_decided(PENDING).node, assumed.as_decided(PENDING).status) == ("n1", TaskStatus.BINDING)
    assumed.observe(BOUND)
    assert assumed.binds == {}
    assert assumed.as_decided(BOUND) == BOUND


def test_predicted_numa_zones_last_until_the_watch_shows_the_pod() -> None:
    zones = (("node-0", (("cpu", 1000),)),)
    assumed = AssumedPods()
    assumed.binds["u1"] = replace(bind(), numa_placement=zones)
    assert assumed.as_decided(PENDING).numa_placement == zones
    assert assumed.as_decided(BOUND).numa_placement == ()


def test_a_pod_bound_elsewhere_is_where_the_api_says() -> None:
    assumed = AssumedPods()
    assumed.binds["u1"] = bind("n1")
    elsewhere = replace(BOUND, node="n2")
    assumed.observe(elsewhere)
    assert assumed.as_decided(elsewhere).node == "n2"


def test_a_pod_deleted_while_it_is_being_bound_still_holds_its_place() -> None:
    assumed = AssumedPods()
    assumed.binds["u1"] = bind()
    going = assumed.as_decided(replace(PENDING, deleting=True, status=TaskStatus.RELEASING))
    assert (going.node, going.status) == ("n1", TaskStatus.RELEASING)


def test_an_eviction_stands_until_the_pod_is_going() -> None:
    assumed = AssumedPods()
    assumed.evictions["u1"] = 0.0
    assumed.observe(BOUND)
    assert assumed.as_decided(BOUND).status == TaskStatus.RELEASING
    for _ in range(2):
        assumed.observe(replace(BOUND, deleting=True))
        assert assumed.evictions == {}


def test_a_promise_stands_until_the_pod_carries_it_or_is_placed() -> None:
    for shown in (replace(PENDING, nominated_node="n1"), BOUND):
        assumed = AssumedPods()
        assumed.nominations["u1"] = "n1"
        assert assumed.as_decided(PENDING).nominated_node == "n1"
        assumed.observe(replace(PENDING, nominated_node="n2"))
        assert assumed.nominations == {"u1": "n1"}
        assumed.observe(shown)
        assert assumed.nominations == {}


def test_a_pod_that_is_being_bound_holds_the_shared_gpus_that_were_chosen_for_it() -> None:
    assumed = AssumedPods()
    assumed.binds["u1"] = replace(bind(), gpu_groups=("g1",))
    assert assumed.as_decided(replace(PENDING, gpu_groups=("g0",))).gpu_groups == ("g1",)
    assumed.binds["u1"] = bind()
    assert assumed.as_decided(replace(PENDING, gpu_groups=("g0",))).gpu_groups == ("g0",)


def test_a_pod_that_is_being_bound_has_the_annotations_of_its_binding() -> None:
    assumed = AssumedPods()
    assumed.binds["u1"] = replace(bind(), annotations=(("volcano.sh/gpu-index", "1"),))
    assert assumed.as_decided(replace(PENDING, annotations={"mine": "x"})).annotations == {"mine": "x", "volcano.sh/gpu-index": "1"}


def test_nothing_is_kept_of_a_deleted_pod() -> None:
    assumed = AssumedPods()
    assumed.binds["u1"], assumed.evictions["u1"], assumed.nominations["u1"] = bind(), 0.0, "n1"
    assumed.gone("u1")
    assert (assumed.binds, assumed.evictions, assumed.nominations) == ({}, {}, {})


def test_nothing_is_assumed_of_a_pod_that_has_ended() -> None:
    """It failed before its binding came, or was done before its eviction: no watch will ever confirm what was decided."""
    for status in (TaskStatus.FAILED, TaskStatus.SUCCEEDED):
        assumed = AssumedPods()
        assumed.binds["u1"] = bind()
        assumed.evictions["u1"] = 0.0
        assumed.observe(replace(PENDING, status=status))
        assert (assumed.binds, assumed.evictions) == ({}, {})


def test_a_group_keeps_our_status_until_its_object_is_as_new() -> None:
    assumed = AssumedPods()
    assumed.statuses["default/g"] = AssumedStatus("g1", "Inqueue", ())
    assert assumed.observe_group(GROUP, 5).phase == "Inqueue"
    assumed.statuses["default/g"].version = 7
    assert assumed.observe_group(GROUP, 6).phase == "Inqueue"
    assert assumed.observe_group(GROUP, 7).phase == "Pending"
    assert assumed.statuses == {}


def test_a_group_made_anew_under_the_same_name_has_no_status_of_ours() -> None:
    assumed = AssumedPods()
    assumed.statuses["default/g"] = AssumedStatus("g1", "Inqueue", ())
    assert assumed.observe_group(replace(GROUP, uid="g2"), 5).phase == "Pending"


def test_times_and_ids_of_transitions_do_not_make_a_status_differ() -> None:
    assumed = AssumedPods()
    said = Condition("Unschedulable", "True", "NotEnoughResources", "no", "cycle-1", 1.0)
    assumed.statuses["default/g"] = AssumedStatus("g1", "Pending", (said,))
    seen = replace(GROUP, conditions=(replace(said, transition_id="cycle-9", last_transition=9.0),))
    assert assumed.observe_group(seen, 1) == seen
    assert assumed.statuses == {}


def test_a_pod_whose_bind_fails_waits_longer_each_time_and_begins_anew_once_it_is_bound() -> None:
    assumed = AssumedPods()
    waits = []
    for _ in range(6):
        assumed.postpone("u1", 100.0)
        waits.append(assumed.postponed["u1"].until - 100.0)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assumed.observe(PENDING)
    assert "u1" in assumed.postponed
    assumed.observe(BOUND)
    assert assumed.postponed == {}
    assumed.postpone("u1", 100.0)
    assumed.gone("u1")
    assert assumed.postponed == {}
