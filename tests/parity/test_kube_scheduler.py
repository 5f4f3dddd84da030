"""The product's filters and scores against every recorded answer of kube-scheduler 1.36.1."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.parity.kube_cases import scores, session_of, statuses
from tests.parity.shared_cases import Case, recorded_cases

from navarch.engine.node_functions import NodeFilter
from navarch.plugins.predicates.rule import Rejection, Rule, Wish

CASES = recorded_cases("kube-scheduler")
REJECTED = {"Unschedulable": False, "UnschedulableAndUnresolvable": True}


def check_plugin(case: Case) -> None:
    session, row = session_of(case, {case["plugin"]: case.get("config") or {}})
    task = session.class_of(row)
    expect = case["expect"]
    if "preFilter" in expect or "filter" in expect:
        [rule] = session.filters
        check_filter(expect, rule, rule.applies(task) and isinstance(rule, Rule) and rule.reject(task) or None, {})
        if "filter" in expect:
            wanted = {node: {**status, "reasons": sorted(status["reasons"])} for node, status in expect["filter"].items()}
            assert statuses(session, rule, task) == wanted
        elif expect["preFilter"]["code"] == "Skip":
            assert all(status["code"] == "Success" for status in statuses(session, rule, task).values())
        if "nodes" in expect.get("preFilter", {}):
            assert isinstance(rule, Rule)
            assert sorted(rule.named_nodes(task) or ()) == sorted(expect["preFilter"]["nodes"])
    if "preScore" in expect or "score" in expect:
        [scorer] = session.scorers
        names = case.get("candidates") or list(session.nodes.names)
        problem = scorer.problem(task) if isinstance(scorer, Wish) and scorer.applies(task) else ""
        if "preScore" in expect:
            wanted = expect["preScore"]
            assert problem == (", ".join(wanted["reasons"]) if wanted["code"] == "Error" else "")
            if wanted["code"] == "Skip":
                assert set(scores(session, scorer, task, names)[1].values()) <= {0}
            return
        assert not problem
        raw, final = scores(session, scorer, task, names)
        assert final == expect["score"]
        assert raw == expect["rawScore"]


def check_filter(expect: Case, rule: NodeFilter, rejection: Rejection | None, _: Case) -> None:
    wanted = expect.get("preFilter")
    if wanted is None or wanted["code"] in ("Success", "Skip"):
        assert rejection is None
        return
    assert rejection is not None
    assert rejection.message == ", ".join(wanted["reasons"])
    if wanted["code"] == "Error":
        assert rejection.error
    else:
        assert rejection.unresolvable == REJECTED[wanted["code"]]


PLUGINS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
CHECKS: dict[str, Callable[[Case], None]] = {
    **dict.fromkeys(PLUGINS, check_plugin),
}


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["plugin"] in CHECKS], ids=lambda case: f"{case['suite']}: {case['name']}"
)
def test_recorded_answer(case: Case) -> None:
    CHECKS[case["plugin"]](case)
