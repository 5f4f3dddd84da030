"""DRF: shares order jobs and limit evictions; with a hierarchy they order queues."""

from __future__ import annotations

import pytest
from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.points.protocols import QueueOrder, Reclaimable
from navarch.engine.session import Session
from navarch.plugins.drf.plugin import Drf, KubeBatchDrf
from navarch.plugins.drf.share_tree import PATH, WEIGHTS


def plugin(session: Session) -> Drf:
    (found,) = session.plugins
    assert isinstance(found, Drf)
    return found


def cluster() -> World:
    return World().node("n", cpu=10, memory="10Gi", pods=100).queue("q")


def test_the_dominant_resource_makes_the_share() -> None:
    world = cluster().job("cpu").pods("cpu", 2, cpu=2, memory="1Gi", node="n")
    session = world.job("mem").pods("mem", cpu=1, memory="5Gi", node="n").job("none").session(Drf)
    orders = {name: plugin(session).job_order(job_of(session, name)) for name in ("cpu", "mem", "none")}
    assert orders == {"cpu": pytest.approx(0.4), "mem": pytest.approx(0.5), "none": 0.0}


def test_many_small_pods_make_pods_the_dominant_resource() -> None:
    session = cluster().job("j").pods("j", 30, cpu="10m", node="n").session(Drf)
    assert plugin(session).job_order(job_of(session, "j")) == pytest.approx(0.3)
    session = cluster().job("j").pods("j", 30, cpu="10m", node="n").session(KubeBatchDrf, compat="kube-batch")
    assert plugin(session).job_order(job_of(session, "j")) == pytest.approx(0.03)


def test_shares_follow_placements_promises_and_their_undoing() -> None:
    session = cluster().job("j").pods("j", 4, cpu=1).session(Drf)
    job = job_of(session, "j")
    place(session, "j", "n", 2)
    place(session, "j", "n", pipelined=True)
    assert plugin(session).job_order(job) == pytest.approx(0.3)
    statement = session.statement()
    statement.allocate(job, job.tasks[3:], [0], session.class_of(job.tasks[3]))
    assert plugin(session).job_order(job) == pytest.approx(0.4)
    statement.discard()
    assert plugin(session).job_order(job) == pytest.approx(0.3)


def test_a_job_evicts_only_down_to_its_own_share() -> None:
    world = cluster().job("rich").pods("rich", 6, cpu=1, node="n")
    world.job("poor").pods("poor", cpu=1, node="n").pods("poor", cpu=1)
    session = world.session(Drf)
    candidates = list(job_of(session, "rich").tasks)
    preemptor = job_of(session, "poor").tasks[1]
    assert plugin(session).preemptable(preemptor, candidates) == candidates[:4], "2/10 against 5, 4, 3 and 2 tenths"


def test_a_refused_candidate_still_lowers_its_job() -> None:
    world = cluster().job("rich").pods("rich", cpu=4, node="n").pods("rich", cpu=1, node="n").job("poor").pods("poor", cpu=2)
    session = world.session(Drf)
    big, small = job_of(session, "rich").tasks
    preemptor = job_of(session, "poor").tasks[0]
    assert plugin(session).preemptable(preemptor, [big, small]) == []
    assert plugin(session).preemptable(preemptor, [small]) == [small]


def test_without_hierarchy_queues_are_not_its_business() -> None:
    session = cluster().session(Drf)
    assert plugin(session) not in session.implementing(QueueOrder)
    assert plugin(session) not in session.implementing(Reclaimable)


def tree(world: World, **paths: tuple[str, str]) -> World:
    for name, (path, weights) in paths.items():
        world.queue(name, annotations={PATH: path, WEIGHTS: weights})
    return world


def order(session: Session, left: str, right: str) -> int:
    return plugin(session).queue_order(session.queues[left], session.queues[right])


def test_branches_are_compared_before_leaves_and_by_weight() -> None:
    world = tree(
        World().node("n", cpu=100, memory="100Gi"),
        eng=("root/eng/a", "100/1/1"),
        eng2=("root/eng/b", "100/1/1"),
        sci=("root/sci", "100/4"),
    )
    world.job("x", "eng").pods("x", 1, cpu=10, node="n").pods("x", 9, cpu=1)
    world.job("y", "eng2").pods("y", 9, cpu=1)
    world.job("z", "sci").pods("z", 2, cpu=10, node="n").pods("z", 9, cpu=1)
    session = world.session(Drf, switches={"hierarchy": True})
    assert order(session, "eng2", "eng") < 0, "inside a branch the smaller share"
    assert order(session, "sci", "eng2") < 0, "20 of 100 at weight 4 is less than 10 at weight 1"
    assert order(session, "eng", "eng") == 0


def test_a_saturated_queue_comes_last() -> None:
    world = tree(World().node("n", cpu=100, memory="100Gi"), a=("root/a", "1/1"), b=("root/b", "1/1"))
    world.job("small", "a").pods("small", 1, cpu=1, node="n")
    world.job("big", "b").pods("big", 5, cpu=10, node="n").pods("big", 5, cpu=10)
    session = world.session(Drf, switches={"hierarchy": True})
    assert order(session, "b", "a") < 0, "a has all it asked for"


def test_queues_without_annotations_stand_where_their_parents_say() -> None:
    world = World().node("n", cpu=100, memory="100Gi").queue("root").queue("a").queue("a1", parent="a").queue("b", weight=2)
    world.job("x", "a1").pods("x", 1, cpu=10, node="n").pods("x", 9, cpu=1)
    world.job("y", "b").pods("y", 1, cpu=15, node="n").pods("y", 9, cpu=1)
    session = world.session(Drf, switches={"hierarchy": True})
    assert order(session, "b", "a1") < 0


def test_a_queue_reclaims_from_one_that_stays_ahead() -> None:
    world = tree(World().node("n", cpu=10, memory="10Gi"), a=("root/a", "1/1"), b=("root/b", "1/1"))
    world.job("x", "a").pods("x", 3, cpu=2).job("y", "b").pods("y", 5, cpu=2, node="n").pods("y", 5, cpu=2)
    session = world.session(Drf, switches={"hierarchy": True})
    victims = [t for t in job_of(session, "y").tasks if session.node[t] >= 0]
    before = order(session, "a", "b")
    assert plugin(session).reclaimable(job_of(session, "x").tasks[0], victims) == victims, "each on its own: 8 left against 2"
    assert order(session, "a", "b") == before, "asking changes nothing"
