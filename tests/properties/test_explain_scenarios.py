"""Every scenario's waiting jobs are explained, and every claim holds when it is tried through `navarch.plan`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.explained_judge import complaints
from tests.worlds.scenarios import manifests, policy_of, scenarios

import navarch


@pytest.mark.parametrize("scenario", [pytest.param(s, id=name) for name, s in scenarios() if "extender" not in s])
def test_waiting_jobs_of_a_scenario_are_explained(scenario: dict[str, Any]) -> None:
    objects, policy, now = manifests(scenario), policy_of(scenario), scenario.get("now", 1000.0)
    cycle = navarch.plan(objects, policy, now=now).to_dict()["cycles"][0]
    waiting = [job["job"] for job in cycle["jobs"] if job["pods"].get("Pending")]
    for job in [each for each in waiting if ":" not in each][:3]:  # the judge finds pods by the name of their job
        answer = navarch.explain(objects, job, policy, now, trials=40, seconds=600).to_dict()
        assert complaints(objects, answer, policy, now) == [], (job, answer["cause"])
