"""Proportion: what queues deserve, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds.plugin_session import GPU, World, job_of, place

from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Reason, next_step
from navarch.engine.session import Session
from navarch.model.status import TaskStatus
from navarch.plugins.proportion import Proportion


def plugin(session: Session) -> Proportion:
    (found,) = session.plugins
    assert isinstance(found, Proportion)
    return found


def deserved(session: Session, queue: str) -> dict[str, float]:
    return dict(plugin(session).queue_figures(session.queues[queue]).deserved)


def two_queues(**right: object) -> World:
    world = World().node("n", cpu=12, memory="12Gi")
    return world.queue("left").queue("right", **right).job("a", "left").job("b", "right")


def test_the_unused_share_of_a_queue_goes_to_the_other() -> None:
    session = two_queues().pods("a", 2, cpu=1).pods("b", 20, cpu=1).session(Proportion)
    assert deserved(session, "left")["cpu"] == 2000
    assert deserved(session, "right")["cpu"] == 10000


def test_weights_divide_what_all_want() -> None:
    session = two_queues(weight=3).pods("a", 20, cpu=1).pods("b", 20, cpu=1).session(Proportion)
    assert deserved(session, "left")["cpu"] == 3000
    assert deserved(session, "right")["cpu"] == 9000


def test_capability_caps_and_guarantee_lifts_what_is_deserved() -> None:
    world = two_queues(capability={"cpu": 2}).pods("a", 20, cpu=1).pods("b", 20, cpu=1)
    session = world.session(Proportion)
    assert (deserved(session, "left")["cpu"], deserved(session, "right")["cpu"]) == (10000, 2000)
    world = two_queues(guarantee={"cpu": 8}).pods("a", 20, cpu=1).pods("b", 1, cpu=1)
    session = world.session(Proportion)
    assert (deserved(session, "left")["cpu"], deserved(session, "right")["cpu"]) == (4000, 8000)


def test_a_queue_without_jobs_does_not_take_part() -> None:
    world = two_queues().queue("idle", weight=10).pods("a", 20, cpu=1).pods("b", 20, cpu=1)
    session = world.session(Proportion)
    assert deserved(session, "left")["cpu"] == 6000
    assert deserved(session, "idle") == {}


def test_a_part_that_floating_point_misses_by_a_hair_is_whole() -> None:
    world = World().node("n", cpu=14, memory="14Gi")
    for i in range(7):
        world.queue(f"q{i}").job(f"j{i}", f"q{i}").pods(f"j{i}", 5, cpu=1)
    session = world.session(Proportion)
    assert all(deserved(session, f"q{i}")["cpu"] == 2000 for i in range(7))


def test_allocatable_says_how_many_fit_into_the_share() -> None:
    session = two_queues().pods("a", 20, cpu=1).pods("b", 20, cpu=1).session(Proportion)
    task = session.class_of(job_of(session, "a").tasks[0])
    assert plugin(session).allocatable(session.queues["left"], task, 20) == 6
    assert plugin(session).allocatable(session.queues["left"], task, 4) == 4
    place(session, "a", "n", 5)
    assert plugin(session).allocatable(session.queues["left"], task, 20) == 1
    place(session, "a", "n", pipelined=True)
    reason = plugin(session).allocatable(session.queues["left"], task, 20)
    assert isinstance(reason, Reason)
    assert reason.message == "queue left would exceed its deserved share: insufficient cpu (asks 1, holds 6 of 6)"
    assert reason.figures["cpu held"] == 6000 and reason.figures["cpu deserved share"] == 6000
    assert plugin(session).preemptive(session.queues["left"], task) == reason


def test_where_the_share_is_the_whole_cluster_the_cluster_is_full() -> None:
    session = World().node("n", cpu=9).queue("only").job("a", "only").pods("a", 20, cpu=1).session(Proportion)
    task = session.class_of(job_of(session, "a").tasks[0])
    place(session, "a", "n", 9)
    reason = plugin(session).allocatable(session.queues["only"], task, 1)
    assert isinstance(reason, Reason)
    assert (reason.code, reason.message) == ("ClusterFull", "insufficient cpu in the cluster: asks 1, queue only holds 9 of 9")
    assert next_step(reason) == "wait until running jobs end, or request less"


def test_a_discarded_attempt_leaves_no_trace_in_the_figures() -> None:
    session = two_queues().pods("a", 20, cpu=1).pods("b", 20, cpu=1).session(Proportion)
    before = plugin(session).ledger.allocated.copy()
    job = job_of(session, "a")
    statement = session.statement()
    statement.allocate(job, job.tasks[:3], [0, 0, 0], session.class_of(job.tasks[0]))
    assert plugin(session).share(session.queues["left"].number) == pytest.approx(0.5)
    statement.discard()
    assert np.array_equal(plugin(session).ledger.allocated, before)
    assert plugin(session).share(session.queues["left"].number) == 0


def test_queues_are_served_by_priority_then_by_share() -> None:
    session = two_queues(priority=0).pods("a", 20, cpu=1).pods("b", 20, cpu=1).session(Proportion)
    left, right = session.queues["left"], session.queues["right"]
    assert plugin(session).queue_order(left, right) == 0
    place(session, "a", "n")
    assert plugin(session).queue_order(left, right) > 0
    session = two_queues(priority=-1).pods("a", 20, cpu=1).pods("b", 20, cpu=1).session(Proportion)
    place(session, "a", "n")
    assert plugin(session).queue_order(session.queues["left"], session.queues["right"]) < 0


def test_overused_only_when_every_resource_of_the_share_is_used() -> None:
    session = two_queues().pods("a", 2, cpu=1).pods("b", 20, cpu=1).session(Proportion)
    assert plugin(session).overused(session.queues["left"]) is None
    place(session, "a", "n", 2)
    reason = plugin(session).overused(session.queues["left"])
    assert reason is not None and reason.code == "QueueOverused"


def test_reclaim_takes_until_the_queue_is_no_longer_above_its_share() -> None:
    session = two_queues().pods("a", 8, cpu=1, node="n").pods("b", 12, cpu=1).session(Proportion)
    assert deserved(session, "left")["cpu"] == 6000
    reclaimer, candidates = job_of(session, "b").tasks[0], list(job_of(session, "a").tasks)
    assert plugin(session).reclaimable(reclaimer, candidates) == candidates[:2]


def test_a_closed_queue_takes_on_nothing() -> None:
    session = two_queues(state="Closed").pods("a", cpu=1).pods("b", cpu=1).session(Proportion)
    job = job_of(session, "b")
    for answer in (
        plugin(session).allocatable(job.queue, session.class_of(job.tasks[0]), 1),
        plugin(session).job_enqueueable(job),
    ):
        assert isinstance(answer, Reason) and answer.code == "QueueClosed"


def test_a_queue_without_a_state_is_open() -> None:
    session = two_queues(state="").pods("a", cpu=1).pods("b", cpu=1).session(Proportion)
    assert plugin(session).job_enqueueable(job_of(session, "b")) == Vote.PERMIT


def test_admission_counts_what_is_held_and_promised_but_not_what_is_elastic() -> None:
    world = World().node("n", cpu=10, memory="10Gi").queue("q", capability={"cpu": 8})
    world.job("running", min_resources={"cpu": 2}, min_member=1, phase="Running").pods("running", 3, cpu=2, node="n")
    world.job("admitted", min_resources={"cpu": 3}, min_member=3).pods("admitted", 3, cpu=1)
    world.job("small", min_resources={"cpu": 3}, phase="Pending").pods("small", 3, cpu=1)
    world.job("large", min_resources={"cpu": 4}, phase="Pending").pods("large", 4, cpu=1)
    world.job("unsaid", phase="Pending").pods("unsaid", 4, cpu=1)
    session = world.session(Proportion)
    assert plugin(session).job_enqueueable(job_of(session, "unsaid")) == Vote.PERMIT
    assert plugin(session).job_enqueueable(job_of(session, "small")) == Vote.PERMIT
    refused = plugin(session).job_enqueueable(job_of(session, "large"))
    assert isinstance(refused, Reason)
    assert refused.message == "queue resource quota insufficient: insufficient cpu"
    assert (refused.figures["cpu held"], refused.figures["cpu asked"], refused.figures["cpu capability"]) == (5000, 4000, 8000)
    session.job_enqueued(job_of(session, "small"))
    again = plugin(session).job_enqueueable(job_of(session, "small"))
    assert isinstance(again, Reason)


def test_gated_pods_claim_nothing() -> None:
    world = World().node("n", cpu=10, memory="10Gi").queue("q")
    world.job("gated", min_resources={"cpu": 8}, min_member=4).pods("gated", 4, cpu=2, gates=("wait",))
    world.job("next", min_resources={"cpu": 8}, phase="Pending").pods("next", 4, cpu=2)
    session = world.session(Proportion)
    assert plugin(session).job_enqueueable(job_of(session, "next")) == Vote.PERMIT


def test_a_device_no_node_has_is_refused() -> None:
    world = World().node("n", cpu=10, memory="10Gi").queue("q")
    world.job("j", min_resources={"gpu": 1}, phase="Pending").pods("j", gpu=1, cpu=1)
    session = world.session(Proportion)
    answer = plugin(session).job_enqueueable(job_of(session, "j"))
    assert isinstance(answer, Reason) and answer.message.endswith(f"insufficient {GPU}; no node offers {GPU}")


def test_releasing_pods_are_in_no_figure() -> None:
    world = two_queues().pods("a", 3, cpu=1, node="n", status=TaskStatus.RELEASING).pods("b", cpu=1)
    figures = plugin(session := world.session(Proportion)).queue_figures(session.queues["left"])
    assert figures.allocated == {} and figures.request == {}
