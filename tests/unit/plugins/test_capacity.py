"""Capacity: deserved, guaranteed and maximal amounts of queues, flat and as a tree."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.plugin_session import GPU, World, job_of, place

from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.plugins.capacity.plugin import Capacity

TREE = {"hierarchy": True}


def plugin(session: Session) -> Capacity:
    (found,) = session.plugins
    assert isinstance(found, Capacity)
    return found


def limit(session: Session, queue: str, resource: str = "cpu") -> int:
    dim = session.snapshot.resource_names.index(resource)
    return int(plugin(session).due.limit[session.queues[queue].number][dim])


def due(session: Session, queue: str) -> dict[str, float]:
    return dict(plugin(session).queue_figures(session.queues[queue]).deserved)


def ask(session: Session, job: str, count: int = 1) -> int | Reason:
    found = job_of(session, job)
    return plugin(session).allocatable(found.queue, session.class_of(found.tasks[-1]), count)


def may_reclaim(session: Session, job: str) -> Reason | None:
    found = job_of(session, job)
    return plugin(session).preemptive(found.queue, session.class_of(found.tasks[-1]))


def victims(session: Session, reclaimer: str, *jobs: str) -> list[str]:
    candidates = [t for job in jobs for t in job_of(session, job).tasks]
    found = plugin(session).reclaimable(job_of(session, reclaimer).tasks[-1], candidates)
    assert found is not None
    return [session.task(t).name for t in found]


# flat


def flat(**second: Any) -> World:
    world = World().node("n", cpu=10, memory="10Gi", gpu=4)
    return world.queue("a", deserved={"cpu": 4, "memory": "4Gi"}).queue("b", **second)


def test_deserved_is_what_is_written_within_what_may_be_held_and_not_below_the_guarantee() -> None:
    session = flat(deserved={"cpu": 40, "gpu": 0}, guarantee={"cpu": 2, "memory": "1Gi"}).session(Capacity)
    assert due(session, "b") == {"cpu": 10000, "memory": 1 << 30, GPU: 0}
    assert limit(session, "a") == 8000 and limit(session, "b") == 10000


def test_a_queue_takes_on_work_up_to_its_capability() -> None:
    session = flat(capability={"cpu": 3}).job("j", "b").pods("j", 9, cpu=1).session(Capacity)
    assert ask(session, "j", 9) == 3
    place(session, "j", "n", 3)
    reason = ask(session, "j", 1)
    assert isinstance(reason, Reason)
    assert reason.message == "queue b would exceed its capability: insufficient cpu (asks 1, holds 3 of 3)"


def test_a_capability_that_names_no_device_does_not_limit_it_and_zero_forbids_it() -> None:
    for capability, expected in (({"cpu": 3}, 4), ({"cpu": 3, "gpu": 0}, "no")):
        session = flat(capability=capability).job("j", "b").pods("j", 9, gpu=1).session(Capacity)
        answer = ask(session, "j", 9)
        assert answer == expected or (expected == "no" and isinstance(answer, Reason))


def test_share_is_one_without_deserved_and_such_queues_come_last_among_equals() -> None:
    session = flat().job("x", "a").pods("x", 4, cpu=1).job("y", "b").pods("y", cpu=1).session(Capacity)
    a, b = session.queues["a"], session.queues["b"]
    assert plugin(session).share(b.number) == 1.0
    assert plugin(session).queue_order(a, b) < 0
    place(session, "x", "n", 4)
    assert plugin(session).share(a.number) == 1.0
    assert plugin(session).queue_order(a, b) < 0, "equal shares: the queue that deserves something first"


@pytest.mark.parametrize(("compat", "allowed"), [("strict", False), ("volcano", True)])
def test_a_queue_above_its_due_in_one_resource_may_reclaim_only_where_the_policy_says(compat: str, allowed: bool) -> None:
    world = flat(deserved={"cpu": 6}).job("x", "a").pods("x", 4, cpu=1, memory="1Mi", node="n").pods("x", cpu=1, memory="1Mi")
    session = world.job("y", "b").pods("y", cpu=1, gpu=1).session(Capacity, compat=compat)
    assert may_reclaim(session, "y") is None, "nothing is said about gpus, and cpu is below its due"
    reason = may_reclaim(session, "x")
    assert (reason is None) is allowed, "4 cpu of 4 are held, memory is far below its due"
    assert reason is None or reason.code == "OverFairShare"


@pytest.mark.parametrize(("compat", "taken"), [("strict", 0), ("volcano", 2)])
def test_exceeding_the_deserved_share_of_an_unrequested_resource_costs_nothing(compat: str, taken: int) -> None:
    world = World().node("n", cpu=10, memory="10Gi", gpu=4).queue("b", deserved={"gpu": 2})
    world.queue("a", deserved={"cpu": 1, "gpu": 4}).job("x", "a").pods("x", 3, cpu=1, gpu=1, node="n")
    world.job("y", "b").pods("y", gpu=1)
    assert len(victims(world.session(Capacity, compat=compat), "y", "x")) == taken


def test_only_what_a_queue_holds_above_its_due_may_be_taken() -> None:
    world = flat(deserved={"cpu": 6}).job("x", "a").pods("x", 6, cpu=1, node="n").job("y", "b").pods("y", cpu=1)
    session = world.session(Capacity)
    assert len(victims(session, "y", "x")) == 2, "6 held, 4 deserved"


def test_a_device_with_deserved_zero_is_above_its_due_and_one_not_named_is_not() -> None:
    for deserved, taken in (({"cpu": 4, "gpu": 0}, 2), ({"cpu": 4}, 0)):
        world = World().node("n", cpu=10, memory="10Gi", gpu=4).queue("a", deserved=deserved).queue("b", deserved={"gpu": 4})
        world.job("x", "a").pods("x", 2, cpu=1, gpu=1, node="n").job("y", "b").pods("y", gpu=1)
        assert len(victims(world.session(Capacity), "y", "x")) == taken


def test_a_task_of_which_its_queue_deserves_nothing_goes_at_once_unless_pods_are_deserved() -> None:
    for deserved, taken in (({"gpu": 2}, 1), ({"gpu": 2, "pods": 9}, 0)):
        world = World().node("n", cpu=10, memory="10Gi", gpu=4).queue("a", deserved=deserved).queue("b", deserved={"cpu": 4})
        world.job("x", "a").pods("x", 1, cpu=1, node="n").job("y", "b").pods("y", cpu=1)
        assert len(victims(world.session(Capacity), "y", "x")) == taken


def test_a_guarantee_is_kept() -> None:
    world = World().node("n", cpu=10, memory="10Gi").queue("b", deserved={"cpu": 9})
    world.queue("a", deserved={"cpu": 1}, guarantee={"cpu": 3})
    world.job("x", "a").pods("x", 5, cpu=1, node="n").job("y", "b").pods("y", cpu=1)
    assert len(victims(world.session(Capacity), "y", "x")) == 2


def test_tasks_that_share_no_resource_with_the_reclaimer_are_left_alone() -> None:
    world = flat(deserved={"gpu": 4}).job("x", "a").pods("x", 6, cpu=1, node="n").job("y", "b").pods("y", gpu=1)
    assert victims(world.session(Capacity), "y", "x") == []


def test_admission_reports_what_is_insufficient() -> None:
    world = flat(capability={"cpu": 3, "memory": "1Gi"})
    world.job("j", "b", min_resources={"cpu": 4, "memory": "2Gi"}, phase="Pending").pods("j", 4, cpu=1)
    answer = plugin(session := world.session(Capacity)).job_enqueueable(job_of(session, "j"))
    assert isinstance(answer, Reason)
    assert answer.message == "queue resource quota insufficient: insufficient cpu, insufficient memory"


# tree


def tree() -> World:
    world = World().node("n", cpu=100, memory="100Gi").queue("root")
    world.queue("eng", capability={"cpu": 20}, deserved={"cpu": 16}, guarantee={"cpu": 4})
    world.queue("eng-a", parent="eng", deserved={"cpu": 8}, guarantee={"cpu": 2})
    world.queue("eng-b", parent="eng", deserved={"cpu": 8})
    return world.queue("sci", deserved={"cpu": 30})


def test_figures_say_whether_they_hold_what_is_below() -> None:
    world = tree().job("x", "eng-a").pods("x", node="n", cpu=3)
    session = world.session(Capacity, switches=TREE)
    found = [plugin(session).queue_figures(session.queues[name]) for name in ("root", "eng", "eng-a", "eng-b")]
    assert [(each.allocated.get("cpu"), each.with_below) for each in found] == [(3000, True)] * 3 + [(None, True)]
    session = world.session(Capacity)
    found = [plugin(session).queue_figures(session.queues[name]) for name in ("eng", "eng-a")]
    assert [(each.allocated.get("cpu"), each.with_below) for each in found] == [(None, False), (3000, False)]


def test_limits_come_down_the_tree() -> None:
    session = tree().session(Capacity, switches=TREE)
    assert limit(session, "eng") == 20000
    assert limit(session, "eng-a") == 20000 and limit(session, "eng-b") == 18000, "siblings' guarantees are not to be had"
    assert limit(session, "sci") > 10**12, "the root has no limit"
    assert due(session, "root")["cpu"] == 46000


def test_a_placement_must_fit_every_ancestor() -> None:
    world = tree().job("x", "eng-a").pods("x", 15, cpu=1, node="n").job("y", "eng-b").pods("y", 9, cpu=1)
    session = world.session(Capacity, switches=TREE)
    assert ask(session, "y", 9) == 5
    place(session, "y", "n", 5)
    reason = ask(session, "y", 1)
    assert isinstance(reason, Reason)
    assert reason.message == "queue eng would exceed its capability: insufficient cpu (asks 1, holds 20 of 20)"


def test_admission_looks_at_ancestors_too() -> None:
    world = tree().job("x", "eng-a", min_resources={"cpu": 15}, min_member=15).pods("x", 15, cpu=1)
    world.job("y", "eng-b", min_resources={"cpu": 6}, phase="Pending").pods("y", 6, cpu=1)
    session = world.session(Capacity, switches=TREE)
    answer = plugin(session).job_enqueueable(job_of(session, "y"))
    assert isinstance(answer, Reason) and answer.figures["queue"] == "eng"


def test_leaves_of_two_branches_are_ordered_by_their_branches() -> None:
    """Half of eng is used and a thirtieth of sci."""
    world = tree().job("x", "eng-a").pods("x", 8, cpu=1).job("y", "eng-b").pods("y", cpu=1).job("z", "sci").pods("z", cpu=1)
    session = world.session(Capacity, switches=TREE)
    place(session, "x", "n", 8)
    assert plugin(session).queue_order(session.queues["eng-b"], session.queues["sci"]) > 0


def test_relatives_give_way_first() -> None:
    session = tree().session(Capacity, switches=TREE)
    a, b, sci = (session.queues[n] for n in ("eng-a", "eng-b", "sci"))
    world = World().node("n", cpu=9).queue("root").queue("x").queue("x1", parent="x").queue("x11", parent="x1")
    world.queue("x12", parent="x1").queue("y").queue("y1", parent="y")
    deep = world.session(Capacity, switches=TREE)
    assert plugin(session).victim_queue_order(a, sci, b) < 0
    assert plugin(deep).victim_queue_order(deep.queues["x12"], deep.queues["y1"], deep.queues["x11"]) < 0


def test_a_broken_queue_is_set_aside_and_named() -> None:
    world = tree().queue("lost", parent="nowhere").queue("below", parent="lost").job("l", "below").pods("l", cpu=1)
    session = world.job("x", "eng-a").pods("x", cpu=1).session(Capacity, switches=TREE)
    refused = ask(session, "l")
    assert isinstance(refused, Reason) and refused.code == "QueueTreeInvalid" and "nowhere" in refused.message
    assert ask(session, "x") == 1
    assert any("lost" in warning for warning in session.record.warnings)
    assert plugin(session).queue_order(session.queues["eng-a"], session.queues["below"]) < 0


def test_a_circle_is_set_aside() -> None:
    world = tree().queue("c1", parent="c2").queue("c2", parent="c1").job("l", "c1").pods("l", cpu=1)
    session = world.session(Capacity, switches=TREE)
    refused = ask(session, "l")
    assert isinstance(refused, Reason) and "among its ancestors" in refused.message


def test_a_job_in_a_queue_with_children_waits_alone() -> None:
    world = tree().job("wrong", "eng").pods("wrong", cpu=1).job("x", "eng-a").pods("x", cpu=1)
    session = world.session(Capacity, switches=TREE)
    refused = ask(session, "wrong")
    assert isinstance(refused, Reason) and refused.code == "QueueNotLeaf"
    assert plugin(session).job_enqueueable(job_of(session, "x")) == Vote.PERMIT


def test_without_a_root_one_is_imagined() -> None:
    world = tree().job("x", "eng-a").pods("x", cpu=1)
    world.cluster.remove_queue("root")
    assert ask(world.session(Capacity, switches=TREE), "x") == 1


def test_resources_that_the_root_does_not_name_are_unlimited() -> None:
    world = World().node("n", cpu=9, memory="9Gi", gpu=1).queue("root", capability={"cpu": 5}).queue("a")
    session = world.job("x", "a").pods("x", gpu=1).session(Capacity, switches=TREE)
    assert not isinstance(ask(session, "x"), Reason)


def contended(level: int) -> Session:
    """eng is at its due as a whole; its leaf eng-a is above its own."""
    world = tree().job("x", "eng-a").pods("x", 10, cpu=1, node="n").job("v", "eng-b").pods("v", 6, cpu=1, node="n")
    world.job("y", "sci").pods("y", cpu=1)
    return world.session(Capacity, switches=TREE, arguments={"ancestorReclaimLevel": level})


def test_a_branch_within_its_due_keeps_its_tasks_when_ancestors_count() -> None:
    assert len(victims(contended(0), "y", "x")) == 2
    assert victims(contended(1), "y", "x") == []


def test_a_leaf_above_its_due_may_reclaim_for_its_branch() -> None:
    world = tree().job("x", "eng-a").pods("x", 8, cpu=1, node="n").pods("x", cpu=1)
    for level, allowed in ((0, False), (1, True)):
        session = world.session(Capacity, switches=TREE, arguments={"ancestorReclaimLevel": level})
        assert (may_reclaim(session, "x") is None) is allowed


def test_siblings_that_deserve_nothing_do_not_take_from_each_other_when_ancestors_count() -> None:
    world = World().node("n", cpu=10).queue("root").queue("p", deserved={"cpu": 8})
    world.queue("p1", parent="p").queue("p2", parent="p")
    world.job("x", "p1").pods("x", 4, cpu=1, node="n").job("y", "p2").pods("y", cpu=1)
    for level, taken in ((0, 4), (1, 0)):
        session = world.session(Capacity, switches=TREE, arguments={"ancestorReclaimLevel": level})
        assert len(victims(session, "y", "x")) == taken


def test_whole_gangs_are_judged_by_their_own_queue() -> None:
    world = flat(deserved={"gpu": 4}).job("x", "a").pods("x", 6, cpu=1, node="n").job("y", "b").pods("y", gpu=1)
    session = world.session(Capacity)
    candidates = list(job_of(session, "x").tasks)
    assert plugin(session).unified_evictable(job_of(session, "y"), candidates, reclaim=False) == candidates
    assert plugin(session).unified_evictable(job_of(session, "y"), candidates, reclaim=True) == candidates[:2]
