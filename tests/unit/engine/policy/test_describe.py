"""What `navarch policy check` says: which plugins are asked, what was switched off, which arguments hold, how answers meet."""

from __future__ import annotations

import json
from typing import Any

from tests.worlds.policy_catalogue import CATALOGUE

from navarch.engine.policy import load, preset
from navarch.engine.policy.describe import describe

DOCUMENT: dict[str, object] = {
    "actions": "allocate, preempt",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False, "enablePredicate": False}]},
        {
            "plugins": [
                {"name": "drf", "enableHierarchy": True},
                {"name": "predicates"},
                {"name": "binpack", "arguments": {"binpack.cpu": 3, "binpack.resources.nvidia.com/gpu": 9}},
            ]
        },
    ],
    "configurations": [{"name": "preempt", "arguments": {"minCandidateNodesPercentage": 20}}],
}


def report(**changes: object) -> dict[str, Any]:
    return describe(load({**DOCUMENT, **changes}, CATALOGUE, "mine"), CATALOGUE)


def points(described: dict[str, Any]) -> dict[str, Any]:
    return {point["point"]: point for point in described["points"]}


def test_the_plugins_of_each_point_are_listed_by_tier() -> None:
    asked = points(report())
    assert asked["job_order"]["plugins"] == [["priority", "gang"], ["drf"]]
    assert asked["preemptable"] == {
        "point": "preemptable",
        "plugins": [["priority"], ["drf"]],
        "switchedOff": ["gang"],
        "combined": "only what every plugin with an opinion offers is evicted; without any opinion, nothing",
    }
    assert asked["predicate"]["plugins"] == [["predicates"]]
    assert asked["node_order"]["plugins"] == [["binpack"]]
    assert "overused" not in asked and "hierarchy" not in asked


def test_only_switches_that_matter_are_shown() -> None:
    gang = report()["tiers"][0][1]
    assert gang["switchedOff"] == ["preemptable"]
    assert report()["tiers"][1][0]["switchedOn"] == ["hierarchy"]


def test_arguments_in_effect_with_where_they_come_from() -> None:
    binpack = report()["tiers"][1][2]
    assert [(a["name"], a["value"], a["given"]) for a in binpack["arguments"]] == [
        ("binpack.weight", 1, False),
        ("binpack.cpu", 3, True),
        ("binpack.resources", "", False),
        ("binpack.resources.nvidia.com/gpu", 9, True),
    ]
    preempt = report()["actions"][1]
    assert [(a["value"], a["given"]) for a in preempt["arguments"]] == [(False, False), (20, True)]


def test_compat_changes_the_words() -> None:
    volcano = report(compat="volcano")
    assert points(volcano)["preemptable"]["combined"].endswith("the first tier that offers any decides alone")
    assert points(report(compat="kube-batch"))["job_starving"]["combined"].startswith("not asked")
    assert report()["departures"] == [] and len(volcano["departures"]) > 5


def test_the_description_is_json() -> None:
    for name in ("navarch", "volcano", "kai", "kube-scheduler"):
        assert json.loads(json.dumps(describe(preset(name, CATALOGUE), CATALOGUE)))["source"] == name
