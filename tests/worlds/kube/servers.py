"""API servers to test against: the embedded one, and a real kube-apiserver where one can be had."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.envtest.server import KubeApiServer
from tests.worlds.kube.ports import held_port

from navarch.embedded.api.server import ApiServer
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import AlreadyExists
from navarch.kube.resources import PODS, Resource

NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
NODES = Resource("", "v1", "nodes", namespaced=False)


@dataclass
class Live:
    """A server, a client of it, and a namespace of this test's own."""

    endpoint: Endpoint
    client: Client
    namespace: str
    embedded: ApiServer | None = None

    async def pod(self, name: str, **spec: Any) -> dict[str, Any]:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"schedulerName": "navarch", "containers": [{"name": "c", "image": "x"}], **spec},
        }
        made: dict[str, Any] = await self.client.create(PODS, body, namespace=self.namespace)
        return made

    async def node(self, name: str) -> None:
        try:
            await self.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        except AlreadyExists:
            return


@asynccontextmanager
async def open_live(kubeconfig: Path, embedded: ApiServer | None = None) -> AsyncIterator[Live]:
    endpoint = connect(kubeconfig)
    async with Client(endpoint) as client:
        namespace = f"kube-{uuid.uuid4().hex[:8]}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await client.create(NAMESPACES, body)
        yield Live(endpoint, client, namespace, embedded)


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[Live]:
    """The embedded API server, whose faults can be made to happen."""
    with held_port() as port:
        async with ApiServer(port=port) as server, open_live(server.kubeconfig(tmp_path / "kubeconfig"), server) as live:
            yield live


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def live(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Live]:
    """Each test once on the embedded API server and once on a real one."""
    if request.param == "embedded":
        async with ApiServer() as server, open_live(server.kubeconfig(tmp_path / "kubeconfig"), server) as each:
            yield each
    else:
        real: KubeApiServer = request.getfixturevalue("kube_apiserver")
        async with open_live(Path(real.kubeconfig)) as each:
            yield each
