"""Clients read the pages of the leader through the API server's proxy, if RBAC gives them the key, on both servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner, Result
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.installing import install_on
from tests.worlds.live.cluster import World
from tests.worlds.live.servers import real_world

from navarch.cli.main import main
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.errors import NotFound
from navarch.kube.resources import PODS
from navarch.live.scheduler import Scheduler
from navarch.views.leader_pages import KEY_HEADER, SECRETS, LeaderPages, PagesUnavailable
from navarch.views.published_state import DecisionsPage, StateAddress, WaitingPage, read_state

pytestmark = pytest.mark.live
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
SAFE = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""What the namespace of an installation asks of its pods."""


def machine_address() -> str:
    """An address of this machine that is not loopback, which kube-apiserver refuses to proxy to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only asks which address a packet would leave from
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


async def leader_pod(world: World, namespace: str, name: str = "leader") -> str:
    """A pod that stands for the scheduler of this process: its IP is the machine's."""
    body = world.pod_body(name, "0", "", "elsewhere")
    body["metadata"]["namespace"] = namespace
    container = {**body["spec"]["containers"][0], "securityContext": RESTRICTED}
    body["spec"].update(containers=[container], securityContext=SAFE)
    await world.client.create(PODS, body, namespace=namespace)
    status = {"status": {"podIP": machine_address(), "podIPs": [{"ip": machine_address()}], "phase": "Running"}}
    await world.client.patch(PODS, name, status, PatchType.MERGE, namespace=namespace, subresource="status")
    return f"pods/{name}"


@contextlib.asynccontextmanager
async def leading(world: World, namespace: str, **options: Any) -> AsyncIterator[Scheduler]:
    """A scheduler that has published where it is reached."""
    reached_as = await leader_pod(world, namespace)
    async with world.scheduler(listen="0.0.0.0:0", reached_as=reached_as, lock_namespace=namespace, **options) as scheduler:
        address = StateAddress.parse(f"{namespace}/navarch")
        await world.eventually(
            lambda: read_state(world.client, address), lambda found: found is not None and found.endpoint is not None
        )
        yield scheduler


async def test_the_pages_of_the_leader_come_through_the_proxy(any_world: World) -> None:
    world = any_world
    await world.node(f"n-{world.namespace}", cpu="4")
    await world.pod("fits", cpu="3")
    await world.pod("large", cpu="2")
    async with leading(world, world.namespace) as scheduler:
        pages = LeaderPages(world.client, StateAddress.parse(f"{world.namespace}/navarch"))
        waiting = await world.eventually(
            lambda: pages.read(WaitingPage), lambda found: [each.job.rpartition("/")[2] for each in found.jobs] == ["large"]
        )
        assert (waiting.jobs[0].place, waiting.jobs[0].of) == (1, 1)
        (bind,) = (await pages.read(DecisionsPage)).decisions
        assert bind.pod == f"{world.namespace}/fits"
        assert b"navarch_leading 1" in await pages.read_bytes("/metrics")
        state = await pages.state()
        assert state is not None and state.leader == scheduler.identity

        # Another replica leads, with another key: the pages are found again.
        secret = await world.client.get(SECRETS, "navarch-pages", namespace=world.namespace)
        wrong = {"data": {"key": "d3Jvbmc="}}
        await world.client.patch(SECRETS, "navarch-pages", wrong, PatchType.MERGE, namespace=world.namespace)
        stale = LeaderPages(world.client, StateAddress.parse(f"{world.namespace}/navarch"))
        with pytest.raises(PagesUnavailable, match="may not read the pages"):
            await stale.read(WaitingPage)
        right = {"data": secret["data"]}
        await world.client.patch(SECRETS, "navarch-pages", right, PatchType.MERGE, namespace=world.namespace)
        assert [each.job for each in (await stale.read(WaitingPage)).jobs] == [f"{world.namespace}/large"]


async def typed(world: World, *arguments: str) -> Result:
    """The command runs its own loop, so it gets a thread."""
    command = [*arguments, "--kubeconfig", str(world.kubeconfig), "--state", f"{world.namespace}/navarch"]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


async def test_commands_tell_what_the_leader_has(any_world: World) -> None:
    world = any_world
    await world.node(f"n-{world.namespace}", cpu="4")
    await world.pod("large", cpu="9")
    async with leading(world, world.namespace):
        pages = LeaderPages(world.client, StateAddress.parse(f"{world.namespace}/navarch"))
        await world.eventually(
            lambda: pages.read(WaitingPage),
            lambda found: any(job.reason is not None and job.last_tried is not None for job in found.jobs),
        )
        shown = await typed(world, "jobs", "-n", world.namespace, "-o", "json")
        (row,) = (each for each in json.loads(shown.stdout)["items"] if each["name"] == "large")
        explained = await typed(world, "explain", f"{world.namespace}/large", "-o", "json")
        (note,) = (each for each in json.loads(explained.stdout)["notes"] if each.startswith("the running scheduler: place 1 of 1"))
        reason = "cannot start: one pod needs 9 CPUs"
        assert "last tried at" in note and reason in note and row["why"].startswith(reason), (row, note)

        await world.client.delete(SECRETS, "navarch-pages", namespace=world.namespace)
        shown = await typed(world, "jobs", "-n", world.namespace)
        assert shown.exit_code == 0 and "large" in shown.stdout, shown.output
        explained = await typed(world, "explain", f"{world.namespace}/large")
        assert explained.exit_code == 0 and "the running scheduler" not in explained.output, explained.output


async def test_a_caller_without_the_key_is_refused_at_the_endpoint(world: World) -> None:
    async with leading(world, "default") as scheduler, aiohttp.ClientSession() as http:
        url = f"http://127.0.0.1:{scheduler.operator_server.health.port}/state/waiting"
        for headers, status in (
            ({"X-Forwarded-For": "10.0.0.7"}, 401),
            ({"X-Forwarded-For": "10.0.0.7", KEY_HEADER: "guessed"}, 403),
            ({"X-Forwarded-For": "10.0.0.7", KEY_HEADER: scheduler.operator_server.publisher.key}, 200),
            ({}, 200),
        ):
            async with http.get(url, headers=headers) as reply:
                assert reply.status == status, (headers, await reply.text())


async def test_without_a_scheduler_or_in_no_pod_the_reason_says_so(world: World) -> None:
    pages = LeaderPages(world.client, StateAddress.parse("default/navarch"))
    with pytest.raises(PagesUnavailable, match="no scheduler publishes its state here"):
        await pages.read(WaitingPage)
    async with world.scheduler(listen="", lock_namespace="default"):
        await world.eventually(lambda: read_state(world.client, StateAddress.parse("default/navarch")), bool)
        pages = LeaderPages(world.client, StateAddress.parse("default/navarch"))
        with pytest.raises(PagesUnavailable, match="does not run in a pod"):
            await pages.read(WaitingPage)


async def test_rbac_decides_which_accounts_read_the_pages(kube_apiserver: KubeApiServer, tmp_path: Path) -> None:
    await asyncio.to_thread(install_on, kube_apiserver, "--web")
    own = await asyncio.to_thread(kube_apiserver.service_account, "navarch-system", "navarch")
    web = await asyncio.to_thread(kube_apiserver.service_account, "navarch-system", "navarch-web")
    tenant = kube_apiserver.user("jane")
    async with real_world(kube_apiserver.kubeconfig, "leader-pages-rbac", tmp_path) as world:
        try:
            async with leading(world, "navarch-system", kubeconfig=own):
                address = StateAddress.parse("navarch-system/navarch")
                async with Client(connect(web)) as client:
                    assert (await LeaderPages(client, address).read(DecisionsPage)).decisions == []
                async with Client(connect(tenant)) as client:
                    with pytest.raises(PagesUnavailable, match=r"may not read the pages of the scheduler .*secrets"):
                        await LeaderPages(client, address).read(DecisionsPage)
        finally:
            with contextlib.suppress(NotFound):
                await world.client.delete(PODS, "leader", namespace="navarch-system", grace_period=0)
