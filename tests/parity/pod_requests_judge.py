"""Judges what a pod asks for against a recorded answer of kube-scheduler 1.36.1."""

from __future__ import annotations

from typing import Any

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.core.requests import aggregate, footprint, pod_limits, pod_requests, rounded, scoring_request
from navarch.model.quantity import parse_nano


def nano(amounts: dict[str, str]) -> dict[str, int]:
    return {name: parse_nano(amount) for name, amount in amounts.items()}


def check_pod_requests(case: dict[str, Any]) -> None:
    pod = from_manifest(case["pod"], Pod)
    expect, options = case["expect"], case["options"]
    use_status = options.get("useStatusResources", False)
    chosen = {
        "use_status": use_status,
        "overhead": not options.get("excludeOverhead", False),
        "pod_level": not options.get("skipPodLevelResources", False),
    }
    answers = {
        "requests": lambda: pod_requests(pod, **chosen),
        "limits": lambda: pod_limits(pod, **chosen),
        "containerRequests": lambda: aggregate(pod, "requests", use_status=use_status),
        "containerLimits": lambda: aggregate(pod, "limits", use_status=use_status),
    }
    assert {name: answers[name]() for name in expect} == {name: nano(expect[name]) for name in expect}


def check_pod_costs(case: dict[str, Any]) -> None:
    pod = from_manifest(case["pod"], Pod)
    expect = case["expect"]
    if "scoringRequests" in expect:
        assert scoring_request(pod) == (expect["scoringRequests"]["cpu"], expect["scoringRequests"]["memory"])
        return
    requested, costs = expect["requested"], expect["nonZeroRequested"]
    wanted = {"cpu": requested["milliCPU"], "memory": requested["memory"], "ephemeral-storage": requested["ephemeralStorage"]}
    wanted |= {name: amount * 1000 for name, amount in requested["scalarResources"].items()}
    found = dict.fromkeys(wanted, 0) | dict(rounded(pod_requests(pod, use_status=True)))
    assert found == wanted
    assert footprint(pod, use_status=True) == (costs["milliCPU"], costs["memory"])
