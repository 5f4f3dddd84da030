"""TDM: revocable nodes by the time of day."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.plugin_session import World, job_of

from navarch.engine.points.protocols import Vote
from navarch.engine.session import Session
from navarch.plugins.volcano.tdm import MAX_UNAVAILABLE, MIN_AVAILABLE, ZONE, Tdm, is_open

HOUR = 3600.0
NIGHT = {"tdm.revocable-zone.rz1": "20:00-06:00"}
REVOCABLE = ((ZONE, "*"),)


def world() -> World:
    return World().node("plain", cpu=9).node("zone", {ZONE: "rz1"}, cpu=9).node("unknown", {ZONE: "rz9"}, cpu=9).queue("q")


def open_at(made: World, hour: float, more: dict[str, Any] | None = None) -> Session:
    return made.session(Tdm, arguments={**NIGHT, **(more or {})}, now=10 * 86400 + hour * HOUR)


def plugin(session: Session) -> Tdm:
    (found,) = session.plugins
    assert isinstance(found, Tdm)
    return found


def feasible(session: Session) -> list[str]:
    view = session.view(session.class_of(job_of(session, "j").tasks[0]))
    return [name for name, ok in zip(session.nodes.names, view.feasible().tolist()) if ok]


@pytest.mark.parametrize(("hour", "there"), [(21, True), (5, True), (12, False)])
def test_revocable_tasks_use_the_zone_while_it_is_open(hour: float, there: bool) -> None:
    session = open_at(world().job("j").pods("j", cpu=1, hints=REVOCABLE), hour)
    assert feasible(session) == (["plain", "zone"] if there else ["plain"])


def test_other_tasks_never_do_and_are_told_why() -> None:
    session = open_at(world().job("j").pods("j", cpu=1), 21)
    assert feasible(session) == ["plain"]
    assert session.view(session.class_of(0)).explain().nodes == {
        "the node's revocable zone is closed now": 1,
        "the task is not allowed on revocable nodes": 1,
    }


def test_the_open_zone_is_preferred() -> None:
    session = open_at(world().job("j").pods("j", cpu=1, hints=REVOCABLE), 21)
    view = session.view(session.class_of(0))
    assert view.totals(view.feasible()).tolist() == [0.0, 0.0, 100.0]
    assert session.nodes.names[view.choose(1)[0][0]] == "zone"


def test_static_answers_change_with_the_hour() -> None:
    made = world().job("j").pods("j", cpu=1, hints=REVOCABLE)
    assert feasible(open_at(made, 21)) == ["plain", "zone"]
    assert feasible(open_at(made, 12)) == ["plain"]


@pytest.mark.parametrize(
    ("window", "hour", "opened"),
    [
        ("10:00-12:00", 9.99, False),
        ("10:00-12:00", 12, True),
        ("20:00-06:00", 3, True),
        ("20:00-06:00", 20, True),
        ("08:00-08:00", 7, True),
    ],
)
def test_a_window_may_cross_midnight(window: str, hour: float, opened: bool) -> None:
    assert is_open(window, hour * HOUR) is opened


def test_a_window_that_cannot_be_read_neither_admits_nor_evicts() -> None:
    made = world().job("j").pods("j", cpu=1, hints=REVOCABLE, node="zone")
    session = made.session(Tdm, arguments={"tdm.revocable-zone.rz1": "8pm-6am"}, now=21 * HOUR)
    assert feasible(session) == ["plain"]
    assert session.victim_tasks([0]) == []
    assert "8pm-6am" in session.record.warnings[0]


def running(budget: dict[str, str] | None = None, finished: int = 0) -> World:
    made = world().job("j", annotations=budget or {}).pods("j", 4, cpu=1, hints=REVOCABLE, node="zone")
    return made.pods("j", 1, cpu=1, hints=REVOCABLE)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (None, 1),
        ({MAX_UNAVAILABLE: "3"}, 2),
        ({MAX_UNAVAILABLE: "50%"}, 2),
        ({MAX_UNAVAILABLE: "1"}, 0),
        ({MIN_AVAILABLE: "1"}, 3),
        ({MIN_AVAILABLE: "5"}, 0),
        ({MIN_AVAILABLE: "20%"}, 3),
    ],
)
def test_a_closed_zone_is_cleared_as_budgets_allow(budget: dict[str, str] | None, expected: int) -> None:
    """Four of five pods run."""
    assert len(open_at(running(budget), 12).victim_tasks([0, 1, 2, 3])) == expected
    assert open_at(running(budget), 21).victim_tasks([0, 1, 2, 3]) == []


def test_pods_that_are_not_preemptable_or_stand_elsewhere_stay() -> None:
    made = world().job("j").pods("j", cpu=1, hints=REVOCABLE, node="zone", preemptable=False)
    made.pods("j", cpu=1, hints=REVOCABLE, node="plain").pods("j", cpu=1, hints=REVOCABLE, node="unknown")
    assert open_at(made, 12).victim_tasks([0, 1, 2]) == []


def test_victims_are_named_once_a_period() -> None:
    made = running()
    assert len(open_at(made, 12).victim_tasks([0])) == 1
    assert len(open_at(made, 12).victim_tasks([0])) == 1, "the same moment gives the same answer"
    assert open_at(made, 12 + 30 / HOUR).victim_tasks([0]) == []
    assert len(open_at(made, 12 + 60 / HOUR).victim_tasks([0])) == 1
    assert open_at(made, 12 + 2, more={"tdm.evict.period": 3 * HOUR}).victim_tasks([0]) == []


def test_a_non_preemptable_job_evicts_preemptable_tasks_of_ordinary_nodes() -> None:
    made = world().job("old").pods("old", 2, cpu=1, node="plain").pods("old", cpu=1, node="zone")
    made.job("j").pods("j", cpu=1, preemptable=False).pods("j", cpu=1)
    session = open_at(made, 12)
    fixed, soft = job_of(session, "j").tasks
    assert plugin(session).preemptable(fixed, [0, 1, 2]) == [0], "one of a job without a budget, none from the zone"
    assert plugin(session).preemptable(soft, [0, 1, 2]) == []


def test_jobs_that_are_not_preemptable_go_first_and_starve() -> None:
    made = world().job("hard").pods("hard", cpu=1).job("soft", preemptable=True).pods("soft", cpu=1)
    session = open_at(made, 12)
    hard, soft = job_of(session, "hard"), job_of(session, "soft")
    assert plugin(session).job_order(hard) < plugin(session).job_order(soft)
    assert plugin(session).job_starving(hard) and not plugin(session).job_starving(soft)
    assert plugin(session).job_pipelined(hard) == Vote.REJECT


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, "", "rz1", "rz2", "rz9"])), min_size=1, max_size=12))
def test_zones_kept_between_cycles_follow_the_node_labels(changes: list[tuple[int, str | None]]) -> None:
    made = world().job("j").pods("j", cpu=1, hints=REVOCABLE)
    windows = {"tdm.revocable-zone.rz2": "08:00-10:00"}
    for node, zone in changes:
        made.node(f"n{node}", {} if zone is None else {ZONE: zone}, cpu=9)
        session = open_at(made, 21, more=windows)
        zones = [spec.labels.get(ZONE, "") for spec in session.nodes.specs]
        assert feasible(session) == [name for name, z in zip(session.nodes.names, zones) if z in ("", "rz1")]
        view = session.view(session.class_of(0))
        assert view.totals(view.feasible()).tolist() == [100.0 if zone == "rz1" else 0.0 for zone in zones]
