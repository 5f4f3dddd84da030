"""The state that the leader publishes: the ConfigMap, the pages of its endpoint, and the clients that use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.worlds.live.cluster import World

from navarch.cli.main import main
from navarch.kube.resources import Resource
from navarch.views.published_state import (
    CyclesPage,
    DecisionsPage,
    PublishedState,
    StateAddress,
    WaitingPage,
    read_page,
    read_state,
)

pytestmark = pytest.mark.live
KAI_QUEUES = Resource("scheduling.run.ai", "v2", "queues", namespaced=False)
HERE = StateAddress.parse("default/navarch")


async def published(world: World, accept: Any = lambda state: state is not None) -> PublishedState:
    found = await world.eventually(lambda: read_state(world.client, HERE), accept)
    assert isinstance(found, PublishedState)
    return found


async def typed(world: World, *arguments: str) -> Result:
    command = [*arguments, "--kubeconfig", str(world.kubeconfig)]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


async def test_policy_names_and_shares_are_in_a_config_map(world: World) -> None:
    await world.node("n0")
    async with world.scheduler(policy="volcano", scheduler_names=("navarch", "volcano"), listen="") as scheduler:
        state = await published(world)
        assert (state.policy.name, state.policy.dialect, state.scheduler_names) == ("volcano", "volcano", ["navarch", "volcano"])
        assert state.leader == scheduler.identity
        assert [share.queue for share in state.queues] == ["default", "root"]
        await world.pod("a", scheduler="volcano")
        await published(world, lambda found: found.queues[0].allocated.get("cpu", "0") != "0")


async def test_the_state_is_written_only_when_it_changed(world: World) -> None:
    await world.node("n0")
    async with world.scheduler(listen="") as scheduler:
        first = await published(world)
        cycles = scheduler.core.cycles
        await world.eventually(lambda: asyncio.sleep(0.05, scheduler.core.cycles), lambda number: number > cycles + 3)
        assert (await published(world)).time == first.time


async def test_a_policy_that_changes_is_published_without_its_passwords(world: World, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n")
    await world.node("n0")
    async with world.scheduler(policy=str(file), listen=""):
        before = await published(world)
        text = "compat: volcano\nactions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n"
        file.write_text(f"{text}metrics: {{type: elasticsearch, address: 'https://me:hush@db:9200', elasticsearch.password: hush}}\n")
        after = await published(world, lambda found: found.policy.hash != before.policy.hash)
        assert "hush" not in msgspec.json.encode(after).decode()
        assert after.policy.document["metrics"]["address"] == "https://db:9200"


async def test_the_pages_tell_order_reasons_cycles_and_decisions(world: World) -> None:
    await world.node("n0", cpu="4")
    async with world.scheduler(listen="127.0.0.1:0") as scheduler:
        await world.pod("fits", cpu="3")
        await world.pod("large", cpu="2")
        await world.pod("huge", cpu="9")
        url = f"http://127.0.0.1:{await world.eventually(lambda: asyncio.sleep(0, scheduler.operator_server.health.port), bool)}"
        await world.eventually(lambda: asyncio.sleep(0, scheduler.leading), bool)
        endpoint = world.client.endpoint

        async def waiting() -> WaitingPage:
            return await read_page(endpoint, url, WaitingPage)

        page = await world.eventually(waiting, lambda found: [job.reason is not None for job in found.jobs] == [True, True])
        assert {job.job for job in page.jobs} == {"default/large", "default/huge"}
        assert [(job.place, job.of, job.overall) for job in page.jobs] == [(1, 2, 1), (2, 2, 2)]
        assert all(job.reason is not None and job.reason.code and job.reason.message and job.reason.next for job in page.jobs)
        assert all(job.last_tried is not None for job in page.jobs)
        cycles = (await read_page(endpoint, url, CyclesPage)).cycles
        assert sum(cycle.bound for cycle in cycles) == 1
        assert [cycle.cycle for cycle in cycles] == sorted((cycle.cycle for cycle in cycles), reverse=True)
        assert {"snapshot", "open", "allocate", "close", "commit"} <= cycles[0].parts.keys()
        (bind,) = (await read_page(endpoint, url, DecisionsPage)).decisions
        assert (bind.kind, bind.pod, bind.node) == ("bind", "default/fits", "n0")
        assert (await read_page(endpoint, url, PublishedState)).leader == scheduler.identity
        async with aiohttp.ClientSession() as http, http.get(f"{url}/") as reply:
            text = await reply.text()
            assert all(path in text for path in ("/metrics", "/state/waiting", "/debug/snapshot"))
        shown = await typed(world, "jobs", "--state", url)
        assert "never" in shown.output and ("1/2" in shown.output or "2/2" in shown.output), shown.output


async def test_a_page_needs_a_token_from_elsewhere_and_a_leader(world: World) -> None:
    async with world.scheduler(listen="127.0.0.1:0") as scheduler, aiohttp.ClientSession() as http:
        port = await world.eventually(lambda: asyncio.sleep(0, scheduler.operator_server.health.port), bool)
        url = f"http://127.0.0.1:{port}/state/waiting"
        await world.eventually(lambda: asyncio.sleep(0, scheduler.leading), bool)
        async with http.get(url, headers={"Host": "evil.example"}) as reply:
            assert reply.status == 401
        scheduler.core.stop_leading()
        async with http.get(url) as reply:
            assert (reply.status, await reply.text()) == (503, "no cycle yet: ask the replica that leads (navarch_leading 1)\n")


async def test_clients_use_the_policy_that_runs(world: World) -> None:
    await world.node("n0")
    shares = {name: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for name in ("cpu", "memory", "gpu")}
    queue = {"apiVersion": KAI_QUEUES.api_version, "kind": "Queue", "metadata": {"name": "team"}, "spec": {"resources": shares}}
    await world.client.create(KAI_QUEUES, queue)
    async with world.scheduler(policy="kai", scheduler_names=("mine",), listen=""):
        await published(world)
        queues = await typed(world, "queues")
        assert "FAIR SHARE" in queues.output, queues.output
        other = await typed(world, "queues", "--policy", "volcano")
        assert "FAIR SHARE" not in other.stdout
        assert "--policy volcano differs from the policy that runs (kai, hash" in other.stderr
        assert (await typed(world, "queues", "--policy", "kai")).stderr == ""
        await world.pod("a", scheduler="mine", cpu="1000")
        jobs = await typed(world, "jobs")
        assert "other scheduler" not in jobs.stderr and "a" in jobs.stdout
        explained = await typed(world, "explain", "queue/team")
        assert explained.exit_code == 0 and "differs" not in explained.output, explained.output
        against = await typed(world, "explain", "queue/team", "--policy", "volcano", "-o", "json")
        assert "--policy volcano differs from the policy that runs (kai" in against.output, against.output
