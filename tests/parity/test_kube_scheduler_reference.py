"""The slow reference against every recorded answer of kube-scheduler 1.36.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.parity.recorded import ABSENT, Case, cases_of
from tests.reference import requests
from tests.reference.cluster import Cluster, key_of
from tests.reference.cycle import DEFAULT_ARGS, PLUGINS, score
from tests.reference.node_name import scheduling_gates
from tests.reference.normalise import broken_linear, default_normalise, nodes_to_find
from tests.reference.preemption import Candidate, best_nodes, dry_run, eligible, post_filter
from tests.reference.spread import default_selector, write_selector
from tests.reference.status import NOT_LOOKED_AT, Status, fit_error

from navarch.model.quantity import parse_nano

CASES = [case for _, _, case in cases_of("kube-scheduler")]
WITHOUT_PRE_FILTER = {"NodeName", "NodeUnschedulable", "TaintToleration"}


def plain(status: Status) -> Case:
    """A status as the recordings write it; the order of reasons means nothing."""
    written: Case = {"code": status.code, "reasons": sorted(status.reasons)}
    return written if status.nodes is None else {**written, "nodes": sorted(status.nodes)}


def recorded(status: Case) -> Case:
    return {**status, "reasons": sorted(status["reasons"])}


def read_status(status: Case) -> Status:
    return Status(status["code"], tuple(status["reasons"]))


def cluster_of(case: Case) -> Cluster:
    return Cluster(case["nodes"], case["existingPods"], case["objects"])


def answer_plugin(case: Case) -> Case:
    cluster = cluster_of(case)
    expect = case["expect"]
    plugin = PLUGINS[case["plugin"]](cluster, case["pod"], case.get("config"))
    found: Case = {}
    if "preFilter" in expect or "filter" in expect:
        status = plugin.pre_filter()
        if case["plugin"] not in WITHOUT_PRE_FILTER:
            found["preFilter"] = plain(status)
        if status.ok:
            found["filter"] = {name: plain(plugin.filter(node)) for name, node in cluster.nodes.items()}
    if "preScore" in expect or "score" in expect:
        names = case.get("candidates", cluster.nodes)
        scores = score(plugin, [cluster.nodes[name] for name in names])
        if scores.pre_score.ok:
            found |= {"rawScore": scores.raw, "score": scores.final}
        else:
            found["preScore"] = plain(scores.pre_score)
    return found


def expected_plugin(expect: Case) -> Case:
    wanted = dict(expect)
    for key in ("preFilter", "preScore"):
        if key in wanted:
            wanted[key] = recorded(wanted[key])
            if "nodes" in wanted[key]:
                wanted[key]["nodes"] = sorted(wanted[key]["nodes"])
    if "filter" in wanted:
        wanted["filter"] = {node: recorded(status) for node, status in wanted["filter"].items()}
    return wanted


def check_plugin(case: Case) -> None:
    assert answer_plugin(case) == expected_plugin(case["expect"])


def check_requests(case: Case) -> None:
    pod, options, expect = case["pod"], case["options"], case["expect"]
    flags = {
        "use_status": options.get("useStatusResources", False),
        "skip_pod_level": options.get("skipPodLevelResources", False),
        "exclude_overhead": options.get("excludeOverhead", False),
    }
    answers: dict[str, Callable[[], dict[str, int]]] = {
        "requests": lambda: requests.pod_requests(pod, **flags),
        "limits": lambda: requests.pod_limits(pod, **flags),
        "containerRequests": lambda: requests.aggregate(pod, "requests", flags["use_status"]),
        "containerLimits": lambda: requests.aggregate(pod, "limits", flags["use_status"]),
    }
    for key, wanted in expect.items():
        assert answers[key]() == {name: parse_nano(amount) for name, amount in wanted.items()}


def check_pod_info(case: Case) -> None:
    cost = requests.placed_cost(case["pod"])
    defaulted = requests.placed_scoring_cost(case["pod"])
    scalars = {name: amount for name, amount in cost.items() if requests.scalar(name)}
    assert case["expect"] == {
        "requested": {
            "milliCPU": cost["cpu"],
            "memory": cost["memory"],
            "ephemeralStorage": cost["ephemeral-storage"],
            "scalarResources": scalars,
        },
        "nonZeroRequested": {"milliCPU": defaulted["cpu"], "memory": defaulted["memory"]},
    }


def check_scoring_requests(case: Case) -> None:
    cost = requests.incoming_scoring_cost(case["pod"])
    for resource, amount in case["expect"]["scoringRequests"].items():
        assert cost[resource] == amount


def check_fit_error(case: Case) -> None:
    statuses = {node: read_status(status) for node, status in case["nodeToStatus"].items()}
    absent = read_status(case["absentNodesStatus"])
    message = fit_error(case["numAllNodes"], statuses, absent, case["preFilterMsg"], case["postFilterMsg"])
    assert message == case["expect"]["message"]


def written_candidate(candidate: Candidate) -> dict[str, Any]:
    return {"victims": sorted(map(key_of, candidate.victims)), "numPDBViolations": candidate.violations}


def check_dry_run(case: Case) -> None:
    cluster = cluster_of(case)
    tried = {name: dry_run(cluster, case["pod"], name, case["plugins"], DEFAULT_ARGS) for name in cluster.nodes}
    candidates = {name: result for name, result in tried.items() if isinstance(result, Candidate)}
    rejected = {name: plain(result) for name, result in tried.items() if isinstance(result, Status)}
    expect = case["expect"]
    assert {name: written_candidate(candidate) for name, candidate in candidates.items()} == expect["candidates"]
    assert rejected == {name: recorded(status) for name, status in expect.get("rejected", {}).items()}
    assert best_nodes(candidates) == sorted(expect.get("chosen", []))


def check_post_filter(case: Case) -> None:
    statuses = {node: read_status(status) for node, status in case["nodeToStatus"].items()}
    absent = read_status(case["absentNodesStatus"]) if "absentNodesStatus" in case else NOT_LOOKED_AT
    outcome = post_filter(cluster_of(case), case["pod"], statuses, absent, case["plugins"], DEFAULT_ARGS)
    expect = case["expect"]
    assert plain(outcome.status) == recorded(expect["status"])
    assert outcome.chosen == sorted(expect["chosen"])
    victims = {node: written_candidate(outcome.candidates[node])["victims"] for node in outcome.chosen}
    assert victims == {node: sorted(names) for node, names in expect.get("victims", {}).items()}


def check_eligible(case: Case) -> None:
    status = read_status(case["nominatedNodeStatus"]) if "nominatedNodeStatus" in case else None
    message = eligible(cluster_of(case), case["pod"], status)
    assert {"eligible": not message, "message": message} == case["expect"]


def check_preemption(case: Case) -> None:
    if case["suite"] == "preemption/eligible":
        check_eligible(case)
    elif "nodeToStatus" in case:
        check_post_filter(case)
    else:
        check_dry_run(case)


def check_gates(case: Case) -> None:
    assert plain(scheduling_gates(case["pod"])) == recorded(case["expect"]["preEnqueue"])


def check_normalise(case: Case) -> None:
    found = default_normalise(case["scores"], case["maxPriority"], reverse=case["reverse"])
    assert found == case["expect"]["scores"]


def check_shape(case: Case) -> None:
    points = [(point["utilization"], point["score"]) for point in case["points"]]
    assert [[x, broken_linear(points, x)] for x, _ in case["expect"]["values"]] == case["expect"]["values"]


def check_sampling(case: Case) -> None:
    found = nodes_to_find(case["numAllNodes"], case["percentageOfNodesToScore"], case.get("profilePercentageOfNodesToScore"))
    assert found == case["expect"]["numFeasibleNodes"]


def check_default_selector(case: Case) -> None:
    cluster = Cluster((), (), case["objects"])
    assert write_selector(default_selector(cluster, case["pod"])) == case["expect"]["selector"]


CHECKS: dict[str, Callable[[Case], None]] = {
    **dict.fromkeys(PLUGINS, check_plugin),
    "PodRequests": check_requests,
    "PodInfo": check_pod_info,
    "NodeResourcesScoringRequests": check_scoring_requests,
    "FitError": check_fit_error,
    "DefaultPreemption": check_preemption,
    "SchedulingGates": check_gates,
    "DefaultNormalizeScore": check_normalise,
    "BrokenLinearFunction": check_shape,
    "NumFeasibleNodesToFind": check_sampling,
    "DefaultSelector": check_default_selector,
}


@pytest.mark.skipif(not CASES, reason=ABSENT)
def test_all_recordings_are_here() -> None:
    assert len(CASES) == 810
    assert len({(case["suite"], case["name"]) for case in CASES}) == 810


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['suite']}: {case['name']}")
def test_recorded_answer(case: Case) -> None:
    CHECKS[case["plugin"]](case)
