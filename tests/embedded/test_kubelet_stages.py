"""KWOK Stages: pods that one matches follow it, all others behave as ever; what is not understood is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.embedded.hollow_cluster import World

from navarch.embedded.api.errors import ApiError
from navarch.testing.builders import pod

pytestmark = pytest.mark.looptime


def stage(name: str, phase: str, next_: dict[str, Any], **spec: Any) -> dict[str, Any]:
    selector = {
        "matchLabels": {"staged": "yes"},
        "matchExpressions": [
            {"key": ".status.phase", "operator": "In", "values": [phase]},
            {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
        ],
    }
    whole = {"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "selector": selector, "next": next_, **spec}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": whole}


async def test_a_pod_follows_the_stages_that_match_it() -> None:
    async with World() as world:
        world.nodes(1)
        world.create(
            stage(
                "pod-ready",
                "Pending",
                {
                    "event": {"type": "Normal", "reason": "Ready", "message": "by stage"},
                    "statusTemplate": 'phase: Running\nstartTime: {{ Now | Quote }}\npodIP: "{{ PodIP }}"\n'
                    "conditions: [{type: Ready, status: 'True'}]",
                },
                delay={"durationMilliseconds": 3000},
            )
        )
        world.create(
            stage(
                "pod-fail",
                "Running",
                {"statusTemplate": "phase: Failed\nreason: {{ .metadata.annotations.why }}"},
                delay={
                    "durationMilliseconds": 1,
                    "durationFrom": {"expressionFrom": '.metadata.annotations["stage/delay"]'},
                },
            )
        )
        staged = pod("staged").label("staged", "yes").annotate("stage/delay", "1m").annotate("why", "Tired")
        world.create(staged)
        world.create(pod("plain"))
        for name in ("staged", "plain"):
            world.bind(name, "node-000")
        started = world.store.clock()
        await world.until(lambda: world.phase("plain") == "Running")
        assert world.phase("staged") == "Pending"
        await world.until(lambda: world.phase("staged") == "Running")
        assert world.store.clock() - started == pytest.approx(3, abs=0.1)
        status = world.get("pods", "staged")["status"]
        assert status["podIP"].startswith("10.") and status["startTime"].endswith("Z")
        assert {each["type"] for each in status["conditions"]} == {"Ready", "PodScheduled"}
        await world.until(lambda: world.phase("staged") == "Failed")
        assert world.store.clock() - started == pytest.approx(63, abs=0.1)
        assert world.get("pods", "staged")["status"]["reason"] == "Tired"
        assert any(each.obj["message"] == "by stage" for each in world.store.list("events"))
        assert world.phase("plain") == "Running"


async def test_a_stage_may_delete_and_work_on_finalizers() -> None:
    async with World() as world:
        world.nodes(1)
        world.create(stage("keep", "Pending", {"finalizers": {"add": [{"value": "stage/hold"}]}, "statusTemplate": "phase: Running"}))
        world.create(stage("drop", "Running", {"finalizers": {"empty": True}, "delete": True}, delay={"durationMilliseconds": 5000}))
        world.create(pod("a").label("staged", "yes"))
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Running")
        assert world.get("pods", "a")["metadata"]["finalizers"] == ["stage/hold"]
        await world.until(lambda: world.store.find("pods", "default", "a") is None)


async def test_a_pod_that_exceeds_its_node_is_refused_in_spite_of_stages() -> None:
    async with World() as world:
        world.nodes(1, cpu="2")
        world.create(stage("ready", "Pending", {"statusTemplate": "phase: Running"}))
        world.create(pod("a").cpu("3").label("staged", "yes"))
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Failed")
        assert world.get("pods", "a")["status"]["reason"] == "OutOfcpu"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"resourceRef": {"kind": "Node"}}, "spec.resourceRef"),
        ({"next": {"statusTemplate": "{{ range .spec.containers }}{{ end }}"}}, "spec.next.statusTemplate"),
        ({"selector": {"matchExpressions": [{"key": ".a | length", "operator": "In"}]}}, "spec.selector.matchExpressions[0].key"),
        ({"steps": []}, "spec.steps"),
    ],
)
async def test_a_stage_that_cannot_be_followed_is_refused(change: dict[str, Any], field: str) -> None:
    async with World() as world:
        whole = stage("s", "Pending", {"delete": True})
        whole["spec"].update(change)
        with pytest.raises(ApiError) as refused:
            world.create(whole)
        assert refused.value.code == 422
        assert refused.value.causes[0]["field"] == field
