"""Running it: health, metrics, policy reload, dry run, recordings, bad objects, a CRD that comes late."""

from __future__ import annotations

import asyncio
import gzip
import re
import shlex
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from tests.worlds.live.broken_wire import BreakingWire
from tests.worlds.live.cluster import GROUPS, World, lasting
from tests.worlds.live.conditions import conditions
from tests.worlds.live.plain_policy import PLAIN

from navarch import manifests
from navarch.cli.replay import replay
from navarch.cli.run import run as run_command
from navarch.embedded.api.server import ApiServer
from navarch.installed import installed
from navarch.kube.client import PatchType
from navarch.kube.resources import CRDS, PODS
from navarch.offline import replay as recordings

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]


async def test_health_tells_when_it_is_ready_and_metrics_what_it_did(world: World) -> None:
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(listen="127.0.0.1:0") as scheduler, aiohttp.ClientSession() as http:
        await world.pod("a")
        await history.until_bound(1)
        base = f"http://127.0.0.1:{scheduler.operator_server.health.port}"
        for path in ("/livez", "/readyz", "/healthz"):
            async with http.get(base + path) as reply:
                assert (reply.status, await reply.text()) == (200, "ok")

        async def metrics() -> str:
            async with http.get(f"{base}/metrics") as reply:
                return await reply.text()

        # The watch may show the binding before its answer has come.
        text = await world.eventually(metrics, lambda found: 'navarch_binds_total{result="ok"} 1.0' in found)
        assert "navarch_leading 1.0" in text and "navarch_pod_wait_seconds_count 1.0" in text
        replies = scheduler.metrics.registry.get_sample_value("navarch_api_writes_total", {"event": "replies"})
        assert replies is not None and replies >= 1
        async with http.get(f"{base}/debug/snapshot") as reply:
            recording = recordings.read(await reply.read())
        assert recording.nodes[0].name == "n0"


async def test_dashboards_of_a_followed_system_find_its_metrics(any_world: World) -> None:
    """The command of docs/metrics.md."""
    (command,) = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE | re.DOTALL)
    words = shlex.split(command)
    given = run_command.make_context("run", words[2:]).params
    chosen = {name: given[name] for name in ("policy", "scheduler_names", "metrics_names")}
    assert chosen == {"policy": "volcano", "scheduler_names": ("volcano",), "metrics_names": "volcano"}
    world = any_world
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(listen="127.0.0.1:0", **chosen) as scheduler, aiohttp.ClientSession() as http:
        await world.pod("a", scheduler="volcano")
        await history.until_bound(1)

        async def metrics() -> str:
            async with http.get(f"http://127.0.0.1:{scheduler.operator_server.health.port}/metrics") as reply:
                return await reply.text()

        text = await world.eventually(metrics, lambda found: 'stage_duration_milliseconds_count{stage="Bind"} 1.0' in found)
        assert 'navarch_binds_total{result="ok"} 1.0' in text and 'volcano_queue_allocated_milli_cpu{queue_name="default"}' in text


async def test_a_server_that_is_not_there_yet_is_waited_for(server: ApiServer, world: World) -> None:
    await world.node("n0")
    await world.pod("early")
    async with BreakingWire(server.port, 1) as wire:
        wire.cut()
        async with world.scheduler(port=wire.port) as scheduler:
            await world.eventually(lambda: asyncio.sleep(0, wire.broken), lambda broken: broken >= 3)
            assert scheduler.operator_server.missing() == ["the API server has not answered yet"]
            wire.rate = 0.0
            await world.eventually(lambda: asyncio.sleep(0, scheduler.operator_server.missing()), lambda missing: missing == [])
            await world.eventually(lambda: world.get_pod("early"), lambda found: found["spec"].get("nodeName"))


async def test_an_address_that_is_taken_is_named(world: World) -> None:
    async with world.scheduler(listen="127.0.0.1:0") as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.operator_server.health.port), bool)
        process = await world.process("--no-leader-elect", f"--listen=127.0.0.1:{scheduler.operator_server.health.port}")
        assert await process.wait() == 2
    assert "expected an address" in (world.folder / "scheduler.log").read_text()


async def test_a_changed_policy_file_is_taken_and_a_bad_one_refused(world: World, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(PLAIN)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(policy=str(policy)) as scheduler:
        await world.pod("a")
        await history.until_bound(1)
        before = scheduler.policy_file.policy
        policy.write_text(PLAIN.replace("gang", "gnag"))
        await world.eventually(lambda: asyncio.sleep(0, scheduler.policy_file.refused), lambda refused: "gnag" in refused)
        assert scheduler.policy_file.policy is before
        await world.pod("b")
        await history.until_bound(2)
        policy.write_text(PLAIN.replace("allocate, backfill", "enqueue, allocate, backfill"))
        await world.eventually(lambda: asyncio.sleep(0, scheduler.policy_file.policy.actions), lambda actions: actions[0] == "enqueue")
        assert scheduler.policy_file.refused == ""
        await world.pod("c")
        await history.until_bound(3)
    history.check()


async def test_a_new_leader_reads_the_policy_file_again(world: World, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(PLAIN)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(policy=str(policy), **lasting()) as first:
        await world.pod("a")
        await history.until_bound(1)
        async with world.scheduler(policy=str(policy), **lasting()) as second:
            await world.eventually(lambda: asyncio.sleep(0, second.operator_server.missing()), lambda missing: missing == [])
            first.stop()
            policy.write_text(PLAIN.replace("allocate, backfill", "backfill"))
            await world.pod("b", scheduler="navarch")
            last = await world.eventually(lambda: asyncio.sleep(0, second.core.last_cycle), bool)
            assert last.policy.actions == ("backfill",)
    assert history.bound() in (["default/a"], ["default/a", "default/b"])  # the first may have been quicker than its end


async def test_a_policy_that_reads_objects_differently_fills_the_cache_again(world: World, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("compat: volcano\n" + PLAIN)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(policy=str(policy)) as scheduler:
        await world.gang("early", 2)
        await history.until_bound(2)
        before = scheduler.cache.settings
        policy.write_text(PLAIN)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.cache.settings), lambda settings: settings != before)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.rereading), lambda reading: not reading)
        assert len(scheduler.cache.cluster.tasks.rows) == 2
        await asyncio.gather(world.pod("fits", cpu="2"), world.pod("does-not", cpu="2"))
        await history.until_bound(3)
    history.check([("early", 2)])


async def test_a_pod_that_cannot_be_decoded_does_not_keep_a_policy_from_being_taken(any_world: World, tmp_path: Path) -> None:
    """A moment before the year 1 is fine with API servers."""
    world = any_world
    policy = tmp_path / "policy.yaml"
    policy.write_text("compat: volcano\n" + PLAIN)
    await world.node("n0")
    await world.pod("odd", cpu="1")
    condition = {"type": "example.com/Odd", "status": "True", "lastTransitionTime": "0000-01-01T00:00:00Z"}
    status = {"status": {"conditions": [condition]}}
    await world.client.patch(PODS, "odd", status, PatchType.MERGE, namespace=world.namespace, subresource="status")
    async with world.scheduler(policy=str(policy)) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.core.last_cycle), bool)
        assert scheduler.informers.pods.counters.bad_objects >= 1
        before = scheduler.cache.settings
        policy.write_text(PLAIN)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.cache.settings), lambda settings: settings != before)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.rereading), lambda reading: not reading)
        await world.pod("good")
        await world.eventually(lambda: world.get_pod("good"), lambda found: found["spec"].get("nodeName"))


async def test_a_dry_run_decides_and_writes_nothing(world: World) -> None:
    await world.node("n0")
    history = await world.watch()
    revision = (await world.client.list(PODS)).resource_version
    async with world.scheduler(dry_run=True) as scheduler:
        await world.pod("a")
        await world.eventually(
            lambda: asyncio.sleep(0, scheduler.core.last_cycle), lambda last: last is not None and len(last.record.binds) == 1
        )
        pod = await world.get_pod("a")
        assert int(pod["metadata"]["resourceVersion"]) > int(revision)
        assert int((await world.client.list(PODS)).resource_version) == int(pod["metadata"]["resourceVersion"])
    assert history.bound() == []


async def test_a_recorded_cycle_replays_byte_for_byte(world: World, tmp_path: Path) -> None:
    await world.node("n0")
    await world.node("n1")
    history = await world.watch()
    secret: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "env": [{"name": "TOKEN", "value": "hush"}]}]}
    async with world.scheduler(record=tmp_path / "cycles"):
        await world.pod("early", **secret)
        await history.until_bound(1)
        # While one is being written no other is recorded.
        await world.eventually(lambda: asyncio.sleep(0, list((tmp_path / "cycles").glob("cycle-*"))), bool)
        await world.gang("fits", 4)
        await world.gang("waits", 9)
        await history.until_bound(5)
    files = sorted((tmp_path / "cycles").glob("cycle-*.json.gz"))
    assert len(files) >= 2
    for file in files:
        recording = recordings.read(file)
        assert recordings.decisions(recordings.again(recording, installed())) == bytes(recording.decisions)
        assert b"hush" not in gzip.decompress(file.read_bytes())
    same = CliRunner().invoke(replay, [str(files[-1])])
    assert (same.exit_code, same.output.splitlines()[0]) == (0, "the same decisions as then")
    (tmp_path / "nothing.yaml").write_text(PLAIN.replace("allocate, backfill", "backfill"))
    other = CliRunner().invoke(replay, [str(files[-1]), "--policy", str(tmp_path / "nothing.yaml")])
    assert other.exit_code == 1
    assert "-> nothing" in other.output


async def test_an_object_that_cannot_be_read_is_set_aside_and_the_rest_goes_on(world: World) -> None:
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler() as scheduler:
        body = {
            "apiVersion": GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": "bad", "namespace": "default"},
            "spec": {"minMember": -2},
        }
        await world.client.create(GROUPS, body, namespace="default")
        await world.pod("good")
        await history.until_bound(1)
        said = await world.eventually(lambda: world.events("bad"), bool)
        assert said[0][:2] == ("Warning", "InvalidObject")
        assert "spec.minMember" in said[0][2]
        assert scheduler.metrics.registry.get_sample_value("navarch_bad_objects_total", {"kind": "PodGroup"}) == 1


async def test_a_node_pool_sees_its_own_nodes_only(world: World) -> None:
    await world.node("ours", cpu="1", pool="a")
    await world.node("theirs", cpu="8", pool="b")
    history = await world.watch()
    async with world.scheduler(node_pool_label_key="pool", partition_label_value="a"):
        await world.pod("a")
        await world.pod("b")
        await history.until(lambda: (len(history.bound()), len(history.waiting())) == (1, 1), "one fits, one waits")
        pod = await world.eventually(
            lambda: world.get_pod(history.waiting()[0].partition("/")[2]), lambda found: "PodScheduled" in conditions(found)
        )
        assert conditions(pod)["PodScheduled"]["status"] == "False"
    assert set(history.node_of.values()) == {"ours"}


async def test_a_crd_that_comes_late_is_watched_from_then_on(world: World) -> None:
    crds = {crd["metadata"]["name"]: crd for crd in manifests.crds()}
    volcano = [f"{plural}.scheduling.volcano.sh" for plural in ("podgroups", "queues")]
    for name in volcano:
        await world.client.delete(CRDS, name)
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler() as scheduler:
        await world.pod("single")
        await history.until_bound(1)
        assert not scheduler.informers.serves(GROUPS)
        for name in volcano:
            await world.client.create(CRDS, crds[name])
        await world.eventually(lambda: world.client.discovery.serves(GROUPS), bool)
        await world.gang("gang", 2)
        await history.until_bound(3)
        await world.eventually(lambda: world.get_group("gang"), lambda found: found.get("status", {}).get("phase") == "Running")
    history.check([("gang", 2)])


UNHEALTHY_AFTER = """
from navarch.engine.plugin import Plugin


class Failing(Plugin):
    name = "failing"

    def job_valid(self, job):
        if job.key.endswith("poison"):
            raise RuntimeError("this plugin cannot bear poison")
"""


async def test_a_plugin_that_fails_is_told_of_and_the_scheduler_goes_on(world: World, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "failing.py").write_text(UNHEALTHY_AFTER)
    policy = tmp_path / "policy.yaml"
    policy.write_text(PLAIN.replace("{name: gang}", "{name: gang}, {name: failing}"))
    await world.node("n0")
    history = await world.watch()
    async with world.scheduler(policy=str(policy), plugin_dirs=(tmp_path / "plugins",), period=0.05) as scheduler:
        await world.pod("good")
        await history.until_bound(1)
        await world.pod("poison")
        missing = await world.eventually(lambda: asyncio.sleep(0, scheduler.operator_server.missing()), bool)
        assert "this plugin cannot bear poison" in missing[0]
        await world.client.delete(PODS, "poison", namespace="default")
        await world.pod("after")
        await history.until_bound(2)
        assert scheduler.operator_server.missing() == []
