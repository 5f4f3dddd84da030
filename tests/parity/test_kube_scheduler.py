"""The product's filters and scores against every recorded answer of kube-scheduler 1.36.1."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.parity.kube_cases import scores, session_of, statuses
from tests.parity.shared_cases import Case, recorded_cases

from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.session import Session

CASES = recorded_cases("kube-scheduler")


def check_plugin(case: Case) -> None:
    session, row = session_of(case, {case["plugin"]: case.get("config") or {}})
    task = session.class_of(row)
    expect = case["expect"]
    if "preFilter" in expect or "filter" in expect:
        check_filter(session, task, expect)
    if "preScore" in expect or "score" in expect:
        check_score(session, task, expect, case.get("candidates") or list(session.nodes.names))


def check_filter(session: Session, task: TaskClass, expect: Case) -> None:
    [rule] = session.filters
    assert isinstance(rule, NodeFilter)
    rejection = rule.reject(task) if rule.applies(task) else None
    before = expect.get("preFilter") or {"code": "Success"}
    if before["code"] not in ("Success", "Skip"):
        assert rejection is not None
        assert rejection.message == ", ".join(before["reasons"])
        assert rejection.error == (before["code"] == "Error")
        assert rejection.unresolvable == (before["code"] != "Unschedulable")
        return
    wanted = {node: {**status, "reasons": sorted(status["reasons"])} for node, status in expect.get("filter", {}).items()}
    failures = {text for status in wanted.values() if status["code"] == "Error" for text in status["reasons"]}
    if failures:  # kube-scheduler finds out at the first node, we before
        assert rejection is not None and rejection.error
        assert {rejection.message} == failures
        return
    assert rejection is None
    if before["code"] == "Skip":
        assert all(status["code"] == "Success" for status in statuses(session, rule, task).values())
    else:
        assert statuses(session, rule, task) == wanted
    if "nodes" in before:
        assert sorted(rule.named_nodes(task) or ()) == sorted(before["nodes"])


def check_score(session: Session, task: TaskClass, expect: Case, candidates: list[str]) -> None:
    [scorer] = session.scorers
    assert isinstance(scorer, NodeScorer)
    problem = scorer.problem(task) if scorer.applies(task) else ""
    before = expect.get("preScore") or {"code": "Success"}
    assert problem == (", ".join(before["reasons"]) if before["code"] == "Error" else "")
    if problem:
        return
    raw, final = scores(session, scorer, task, candidates)
    if before["code"] == "Skip":
        assert set(final.values()) <= {0}
    else:
        assert final == expect["score"]
        assert raw == expect["rawScore"]


PLUGINS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
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
