"""The whole scheduler under the very account that `navarch install` makes, on a real API server: nothing is forbidden."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.deploy.installing import run_install
from tests.envtest.server import KubeApiServer
from tests.live.test_eviction import classes
from tests.live.world import NAMESPACES, QUEUES, World

pytestmark = pytest.mark.live


@pytest.fixture
async def installed(kube_apiserver: KubeApiServer, tmp_path: Path) -> AsyncIterator[tuple[World, Path]]:
    await asyncio.to_thread(run_install, kube_apiserver.kubeconfig)
    account = await asyncio.to_thread(kube_apiserver.service_account, "navarch-system", "navarch")
    world = World(Path(kube_apiserver.kubeconfig), "least-privilege", tmp_path)
    await world.client.create(NAMESPACES, {"metadata": {"name": world.namespace}})
    yield world, account
    await world.clean()
    await world.close()


async def test_a_scheduler_with_exactly_its_rights_does_all_its_work(
    installed: tuple[World, Path], caplog: pytest.LogCaptureFixture
) -> None:
    world, account = installed
    caplog.set_level(logging.INFO)
    await classes(world)
    await world.node("n0", cpu="4")
    history = await world.watch()
    async with world.scheduler(kubeconfig=account, leader_elect=True, lock_namespace="navarch-system"):
        await world.gang("low", 4, priorityClassName=f"low-{world.namespace}")
        await history.until_bound(4)
        await world.eventually(
            lambda: world.get_group("low"), lambda found: found.get("status", {}).get("phase") == "Running"
        )
        await world.eventually(
            lambda: world.client.get(QUEUES, "default"), lambda found: found.get("status", {}).get("state") == "Open"
        )
        await world.pod("high", cpu="4", priorityClassName=f"high-{world.namespace}")
        await history.until_bound(1, "high")
        await world.pod("too-large", cpu="64")
        await world.eventually(lambda: world.events("too-large"), bool)
    refused = [record.getMessage() for record in caplog.records if "403" in record.getMessage()]
    assert refused == []
    assert history.broken == []
