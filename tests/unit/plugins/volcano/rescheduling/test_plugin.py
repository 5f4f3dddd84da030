"""Rescheduling in a session: the interval, and which pods it spares in strict mode."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.plugin_session import World

from navarch.model.node_load import NodeLoad, put_loads
from navarch.model.objects.last_runs import put_last_runs
from navarch.plugins.volcano.rescheduling.plugin import Rescheduling

NOW = 10_000.0
ARGUMENTS = {
    "interval": 60.0,
    "metricsPeriod": "10m",
    "strategies": [
        {"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": 40}, "targetThresholds": {"cpu": 50}}},
    ],
}


def world(age: float = 0.0) -> World:
    found = World().node("n1", cpu=10, memory="10Gi").node("n2", cpu=10, memory="10Gi").queue("q").job("j", min_member=1)
    loads = {"n1": NodeLoad({"10m": 90.0}, {}, NOW - age), "n2": NodeLoad({"10m": 5.0}, {}, NOW - age)}
    put_loads(found.cluster, loads)
    return found


def victims(found: World, **arguments: Any) -> list[str] | None:
    session = found.session(Rescheduling, now=NOW, arguments={**ARGUMENTS, **arguments})
    plugin = session.plugins[0]
    assert isinstance(plugin, Rescheduling)
    rows = [row for row, spec in enumerate(session.snapshot.tasks.specs) if spec is not None]
    named = plugin.victim_tasks(rows)
    return None if named is None else sorted(session.task(row).name for row in named)


@pytest.mark.parametrize(("since", "runs"), [(None, True), (59.0, False), (60.0, False), (61.0, True)])
def test_victims_are_named_once_an_interval(since: float | None, runs: bool) -> None:
    found = world().pods("j", node="n1", cpu=1)
    if since is not None:
        put_last_runs(found.cluster, {"rescheduling": NOW - since})
    assert (victims(found) is not None) is runs


def test_the_record_says_that_it_ran() -> None:
    session = world().pods("j", node="n1", cpu=1).session(Rescheduling, now=NOW, arguments=ARGUMENTS)
    session.victim_tasks([0])
    assert session.record.last_runs == {"rescheduling": NOW}


@pytest.mark.parametrize("fields", [{"preemptable": False}, {"pod_priority": 2_000_000_000}])
def test_pods_that_must_stay(fields: dict[str, Any]) -> None:
    found = victims(world().pods("j", node="n1", cpu=1, **fields))
    assert found == []


def test_old_figures_are_not_trusted() -> None:
    found = victims(world(age=301.0).pods("j", node="n1", cpu=1))
    assert not found


def test_another_strategy_moves_nothing() -> None:
    assert victims(world().pods("j", node="n1", cpu=1), strategies=[{"name": "highNodeUtilization"}]) is None
