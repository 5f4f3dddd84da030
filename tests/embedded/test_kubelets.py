"""Hollow kubelets: pods run, end, restart, go and are refused as on real nodes. Time is virtual."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.embedded.hollow_cluster import World

from navarch.embedded.kubelets.pod_behaviour import KubeletOptions
from navarch.testing.builders import pod

pytestmark = pytest.mark.looptime


async def test_a_new_node_looks_like_a_real_one() -> None:
    async with World() as world:
        world.nodes(4, cpu="64", memory="512Gi", gpus=8, zones=2, racks=4)
        await world.until(lambda: "taints" not in world.get("nodes", "node-002")["spec"])
        node = world.get("nodes", "node-002")
        labels, status = node["metadata"]["labels"], node["status"]
        assert labels["kubernetes.io/hostname"] == "node-002"
        assert labels["topology.kubernetes.io/zone"] == "hollow-1b"
        assert labels["topology.navarch.io/rack"] == "rack-2"
        assert labels["node.kubernetes.io/instance-type"] == "hollow.gpu8"
        assert status["capacity"]["cpu"] == "64" and status["allocatable"]["cpu"] == "62800m"
        assert status["allocatable"]["nvidia.com/gpu"] == "8"
        assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
        assert "taints" not in node["spec"]
        lease = world.store.get("leases.coordination.k8s.io", "kube-node-lease", "node-002").obj
        assert lease["spec"]["holderIdentity"] == "node-002"


async def test_a_bare_node_is_filled_in() -> None:
    async with World() as world:
        world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
        await world.until(lambda: "taints" not in world.get("nodes", "bare")["spec"])
        node = world.get("nodes", "bare")
        assert node["status"]["allocatable"]["pods"] == "110"
        assert "taints" not in node["spec"]


async def test_a_pod_runs_and_succeeds_after_its_time() -> None:
    async with World() as world:
        world.nodes(1)
        made = pod("a").cpu("1").annotate("navarch.io/run-for", "90s")
        made["spec"]["restartPolicy"] = "Never"
        world.create(made)
        await world.settle()
        assert world.phase("a") == "Pending"
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Running")
        status = world.get("pods", "a")["status"]
        started = world.store.clock()
        assert status["startTime"] and status["podIP"] and status["hostIP"]
        assert status["containerStatuses"][0]["state"]["running"]
        assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
        await world.until(lambda: world.phase("a") == "Succeeded")
        assert world.store.clock() - started == pytest.approx(90, abs=0.5)
        assert world.hollow.kubelets.nodes["node-000"].room.used["cpu"] == 0


async def test_speed_shortens_the_time() -> None:
    async with World(speed=60) as world:
        world.nodes(1)
        made = pod("a").annotate("navarch.io/run-for", "1h").annotate("navarch.io/exit-code", "3")
        made["spec"]["restartPolicy"] = "Never"
        world.create(made)
        world.bind("a", "node-000")
        started = world.store.clock()
        await world.until(lambda: world.phase("a") == "Failed")
        assert world.store.clock() - started == pytest.approx(60, abs=0.5)
        ended = world.get("pods", "a")["status"]["containerStatuses"][0]["state"]["terminated"]
        assert ended["exitCode"] == 3 and ended["reason"] == "Error"


async def test_a_pod_that_starts_late_says_that_it_is_being_made() -> None:
    async with World(options=KubeletOptions(start_after=5)) as world:
        world.nodes(1)
        world.create(pod("a"))
        world.bind("a", "node-000")
        await world.until(lambda: world.get("pods", "a")["status"].get("containerStatuses"))
        status = world.get("pods", "a")["status"]
        assert status["phase"] == "Pending"
        assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
        await world.until(lambda: world.phase("a") == "Running")


async def test_more_than_the_node_has_is_refused() -> None:
    async with World() as world:
        world.nodes(1, cpu="4", gpus=2)
        for name in ("a", "b", "c"):
            world.create(pod(name).limit("nvidia.com/gpu", 1))
            world.bind(name, "node-000")
        world.create(pod("d").cpu("5"))
        world.bind("d", "node-000")
        await world.until(lambda: world.phase("d") == "Failed")
        assert [world.phase(name) for name in "abcd"] == ["Running", "Running", "Failed", "Failed"]
        refused = world.get("pods", "c")["status"]
        assert refused["reason"] == "OutOfnvidia.com/gpu"
        assert "Node didn't have enough resource: nvidia.com/gpu, requested: 1000, used: 2000" in refused["message"]
        assert world.get("pods", "d")["status"]["reason"] == "OutOfcpu"


async def test_too_many_pods_and_the_wrong_node_are_refused() -> None:
    async with World() as world:
        world.nodes(1, pods=1)
        world.create(pod("picky").select("disk", "fast"))
        world.create(pod("a"))
        world.create(pod("b"))
        for name in ("picky", "a", "b"):
            world.bind(name, "node-000")
        await world.until(lambda: world.phase("b") == "Failed")
        assert [world.get("pods", name)["status"].get("reason") for name in ("picky", "a", "b")] == [
            "NodeAffinity",
            None,
            "OutOfpods",
        ]


async def test_deletion_takes_its_grace_and_frees_the_room() -> None:
    async with World(options=KubeletOptions(stop_after=8)) as world:
        world.nodes(1, cpu="2")
        world.create(pod("a").cpu("1500m"))
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Running")
        started = world.store.clock()
        world.delete("pods", "a")
        assert world.get("pods", "a")["metadata"]["deletionTimestamp"]
        world.create(pod("b").cpu("1500m"))
        world.bind("b", "node-000")
        await world.until(lambda: world.phase("b") == "Failed", within=5)
        await world.until(lambda: world.store.find("pods", "default", "a") is None)
        assert world.store.clock() - started == pytest.approx(8, abs=0.5)
        world.create(pod("c").cpu("1500m"))
        world.bind("c", "node-000")
        await world.until(lambda: world.phase("c") == "Running")


async def test_a_short_grace_is_kept() -> None:
    async with World(options=KubeletOptions(stop_after=8)) as world:
        world.nodes(1)
        world.create(pod("a"))
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Running")
        started = world.store.clock()
        world.delete("pods", "a", grace=2)
        await world.until(lambda: world.store.find("pods", "default", "a") is None)
        assert world.store.clock() - started == pytest.approx(2, abs=0.5)


async def test_containers_that_end_are_restarted_with_a_back_off() -> None:
    async with World() as world:
        world.nodes(1)
        world.create(pod("a").annotate("navarch.io/run-for", "5s").annotate("navarch.io/exit-code", "1"))
        world.bind("a", "node-000")

        def container() -> dict[str, Any]:
            return dict(world.get("pods", "a")["status"].get("containerStatuses", [{}])[0])

        await world.until(lambda: container().get("restartCount") == 1)
        await world.until(lambda: "waiting" in container()["state"])
        assert container()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert container()["lastState"]["terminated"]["exitCode"] == 1
        await world.until(lambda: container()["restartCount"] == 3)
        assert world.phase("a") == "Running"


async def test_a_pod_has_to_end_at_its_deadline() -> None:
    async with World() as world:
        world.nodes(1)
        made = pod("a")
        made["spec"]["activeDeadlineSeconds"] = 20
        world.create(made)
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Failed")
        assert world.get("pods", "a")["status"]["reason"] == "DeadlineExceeded"


async def test_a_sleep_is_taken_at_its_word() -> None:
    async with World() as world:
        world.nodes(1)
        made = pod("a")
        made["spec"]["restartPolicy"] = "OnFailure"
        made["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 30"]
        world.create(made)
        world.bind("a", "node-000")
        started = world.store.clock()
        await world.until(lambda: world.phase("a") == "Succeeded")
        assert world.store.clock() - started == pytest.approx(30, abs=0.5)


async def test_an_annotation_that_cannot_be_read_is_told() -> None:
    async with World() as world:
        world.nodes(1)
        world.create(pod("a").annotate("navarch.io/run-for", "soon"))
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Running")
        (event,) = [each.obj for each in world.store.list("events") if each.obj["reason"] == "InvalidAnnotation"]
        assert "metadata.annotations[navarch.io/run-for]: found 'soon'" in event["message"]


async def test_a_silent_node_becomes_unreachable_and_loses_its_pods() -> None:
    async with World() as world:
        world.nodes(2)
        world.create(pod("a"))
        world.create(pod("stays").tolerate("node.kubernetes.io/unreachable", effect="NoExecute"))
        for name in ("a", "stays"):
            world.bind(name, "node-000")
        await world.until(lambda: world.phase("stays") == "Running")
        failed = world.store.clock()
        world.patch("nodes", "node-000", lambda node: node["metadata"].setdefault("annotations", {}).update(_fail("silent")))

        def ready() -> str:
            conditions = world.get("nodes", "node-000")["status"]["conditions"]
            return str(next(each["status"] for each in conditions if each["type"] == "Ready"))

        await world.until(lambda: ready() == "Unknown")
        assert 40 <= world.store.clock() - failed <= 56
        await world.until(lambda: len(world.get("nodes", "node-000")["spec"].get("taints", ())) == 2)
        taints = {(each["key"], each["effect"]) for each in world.get("nodes", "node-000")["spec"]["taints"]}
        assert taints == {("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")}
        await world.until(lambda: world.get("pods", "a")["metadata"].get("deletionTimestamp"))
        assert world.store.clock() - failed >= 340
        assert world.get("pods", "stays")["metadata"].get("deletionTimestamp") is None
        assert ready() == "Unknown" and world.phase("a") == "Running"
        assert all(each["status"] == "True" for each in world.get("nodes", "node-001")["status"]["conditions"][-1:])
        world.patch("nodes", "node-000", lambda node: node["metadata"].pop("annotations"))
        await world.until(lambda: ready() == "True" and "taints" not in world.get("nodes", "node-000")["spec"])
        await world.until(lambda: world.store.find("pods", "default", "a") is None)


async def test_a_node_that_says_it_is_not_ready_is_tainted_at_once() -> None:
    async with World() as world:
        world.nodes(1)
        await world.settle()
        world.patch("nodes", "node-000", lambda node: node["metadata"].setdefault("annotations", {}).update(_fail("not-ready")))
        await world.until(lambda: len(world.get("nodes", "node-000")["spec"].get("taints", ())) == 2, within=10)
        taints = {(each["key"], each["effect"]) for each in world.get("nodes", "node-000")["spec"]["taints"]}
        assert taints == {("node.kubernetes.io/not-ready", effect) for effect in ("NoSchedule", "NoExecute")}


async def test_pods_of_a_node_that_is_gone_are_removed() -> None:
    async with World() as world:
        world.nodes(1)
        world.create(pod("a"))
        world.bind("a", "node-000")
        await world.until(lambda: world.phase("a") == "Running")
        world.delete("nodes", "node-000")
        await world.until(lambda: world.store.find("pods", "default", "a") is None, within=60)


def _fail(how: str) -> dict[str, str]:
    return {"navarch.io/fail": how}
