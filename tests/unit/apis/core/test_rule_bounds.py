"""A pod with thousands of rules is refused by name, and its terms cost nobody anything."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.apis.core.rule_bounds import MOST

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
    "status": {"allocatable": {"cpu": "8", "pods": "110"}},
}


def pod(name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    body = {"schedulerName": "navarch", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns", **metadata}, "spec": body}


def far(count: int) -> dict[str, Any]:
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": f"a-{number}"}}} for number in range(count)
    ]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def near(count: int) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}] * count
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}


def spread(count: int) -> dict[str, Any]:
    keys = (f"k-{number}" for number in range(count))
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"} for key in keys]}


@pytest.mark.parametrize(
    ("rules", "what"),
    [
        (far, "terms of pod anti-affinity"),
        (near, "terms of node affinity"),
        (spread, "topology spread constraints"),
        (lambda count: {"tolerations": [{"key": f"k-{n}", "operator": "Exists"} for n in range(count)]}, "tolerations"),
    ],
)
def test_a_pod_with_too_many_rules_is_refused_and_one_below_the_bound_runs(rules: Any, what: str) -> None:
    record = navarch.plan([NODE, pod("many", rules(MOST + 1)), pod("enough", rules(MOST - 2))]).records[0]
    assert [bind.pod for bind in record.binds] == ["ns/enough"]
    (told,) = [refusal.message for job in record.jobs for refusal in job.refusals]
    assert f" {what} (at most {MOST})" in told


def test_of_a_running_pod_the_first_terms_count() -> None:
    running = pod("there", {**far(MOST + 9), "nodeName": "n"})
    running["status"] = {"phase": "Running"}
    kept, cut = (pod(f"like-{number}", {}, labels={"app": f"a-{number}"}) for number in (0, MOST + 1))
    record = navarch.plan([NODE, running, kept, cut]).records[0]
    assert [bind.pod for bind in record.binds] == [f"ns/like-{MOST + 1}"]
