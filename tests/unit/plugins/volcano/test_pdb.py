"""PDB: victims within disruption budgets."""

from __future__ import annotations

from typing import Any

from tests.worlds.plugin_session import World, job_of

from navarch.engine.session import Session
from navarch.model.spec import DisruptionBudgetSpec, LabelSelector, Requirement
from navarch.plugins.volcano.pdb import Pdb

WEB = LabelSelector((Requirement("app", "In", ("web",)),))


def world(allowed: int, **budget: Any) -> World:
    made = World().node("n", cpu=9).queue("q").job("j").pods("j", 3, cpu=1, node="n", labels={"app": "web"})
    made.cluster.put_budget(DisruptionBudgetSpec("ns", "b", budget.pop("selector", WEB), allowed, **budget))
    return made


def plugin(session: Session) -> Pdb:
    (found,) = session.plugins
    assert isinstance(found, Pdb)
    return found


def offered(session: Session) -> int:
    return len(plugin(session).preemptable(0, list(job_of(session, "j").tasks)) or [])


def test_as_many_as_the_budget_allows() -> None:
    for allowed in range(4):
        session = world(allowed).session(Pdb)
        assert offered(session) == allowed
        assert offered(session) == allowed, "asking spends nothing"


def test_evictions_of_the_cycle_count_and_those_taken_back_do_not() -> None:
    session = world(2).session(Pdb)
    statement = session.statement()
    statement.evict(job_of(session, "j").tasks[0])
    assert offered(session) == 1
    statement.discard()
    assert offered(session) == 2


def test_pods_that_no_budget_means_are_free() -> None:
    made = world(0).job("k").pods("k", cpu=1, node="n").pods("k", cpu=1, node="n", labels={"app": "db"})
    session = made.session(Pdb)
    assert plugin(session).reclaimable(0, list(job_of(session, "k").tasks)) == list(job_of(session, "k").tasks)


def test_a_budget_without_requirements_or_of_another_namespace_selects_no_pod() -> None:
    assert offered(world(0, selector=LabelSelector()).session(Pdb)) == 3
    made = world(3)
    made.cluster.put_budget(DisruptionBudgetSpec("elsewhere", "b", WEB, 0))
    assert offered(made.session(Pdb)) == 3


def test_a_pod_that_is_being_disrupted_already_costs_nothing() -> None:
    assert offered(world(0, disrupted_pods=frozenset({"j-0"})).session(Pdb)) == 1
