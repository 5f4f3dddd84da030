"""The pages of one job, one queue and one node."""

from __future__ import annotations

from tests.worlds.live.cluster import World
from tests.worlds.web import dashboard
from tests.worlds.web_cluster import GPU, gpu_pod, small_cluster

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS


async def test_a_waiting_job_is_explained_without_trials(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = await web.get("jobs/default/wide")
        assert found["job"]["id"] == "default/wide"
        assert found["labels"] == {"user": "jane"}
        assert found["requests"] == {"cpu": 2, GPU: 16}
        answer = found["explanation"]
        assert (answer["job"], answer["state"], answer["complete"]) == ("default/wide", "pending", False)
        assert answer["cause"]["code"]
        assert answer["nodes"]["total"] == 2
        assert answer["nodes"]["feasible"] == 0
        assert (answer["order"]["place"], answer["order"]["of"], answer["order"]["queue"]) == (1, 1, "research")
        assert "blocking jobs" in answer["notEstablished"]
        assert found["members"]["total"] == 2
        members = [dict(zip(found["members"]["columns"], row, strict=True)) for row in found["members"]["rows"]]
        assert [(each["pod"], each["status"], each["node"]) for each in members] == [
            ("wide-1", "Pending", None),
            ("wide-2", "Pending", None),
        ]
        assert [each["what"] for each in found["timeline"]] == ["created", "created"]
        assert found["events"] == []


async def test_a_running_job_names_its_nodes(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = await web.get("jobs/default/held")
        assert found["explanation"]["state"] == "running"
        assert "n1, n2" in found["explanation"]["cause"]["message"]
        assert found["explanation"]["complete"] is True
        assert [row[3] for row in found["members"]["rows"]] == ["n1", "n2"]


async def test_a_job_is_found_by_its_id_and_by_its_name_and_others_are_told(world: World) -> None:
    await world.node("n1")
    await world.pod("single")
    async with dashboard(world) as web:
        assert (await web.get("jobs/default/pod/single"))["job"]["name"] == "single"
        assert (await web.get("jobs/default/single"))["job"]["id"] == "default/pod/single"
        error = (await web.get("jobs/default/singel", 404))["error"]
        assert error["near"] == ["default/single"]


async def test_a_queue_shows_how_its_share_came_about(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = await web.get("queues/research")
        assert found["queue"]["name"] == "research"
        assert found["explanation"]["steps"][0]["text"] == "the cluster has"
        assert found["explanation"]["waiting"][0]["job"] == "default/wide"
        assert (await web.get("queues/reserch", 404))["error"]["near"] == ["research"]


async def test_a_node_shows_its_devices_pods_and_what_it_refuses(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = await web.get("nodes/n1")
        assert found["node"]["status"] == "Ready"
        assert found["node"]["free"][GPU] == "4"
        assert [each["use"] for each in found["devices"]] == ["whole"] * 4 + ["free"] * 4
        assert found["devices"][0]["pods"] == [{"pod": "default/held-1", "part": 1}]
        assert found["zones"] is None
        (pod,) = (dict(zip(found["pods"]["columns"], row, strict=True)) for row in found["pods"]["rows"])
        assert (pod["pod"], pod["job"], pod["queue"], pod["gpus"]) == ("default/held-1", "default/held", "research", 4)
        (shape,) = found["explanation"]["waiting"]
        assert shape["refused"] == [f"Insufficient {GPU}"]
        assert found["explanation"]["useless"][GPU] == "4"
        assert (await web.get("nodes/n11", 404))["error"]["near"]


async def test_hostile_texts_pass_through_as_they_are(world: World) -> None:
    """Labels and messages are data: the API neither changes nor interprets them."""
    label = "x_-.y"
    await world.node("n1")
    await world.group("evil", 1)
    await gpu_pod(world, "evil-0", 0, "evil", labels={"user": label})
    message = '</script><script>alert(1)</script> "quoted" \u2028 \u202e\n\\u0000 javascript:'
    body = {
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}],
        }
    }
    await world.client.patch(PODS, "evil-0", body, PatchType.MERGE, namespace="default", subresource="status")
    async with dashboard(world) as web:
        assert (await web.rows())["default/evil"]["cause"] == message
        found = await web.get("jobs/default/evil")
        assert found["members"]["rows"][0][-1] == message
        assert found["labels"] == {"user": label}
        async with web.session.get("/api/v1/jobs") as answer:
            assert answer.content_type == "application/json"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        for path in ("jobs/default/%3Cscript%3E", "nodes/%00", "queues/..%2f..%2fetc"):
            async with web.session.get(f"/api/v1/{path}") as answer:
                assert answer.status == 404
                assert answer.content_type == "application/json"
