"""Accidents of followed systems that no mode imitates are told to a policy that meets them, and to readers of docs/parity.md."""

from __future__ import annotations

from pathlib import Path

from tests.parity.mended import KAI, PLUGINS, VOLCANO

from navarch.engine.policy import load
from navarch.engine.policy.not_followed import NOT_FOLLOWED, not_followed
from navarch.installed import installed

PAGE = (Path(__file__).parents[4] / "docs" / "parity.md").read_text(encoding="utf-8")


def told(actions: str, compat: str = "volcano") -> list[str]:
    tiers = [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]
    return not_followed(load({"compat": compat, "actions": actions, "tiers": tiers}, installed().catalogue()))


def test_a_policy_is_told_what_it_meets() -> None:
    text = "undoing an eviction does not bring the pod back for scores, pod count, ports and affinity in this cycle"
    assert text in told("allocate, preempt")
    assert text not in told("allocate, backfill")
    assert told("allocate, preempt", "strict") == []


def test_the_page_has_every_sentence() -> None:
    assert [each.name for found in NOT_FOLLOWED.values() for each in found if f"| {each.text} |" not in PAGE] == []


def test_names_are_those_of_actions_and_plugins() -> None:
    found = installed().catalogue()
    known = {*found.actions, *found.plugins}
    assert {name for found in NOT_FOLLOWED.values() for each in found for name in each.of.split()} <= known


def test_recorded_cases_are_mended_for_one_of_these_reasons() -> None:
    assert {*KAI} <= {each.name for each in NOT_FOLLOWED["kai"]}
    assert {*VOLCANO, *PLUGINS} <= {each.name for each in NOT_FOLLOWED["volcano"]}
