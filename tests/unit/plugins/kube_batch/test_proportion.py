"""Proportion under compat kube-batch: its own rules, found under the same name."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.session import Session
from navarch.plugins.kube_batch.proportion import KubeBatchProportion
from navarch.plugins.proportion import Proportion


def world() -> World:
    made = World().node("n", cpu=12, memory="12Gi").queue("left").queue("right", weight=2)
    return made.job("a", "left").job("b", "right")


def plugin(session: Session) -> KubeBatchProportion:
    (found,) = session.plugins
    assert isinstance(found, KubeBatchProportion)
    return found


def run(made: World) -> Session:
    return made.session(KubeBatchProportion, compat="kube-batch")


def cpu(session: Session, queue: str) -> float:
    return plugin(session).queue_figures(session.queues[queue]).deserved["cpu"]


def test_the_dialect_decides_whose_proportion_is_meant() -> None:
    session = run(world().pods("a", cpu=1))
    assert isinstance(session.plugins[0], KubeBatchProportion)
    assert not isinstance(world().session(Proportion).plugins[0], KubeBatchProportion)


def test_weights_divide_and_a_request_below_its_share_in_every_resource_is_enough() -> None:
    session = run(world().pods("a", 20, cpu=1, memory="1Gi").pods("b", 20, cpu=1, memory="1Gi"))
    assert (cpu(session, "left"), cpu(session, "right")) == pytest.approx((4000, 8000))
    session = run(world().pods("a", 2, cpu=1, memory="1Gi").pods("b", 20, cpu=1, memory="1Gi"))
    assert (cpu(session, "left"), cpu(session, "right")) == pytest.approx((2000, 10000))


def test_a_queue_that_wants_more_of_one_resource_keeps_its_share_of_all() -> None:
    session = run(world().pods("a", 2, cpu=1, memory="6Gi").pods("b", 20, cpu=1, memory="1Gi"))
    assert cpu(session, "left") == pytest.approx(4000)


def test_queues_by_share_overused_and_reclaim() -> None:
    made = world().pods("a", 6, cpu=1, memory="1Gi", node="n").pods("a", 9, cpu=1, memory="1Gi")
    session = run(made.pods("b", 20, cpu=1, memory="1Gi"))
    left, right = session.queues["left"], session.queues["right"]
    assert plugin(session).queue_order(right, left) < 0
    assert plugin(session).overused(left) is not None and plugin(session).overused(right) is None
    running = [t for t in job_of(session, "a").tasks if session.node[t] >= 0]
    assert plugin(session).reclaimable(0, running) == running[:2], "six held, four deserved"


def test_figures_follow_placements() -> None:
    session = run(world().pods("a", 20, cpu=1, memory="1Gi").pods("b", 20, cpu=1, memory="1Gi"))
    place(session, "a", "n", 2)
    assert plugin(session).share(session.queues["left"].number) == pytest.approx(0.5)
    assert np.all(plugin(session).deserved[:, 2] == 0), "pods are no resource here"
