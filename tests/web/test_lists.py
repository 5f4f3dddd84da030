"""Overview, jobs, queues and nodes of a cluster on the embedded API server, over HTTP."""

from __future__ import annotations

from typing import Any

from tests.worlds.live.cluster import NODES, World
from tests.worlds.web import dashboard
from tests.worlds.web_cluster import GPU, gpu_node, small_cluster

from navarch.kube.client import PatchType


async def test_overview_tells_what_is_used_free_and_useless_and_the_oldest_gang(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = await web.get("overview")
        gpus = next(each for each in found["resources"] if each["resource"] == GPU)
        assert gpus == {"resource": GPU, "total": 16, "used": 8, "free": 8, "useless": 8, "closed": 0}
        assert found["nodes"] == {"total": 2, "ready": 2, "closed": 0}
        assert found["jobs"]["waiting"] == 1
        assert found["oldest"]["id"] == "default/wide"
        assert found["oldest"]["pending"] == 2
        assert found["scheduler"]["available"] is False
        assert found["scheduler"]["reason"]
        assert found["decisions"] is None


async def test_a_cordoned_node_is_closed_and_what_fits_is_of_use(world: World) -> None:
    await small_cluster(world)
    await gpu_node(world, "n3", 8)
    async with dashboard(world) as web:

        def gpus(found: Any) -> Any:
            return next(each for each in found["resources"] if each["resource"] == GPU)

        assert gpus(await web.get("overview"))["useless"] == 8
        await world.client.patch(NODES, "n1", {"spec": {"unschedulable": True}}, PatchType.MERGE)
        found = await web.until("overview", lambda found: found["nodes"]["closed"] == 1)
        assert gpus(found)["closed"] == 4
        assert gpus(found)["total"] == gpus(found)["used"] + gpus(found)["free"] + gpus(found)["closed"] == 24


async def test_jobs_have_columns_places_and_causes(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        rows = await web.rows()
        held, wide = rows["default/held"], rows["default/wide"]
        assert (held["state"], held["running"], held["gpus"], held["place"]) == ("running", 2, 8, None)
        assert (wide["state"], wide["pending"], wide["gpus"], wide["minMember"]) == ("waiting", 2, 16, 2)
        assert (wide["place"], wide["of"], wide["queue"], wide["start"]) == (1, 1, "research", None)


async def test_jobs_are_filtered_sorted_and_cut_on_the_server(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        assert list(await web.rows(state="waiting")) == ["default/wide"]
        assert list(await web.rows(label="user=jane")) == ["default/wide"]
        assert list(await web.rows(label="user")) == ["default/wide"]
        assert not await web.rows(label="user=joe")
        assert list(await web.rows(text="DEFAULT/HE")) == ["default/held"]
        assert len(await web.rows(queue="research")) == 2
        assert not await web.rows(queue="other")
        assert not await web.rows(namespace="other")
        assert list(await web.rows(sort="-gpus", limit=1)) == ["default/wide"]
        assert list(await web.rows(sort="gpus", limit=1, offset=1)) == ["default/wide"]
        found = await web.get("jobs", state="running", limit=0)
        assert (found["total"], found["matched"], found["rows"]) == (2, 1, [])
        for wrong in ({"state": "odd"}, {"sort": "odd"}, {"limit": "-1"}, {"limit": "x"}, {"label": "=x"}, {"text": "x" * 201}):
            answer = await web.get("jobs", 400, **wrong)
            assert answer["error"]["code"] == "Invalid"
            assert next(iter(wrong)) in answer["error"]["message"]


async def test_queues_are_rows_of_the_tree_with_numbers(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = await web.get("queues")
        (research,) = (row for row in found["rows"] if row["name"] == "research")
        assert research["numbers"]["allocated"][GPU] == 8
        assert research["numbers"]["request"][GPU] == 24
        assert research["allocated"][GPU] == "8"
        assert research["jobs"] == {"waiting": 1, "running": 1}
        assert GPU in found["resources"]


async def test_nodes_are_columns_with_domains_and_holders(world: World) -> None:
    await small_cluster(world)
    async with dashboard(world) as web:
        found = await web.get("nodes")
        assert found["names"] == ["n1", "n2"]
        assert found["levels"] == ["topology.kubernetes.io/zone"] or not found["levels"]
        number = found["resources"].index(GPU)
        assert found["allocatable"][number] == [8, 8]
        assert found["used"][number] == [4, 4]
        assert found["useless"][number] == [4, 4]
        assert found["status"] == [1, 1]
        assert found["job"] == {"values": ["default/held"], "index": [0, 0]}
        assert found["queue"] == {"values": ["research"], "index": [0, 0]}


async def test_paths_that_do_not_exist_are_told(world: World) -> None:
    async with dashboard(world) as web:
        for path in ("nothing", "jobs/", "overview/x"):
            assert (await web.get(path, 404))["error"]["code"] == "NotFound"


async def test_devices_that_no_pod_asks_for_are_columns_too(world: World) -> None:
    await gpu_node(world, "n1", 8)
    await world.pod("a", nodeName="n1")
    async with dashboard(world) as web:
        found = await web.get("nodes")
        assert found["used"][found["resources"].index(GPU)] == [0]
        assert found["job"]["index"] == [-1]
