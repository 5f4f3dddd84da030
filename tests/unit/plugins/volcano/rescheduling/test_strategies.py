"""Strategies of rescheduling as a policy file gives them."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.engine.arguments import WrongKind
from navarch.engine.policy import PolicyError, load
from navarch.installed import installed
from navarch.plugins.volcano.rescheduling.strategies import check_strategy, read_strategies


def lnu(**params: Any) -> dict[str, Any]:
    return {"name": "lowNodeUtilization", "params": params}


def test_without_strategies_the_default_never_finds_a_loaded_node() -> None:
    nothing: list[object] = [None, []]
    for given in nothing:
        found = read_strategies(given)
        assert found.names == ("lowNodeUtilization",) and found.low == found.target == (100.0, 100.0)


def test_the_last_parameters_of_a_strategy_win() -> None:
    found = read_strategies([lnu(thresholds={"cpu": 10}), lnu(thresholds={"cpu": 30, "memory": 20}, targetThresholds={"memory": 5})])
    assert (found.low, found.target) == ((30.0, 20.0), (100.0, 5.0))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["lowNodeUtilization"], "expected a mapping with a name"),
        ([{"params": {}}], "expected a mapping with a name"),
        ([{"name": "lowNodeUtilization", "params": 5}], "params"),
        ([lnu(thresholds=[1])], "expected a mapping such as"),
        ([lnu(targetThresholds={"cpu": 50.5})], "targetThresholds.cpu: found 50.5, expected whole percent"),
        ([lnu(targetThresholds={"cpu": True})], "expected whole percent"),
    ],
)
def test_a_wrong_strategy_names_what_is_expected(given: list[Any], text: str) -> None:
    with pytest.raises(WrongKind, match=text):
        check_strategy(given[0])


def test_a_wrong_entry_is_left_out_alone_where_the_followed_system_does_so() -> None:
    strategies = ["lowNodeUtilization", lnu(thresholds={"cpu": 20}), {"name": 5}]
    document = {
        "actions": "shuffle",
        "compat": "volcano",
        "tiers": [{"plugins": [{"name": "rescheduling", "arguments": {"strategies": strategies}}]}],
    }
    read = load(document, installed().catalogue(), "test")
    assert read.plugins[0].arguments["strategies"] == [lnu(thresholds={"cpu": 20})]
    assert sum("the entry is left out" in text for text in read.warnings) == 2
    with pytest.raises(PolicyError, match=r"strategies\[0\].*expected a mapping with a name"):
        load(document | {"compat": "strict"}, installed().catalogue(), "test")
