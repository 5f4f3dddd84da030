"""The usage plugin in a session: what counts as young, and what undoing does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.plugin_session import World

from navarch.engine.policy import PolicyError
from navarch.installed import installed
from navarch.model.node_load import NodeLoad, put_loads
from navarch.model.status import TaskStatus
from navarch.offline.policies import read_policy
from navarch.plugins.volcano.usage.plugin import Usage

NOW = 1000.0


def world() -> World:
    found = World().node("n1", cpu=8, memory="16Gi").queue("q").job("j", min_member=1)
    put_loads(found.cluster, {"n1": NodeLoad({"10m": 50.0}, {"10m": 50.0}, NOW)})
    return found


def policy(arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"actions": "allocate", "tiers": [{"plugins": [{"name": "usage", "arguments": arguments}]}], **more}


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"status": TaskStatus.BOUND}, True),
        ({"status": TaskStatus.BINDING}, True),
        ({"status": TaskStatus.RUNNING, "started": NOW - 29}, True),
        ({"status": TaskStatus.RUNNING, "started": NOW - 30}, False),
        ({"status": TaskStatus.RUNNING, "started": None}, True),
        ({"status": TaskStatus.RELEASING, "started": NOW - 1}, False),
    ],
)
def test_which_pods_count_as_not_measured(fields: dict[str, Any], counts: bool) -> None:
    session = world().pods("j", node="n1", cpu=1, **fields).session(Usage, now=NOW)
    plugin = session.plugins[0]
    assert isinstance(plugin, Usage)
    assert bool(plugin.unmeasured.amount[0, 0]) is counts


def test_discarding_a_placement_takes_its_estimate_away() -> None:
    session = world().pods("j", 2, cpu=1).session(Usage, now=NOW)
    plugin = session.plugins[0]
    assert isinstance(plugin, Usage)
    job = session.all_jobs()[0]
    rows = list(job.tasks)
    statement = session.statement()
    statement.allocate(job, rows, [0, 0], session.class_of(rows[0]))
    assert plugin.unmeasured.amount[0, 0] == pytest.approx(2 * 700.0)
    statement.discard()
    assert plugin.unmeasured.amount[0, 0] == 0.0


def test_a_pod_that_stays_after_all_is_not_new() -> None:
    session = world().pods("j", node="n1", cpu=1, started=0.0).session(Usage, now=NOW)
    plugin = session.plugins[0]
    assert isinstance(plugin, Usage)
    statement = session.statement()
    statement.evict(next(iter(session.all_jobs()[0].tasks)))
    statement.discard()
    assert not plugin.unmeasured.amount[0, 0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"thresholds": {"cpu": 120}}, "found 120, expected 100 or less"),
        ({"thresholds": {"memory": 50}}, "unknown argument of thresholds of plugin usage 'memory'"),
        ({"thresholds": "cpu=50"}, "expected a mapping"),
        ({"estimator": {"request_ratio": "1"}}, "expected a number"),
        ({"estimator": {"be_cpu": -1}}, "expected a whole number or a quantity"),
        ({"estimator": {"be_mem": "much"}}, "expected a whole number or a quantity"),
        ({"usage.weight": -1}, "expected 0 or more"),
    ],
)
def test_strict_mode_refuses_what_volcano_ignores(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        read_policy(policy(arguments), installed())
    tolerant = read_policy(policy(arguments, compat="volcano"), installed())
    assert any(text in warning for warning in tolerant.warnings)


def test_one_wrong_threshold_leaves_the_other() -> None:
    chosen = read_policy(policy({"thresholds": {"cpu": 60.5, "mem": 30}}, compat="volcano"), installed())
    assert chosen.plugins[0].arguments["thresholds"] == {"mem": 30}
