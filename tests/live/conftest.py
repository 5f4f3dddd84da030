from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.envtest.fixtures import kube_apiserver  # noqa: F401
from tests.live.world import GROUPS, NAMESPACES, QUEUES, World

from navarch import manifests
from navarch.cluster.server import ApiServer
from navarch.kube.client import Client
from navarch.kube.errors import AlreadyExists
from navarch.kube.resources import CRDS

_numbers = itertools.count()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """The embedded API server, with its faults on demand."""
    async with ApiServer(taint_new_nodes=False) as started:
        yield started


@pytest.fixture
async def world(server: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    made = World(server.kubeconfig(tmp_path / "kubeconfig"), "default", tmp_path)
    yield made
    await made.close()


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def any_world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """The same test on both servers; kube-apiserver is shared by the session, so nodes are removed in the end."""
    if request.param == "embedded":
        async with ApiServer(taint_new_nodes=False) as started:
            made = World(started.kubeconfig(tmp_path / "kubeconfig"), "default", tmp_path)
            yield made
            await made.close()
        return
    real = request.getfixturevalue("kube_apiserver")
    made = World(Path(real.kubeconfig), f"live-{next(_numbers)}", tmp_path)
    await serve_volcano(made.client)
    await made.client.create(NAMESPACES, {"metadata": {"name": made.namespace}})
    yield made
    await made.clean()
    await made.close()


async def serve_volcano(client: Client) -> None:
    """Volcano's kinds on a bare kube-apiserver."""
    for crd in manifests.crds():
        if crd["spec"]["group"] == GROUPS.group:
            with contextlib.suppress(AlreadyExists):
                await client.create(CRDS, crd)
    async with asyncio.timeout(30):
        while not (await client.discovery.serves(GROUPS) and await client.discovery.serves(QUEUES)):
            await asyncio.sleep(0.1)
