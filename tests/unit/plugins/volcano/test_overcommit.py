"""Overcommit: admission up to a multiple of the cluster."""

from __future__ import annotations

import pytest
from tests.worlds.plugin_session import World, job_of

from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.plugins.volcano.overcommit import Overcommit


def ask(session: Session, job: str = "j") -> Vote | Reason:
    (plugin,) = session.plugins
    assert isinstance(plugin, Overcommit)
    return plugin.job_enqueueable(job_of(session, job))


def waiting(cpu: object, **others: object) -> World:
    """A job that asks to be admitted to a cluster of 10 cpu."""
    world = World().node("n", cpu=10, memory="10Gi").queue("q")
    return world.job("j", min_resources={"cpu": cpu, **others}, phase="Pending").pods("j", cpu=1)


def test_the_default_factor_admits_a_fifth_more_than_there_is() -> None:
    assert ask(waiting(12).session(Overcommit)) == Vote.PERMIT
    refused = ask(waiting("12001m").session(Overcommit))
    assert isinstance(refused, Reason)
    assert refused.message == "resource in cluster is overused: overused cpu"
    assert refused.figures["cpu idle with overcommit"] == 12000


def test_a_factor_may_be_given() -> None:
    assert ask(waiting(20).session(Overcommit, arguments={"overcommit-factor": 2.0})) == Vote.PERMIT


def test_a_factor_below_one_is_not_accepted() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        Overcommit.arguments[0].read(0.5)


def test_used_and_admitted_amounts_count() -> None:
    world = waiting(4).job("run", phase="Running").pods("run", 6, cpu=1, node="n")
    assert ask(world.session(Overcommit)) == Vote.PERMIT
    world.job("in", min_resources={"cpu": 3}, min_member=1).pods("in", 2, cpu=1, node="n")
    assert isinstance(ask(world.session(Overcommit)), Reason), "an admitted job counts in full, although it has two pods"


def test_a_running_job_counts_for_what_it_still_lacks() -> None:
    world = waiting(7).job("run", phase="Running", min_resources={"cpu": 3}, min_member=1).pods("run", 2, cpu=1, node="n")
    session = world.session(Overcommit)
    assert ask(session) == Vote.PERMIT, "12 - 2 used - 1 lacking leaves 9"


def test_each_admission_leaves_less() -> None:
    session = waiting(7).session(Overcommit)
    assert ask(session) == Vote.PERMIT
    session.job_enqueued(job_of(session, "j"))
    assert isinstance(ask(session), Reason)


def test_resources_that_are_not_asked_for_do_not_matter() -> None:
    world = waiting(1, memory="1Gi").job("run").pods("run", memory="13Gi", node="n")
    refused = ask(world.session(Overcommit))
    assert isinstance(refused, Reason) and "memory" in refused.message and "cpu" not in refused.message
    assert ask(waiting(1).job("run").pods("run", memory="13Gi", node="n").session(Overcommit)) == Vote.PERMIT
