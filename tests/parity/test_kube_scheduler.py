"""The product's filters and scores against every recorded answer of kube-scheduler 1.36.1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.parity.kube_cases import check_search, scores, session_of, statuses
from tests.parity.pod_requests_judge import check_pod_costs, check_pod_requests
from tests.parity.recorded import ABSENT, Case, cases_of

import navarch
from navarch.actions.kube_scheduler.nominations import Nominations
from navarch.actions.kube_scheduler.preemption import Candidate, NoCandidate, NodeRefusal, PodPreemption
from navarch.actions.kube_scheduler.schedule import nodes_to_find
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.session import Session
from navarch.plugins.nodeorder.allocation import curve
from navarch.plugins.nodeorder.normalise import default_normalise
from navarch.plugins.predicates.pods.default_spread import inferred_selector

CASES = [case for _, _, case in cases_of("kube-scheduler")]


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


def candidate(preemption: PodPreemption, found: Candidate) -> Case:
    session = preemption.session
    return {"victims": sorted(session.task(v).key for v in found.victims), "numPDBViolations": found.violations}


def best_of(preemption: PodPreemption, found: list[Candidate]) -> list[str]:
    """Every node that may be chosen: the rest is a tie."""
    least = min((preemption.cost(each) for each in found), default=())
    return sorted(preemption.session.nodes.names[each.node] for each in found if preemption.cost(each) == least)


def check_dry_run(case: Case, preemption: PodPreemption, row: int) -> None:
    session, expect = preemption.session, case["expect"]
    names = session.nodes.names
    tried = [preemption.dry_run(row, node) for node in range(len(names))]
    found = [each for each in tried if isinstance(each, Candidate)]
    assert {names[each.node]: candidate(preemption, each) for each in found} == expect["candidates"]
    refused = {names[i]: sorted(each.texts) for i, each in enumerate(tried) if isinstance(each, NodeRefusal)}
    assert refused == {node: sorted(status["reasons"]) for node, status in expect.get("rejected", {}).items()}
    assert best_of(preemption, found) == sorted(expect.get("chosen", []))
    check_search(preemption, row, dict(enumerate(tried)))


def check_post_filter(case: Case, preemption: PodPreemption, row: int) -> None:
    session, expect = preemption.session, case["expect"]
    absent = case.get("absentNodesStatus", {"code": "UnschedulableAndUnresolvable"})
    codes = [case["nodeToStatus"].get(name, absent)["code"] for name in session.nodes.names]
    answer = preemption.not_eligible(row) or preemption.find(row, np.array([c == "Unschedulable" for c in codes]))
    if isinstance(answer, NoCandidate):
        assert [f"preemption: {answer.text}"] == expect["status"]["reasons"]
        assert not expect["chosen"]
        return
    assert expect["status"]["code"] == "Success"
    name = session.nodes.names[answer.node]
    assert name in expect["chosen"]
    assert candidate(preemption, answer)["victims"] == sorted(expect["victims"][name])


def check_preemption(case: Case) -> None:
    if "config" in case:
        case = {**case, "config": None}
    plugins: dict[str, dict[str, Any]] = {name: {} for name in case.get("plugins") or ["NodeResourcesFit"]}
    session, row = session_of(case, plugins)
    session.resources_by_filters = True
    preemption = PodPreemption(session, Nominations(session))
    if case["suite"] == "preemption/eligible":
        status = case.get("nominatedNodeStatus", {}).get("code")
        refusal = preemption.not_eligible(row, nominated_unresolvable=status == "UnschedulableAndUnresolvable")
        assert {"eligible": refusal is None, "message": refusal.text if refusal else ""} == case["expect"]
    elif "nodeToStatus" in case:
        check_post_filter(case, preemption, row)
    else:
        check_dry_run(case, preemption, row)


def check_fit_error(case: Case) -> None:
    counts: Counter[str] = Counter(text for status in case["nodeToStatus"].values() for text in status["reasons"])
    nodes = case["numAllNodes"]
    for text in case["absentNodesStatus"]["reasons"]:
        counts[text] += nodes - len(case["nodeToStatus"])
    message = FitErrors(nodes, dict(counts)).available_text(nodes, case["preFilterMsg"], case["postFilterMsg"])
    assert message == case["expect"]["message"]


def check_gates(case: Case) -> None:
    manifest = {"apiVersion": "v1", "kind": "Pod", **case["pod"]}
    record = navarch.plan([manifest], policy="kube-scheduler").records[0]
    said = [refusal.message for job in record.jobs for refusal in job.refusals if refusal.reason == "SchedulingGated"]
    assert said == case["expect"]["preEnqueue"]["reasons"]


def check_normalise(case: Case) -> None:
    raw = np.array(case["scores"], dtype=float)
    found = default_normalise(raw, float(max(case["scores"], default=0)), reverse=case["reverse"])
    assert [value * case["maxPriority"] // 100 for value in found.tolist()] == case["expect"]["scores"]


def check_shape(case: Case) -> None:
    points = tuple((point["utilization"], point["score"]) for point in case["points"])
    xs = np.array([x for x, _ in case["expect"]["values"]], dtype=np.int64)
    assert [list(pair) for pair in zip(xs.tolist(), curve(points, xs).tolist(), strict=True)] == case["expect"]["values"]


def check_sampling(case: Case) -> None:
    own = case.get("profilePercentageOfNodesToScore")
    percentage = case["percentageOfNodesToScore"] if own is None else own
    assert nodes_to_find(case["numAllNodes"], percentage) == case["expect"]["numFeasibleNodes"]


def check_default_selector(case: Case) -> None:
    session, row = session_of({**case, "nodes": []}, {})
    selector = inferred_selector(session, session.task(row))
    assert ",".join(sorted(f"{r.key}={r.values[0]}" for r in selector.requirements)) == case["expect"]["selector"]


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
    "FitError": check_fit_error,
    "DefaultPreemption": check_preemption,
    "SchedulingGates": check_gates,
    "DefaultNormalizeScore": check_normalise,
    "BrokenLinearFunction": check_shape,
    "NumFeasibleNodesToFind": check_sampling,
    "DefaultSelector": check_default_selector,
    "PodRequests": check_pod_requests,
    "PodInfo": check_pod_costs,
    "NodeResourcesScoringRequests": check_pod_costs,
}


@pytest.mark.skipif(not CASES, reason=ABSENT)
def test_every_recording_is_judged() -> None:
    assert len(CASES) == 810
    assert {case["plugin"] for case in CASES} <= set(CHECKS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['suite']}: {case['name']}")
def test_recorded_answer(case: Case) -> None:
    CHECKS[case["plugin"]](case)
