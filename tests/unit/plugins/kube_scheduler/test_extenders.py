"""kube-scheduler's extenders of a KubeSchedulerConfiguration, against real HTTP servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.worlds.extender_server import Answers, Seen, extender

import navarch
from navarch import extenders
from navarch.engine.policy import PolicyError
from navarch.engine.policy.credentials import without_credentials
from navarch.engine.policy.kube_scheduler.extenders import FIELDS
from navarch.engine.policy.schema import Nested
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.plugins.kube_scheduler.extenders import ExtenderConfig
from navarch.testing.builders import node, pod

FPGA = "example.com/fpga"
NODES = [node("n1").cpu("8"), node("n2").cpu("8"), node("n3").cpu("8")]


def configuration(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "extenders": list(listed)}


def planned(answers: Answers, objects: list[Any], **fields: Any) -> tuple[Any, Seen]:
    with extender(answers) as seen:
        policy = configuration({"urlPrefix": seen.url, "httpTimeout": "60s", **fields})
        plan = navarch.plan(objects, policy=policy)
    return plan.to_dict()["cycles"][0], seen


def binds(cycle: Any) -> dict[str, str]:
    return {each["pod"].removeprefix("default/"): each["node"] for each in cycle["binds"]}


def reasons(cycle: Any) -> str:
    return " ".join(reason["message"] for job in cycle["jobs"] for reason in job["reasons"])


def names(*kept: str) -> dict[str, Any]:
    return {"body": {"nodenames": list(kept)}}


def test_names_of_nodes_are_filtered() -> None:
    cycle, seen = planned({"filter": [names("n2")]}, [*NODES, pod("p").cpu("1")], filterVerb="filter", nodeCacheCapable=True)
    assert binds(cycle) == {"p": "n2"}
    ((_, body),) = seen.requests
    assert body["NodeNames"] == ["n1", "n2", "n3"] and body["Nodes"] is None
    assert body["Pod"]["metadata"]["name"] == "p"


def test_node_objects_are_filtered() -> None:
    answer = {"body": {"Nodes": {"items": [{"metadata": {"name": "n3"}}]}, "FailedNodes": {"n1": "no"}}}
    cycle, seen = planned({"filter": [answer]}, [*NODES, pod("p").cpu("1")], filterVerb="filter")
    assert binds(cycle) == {"p": "n3"}
    assert [each["metadata"]["name"] for each in seen.requests[0][1]["Nodes"]["items"]] == ["n1", "n2", "n3"]


def test_only_nodes_that_the_filters_leave_are_sent() -> None:
    objects = [node("small").cpu("1"), *NODES[:2], pod("p").cpu("4")]
    _, seen = planned({"filter": [names("n1")]}, objects, filterVerb="filter", nodeCacheCapable=True)
    assert seen.requests[0][1]["NodeNames"] == ["n1", "n2"]


def test_why_nodes_were_refused_is_told() -> None:
    body = {"nodenames": [], "failedNodes": {"n1": "no card", "n2": "no card"}, "failedAndUnresolvableNodes": {"n3": "wrong rack"}}
    cycle, _ = planned({"filter": [{"body": body}]}, [*NODES, pod("p").cpu("1")], filterVerb="filter", nodeCacheCapable=True)
    assert not binds(cycle)
    assert "0/3 nodes are available: 1 wrong rack, 2 no card." in reasons(cycle)


def test_scores_are_weighted() -> None:
    priorities = [{"Host": "n3", "Score": 10}, {"host": "n2", "score": 1}, {"host": "n9", "score": 10}, {"host": "n1"}, 5]
    cycle, _ = planned({"rate": [{"body": priorities}]}, [*NODES, pod("p").cpu("1")], prioritizeVerb="rate", weight=5)
    assert binds(cycle) == {"p": "n3"}


def test_scores_that_cannot_be_had_count_as_none() -> None:
    cycle, seen = planned({"rate": [{"status": 500}]}, [*NODES, pod("p").cpu("1")], prioritizeVerb="rate", weight=5)
    assert list(binds(cycle)) == ["p"] and seen.count("rate") == 1


def test_one_node_is_not_scored() -> None:
    _, seen = planned({}, [NODES[0], pod("p").cpu("1")], prioritizeVerb="rate", weight=5)
    assert not seen.requests


@pytest.mark.parametrize(
    "answer", [{"status": 500}, {"raw": "no json"}, {"raw": "[1]"}, {"raw": '"x"'}, {"body": {"error": "broken"}}]
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_a_filter_that_fails(answer: dict[str, Any], ignorable: bool) -> None:
    cycle, _ = planned({"filter": [answer]}, [*NODES, pod("p").cpu("1")], filterVerb="filter", ignorable=ignorable)
    assert bool(binds(cycle)) is ignorable
    assert ignorable or "extender http://127.0.0.1" in reasons(cycle)


def test_a_filter_that_hangs() -> None:
    objects = [*NODES, pod("p").cpu("1")]
    cycle, _ = planned({"filter": [{"delayMs": 60_000}]}, objects, filterVerb="filter", httpTimeout="100ms")
    assert not binds(cycle) and "no answer within 0.1 s" in reasons(cycle)


def test_only_pods_with_a_managed_resource_concern_it() -> None:
    objects = [node("n1").cpu("8").has(FPGA, 1), pod("plain").cpu("1"), pod("special").cpu("1").request(FPGA, 1)]
    fields = {"filterVerb": "filter", "nodeCacheCapable": True, "managedResources": [{"name": FPGA}]}
    cycle, seen = planned({"filter": [names()]}, objects, **fields)
    assert list(binds(cycle)) == ["plain"]
    assert [body["Pod"]["metadata"]["name"] for _, body in seen.requests] == ["special"]


def test_a_resource_that_the_extender_counts_is_not_counted_here() -> None:
    objects = [node("n1").cpu("8"), pod("special").cpu("1").request(FPGA, 1)]
    managed = [{"name": FPGA, "ignoredByScheduler": True}]
    cycle, _ = planned({"filter": [names("n1")]}, objects, filterVerb="filter", nodeCacheCapable=True, managedResources=managed)
    assert binds(cycle) == {"special": "n1"}
    managed[0]["ignoredByScheduler"] = False
    cycle, _ = planned({"filter": [names("n1")]}, objects, filterVerb="filter", nodeCacheCapable=True, managedResources=managed)
    assert not binds(cycle)


def preempting() -> list[Any]:
    running = [pod(f"old{number}").cpu("8").priority(1).on(f"n{number}").uid(f"uid-old{number}") for number in (1, 2)]
    return [*NODES[:2], *running, pod("new").cpu("8").priority(100)]


@pytest.mark.parametrize("capable", [True, False])
def test_victims_are_reviewed(capable: bool) -> None:
    answer = {"body": {"nodeNameToMetaVictims": {"n2": {"pods": [{"uid": "uid-old2"}]}}}}
    cycle, seen = planned({"preempt": [answer]}, preempting(), preemptVerb="preempt", nodeCacheCapable=capable)
    assert [each["pod"] for each in cycle["evictions"]] == ["default/old2"]
    ((_, body),) = seen.requests
    sent = body["NodeNameToMetaVictims" if capable else "NodeNameToVictims"]
    assert sorted(sent) == ["n1", "n2"] and body["NodeNameToVictims" if capable else "NodeNameToMetaVictims"] is None
    assert sent["n1"]["NumPDBViolations"] == 0 and len(sent["n1"]["Pods"]) == 1


@pytest.mark.parametrize(("answer", "evicted"), [({"body": {"nodeNameToMetaVictims": {}}}, 0), ({"status": 500}, 0)])
def test_a_review_that_leaves_nothing_or_fails(answer: dict[str, Any], evicted: int) -> None:
    cycle, _ = planned({"preempt": [answer]}, preempting(), preemptVerb="preempt")
    assert len(cycle["evictions"]) == evicted
    cycle, _ = planned({"preempt": [{"status": 500}]}, preempting(), preemptVerb="preempt", ignorable=True)
    assert len(cycle["evictions"]) == 1


def test_a_victim_that_is_not_there_is_no_victim() -> None:
    answer = {"body": {"nodeNameToMetaVictims": {"n1": {"pods": [{"uid": "nobody"}]}, "n9": {"pods": []}, "n2": 5}}}
    cycle, _ = planned({"preempt": [answer]}, preempting(), preemptVerb="preempt")
    assert not cycle["evictions"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([{"urlPrefix": "host:80"}], "expected a URL that begins with"),
        ([{"urlPrefix": "http://x", "prioritizeVerb": "p", "weight": 0}], "expected a positive number"),
        ([{"urlPrefix": "http://x", "bindVerb": "b"}] * 2, "found 2 extenders that bind"),
        ([{"urlPrefix": "http://x", "filterVerbs": "f"}], "unknown field of extender 'filterVerbs'"),
        ([{"urlPrefix": "http://x", "httpTimeout": 5}], "httpTimeout"),
    ],
)
def test_a_mistake_in_an_extender_refuses_the_policy(given: list[dict[str, Any]], text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        read_policy(configuration(*given), installed())


def test_https_without_an_authority_is_verified_and_said() -> None:
    policy = read_policy(configuration({"urlPrefix": "https://x", "enableHTTPS": True}), installed())
    assert any("does not verify the certificate" in warning for warning in policy.warnings)


def test_private_keys_are_in_no_recording() -> None:
    found = without_credentials(
        configuration({"urlPrefix": "https://me:pw@x", "tlsConfig": {"keyData": "c2VjcmV0", "caData": "YQ=="}})
    )
    assert found["extenders"] == [{"urlPrefix": "https://x", "tlsConfig": {"keyData": "(removed)", "caData": "YQ=="}}]


def test_every_field_of_an_extender_is_read() -> None:
    declared = {each.name for each in FIELDS}
    assert declared == {field.encode_name for field in msgspec.structs.fields(ExtenderConfig)}
    (tls,) = (each for each in FIELDS if isinstance(each, Nested) and each.name == "tlsConfig")
    source = Path(extenders.__file__).read_text(encoding="utf-8")
    assert [each.name for each in tls.fields if f'"{each.name}"' not in source] == []
