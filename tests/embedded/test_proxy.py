"""pods/proxy and services/proxy of the embedded server: what the backend gets, and the refusals of kube-apiserver."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from navarch.cli.up.scheduler_service import serve_scheduler
from navarch.embedded.api.server import ApiServer
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.errors import BadRequest, NotFound, ServerFault
from navarch.kube.resources import PODS, Resource

SERVICES = Resource("", "v1", "services")


@contextlib.asynccontextmanager
async def backend() -> AsyncIterator[tuple[int, list[web.BaseRequest]]]:
    """Answers every request with its path and query, and keeps it."""
    got: list[web.BaseRequest] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        got.append(request)
        return web.json_response({"path": request.path_qs}, status=418 if request.path == "/teapot" else 200)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield int(runner.addresses[0][1]), got
    finally:
        await runner.cleanup()


async def read(client: Client, path: str, **more: Any) -> bytes:
    return await client.transport.request("GET", f"/api/v1/namespaces/default/{path}", attempts=1, **more)


async def test_a_request_reaches_a_pod_and_a_service_without_the_credentials_of_the_caller(tmp_path: Path) -> None:
    async with backend() as (port, got), ApiServer() as server, Client(connect(server.kubeconfig(tmp_path / "k"))) as client:
        serve_scheduler(server.operations, "default", port)
        serve_scheduler(server.operations, "default", port)  # as after a restart on the same data directory
        container = {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": port}]}
        await client.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}}, namespace="default")
        status = {"status": {"podIP": "127.0.0.1"}}
        await client.patch(PODS, "p", status, PatchType.MERGE, namespace="default", subresource="status")
        for path in (
            f"pods/http:p:{port}",
            f"pods/p:{port}",
            "pods/p",
            "pods/p:web",
            f"services/navarch:{port}",
            "services/http:navarch:http",
        ):
            assert await read(client, f"{path}/proxy/state/waiting", params={"a": "b c"}) == b'{"path": "/state/waiting?a=b+c"}', path
        assert await read(client, "pods/p/proxy") == b'{"path": "/"}'
        await read(client, "pods/p/proxy/x", headers=(("Navarch-Pages-Key", "k"),))
        assert got[-1].headers["Navarch-Pages-Key"] == "k"
        assert not [request for request in got if "Authorization" in request.headers]
        assert all(request.headers["X-Forwarded-For"] == "127.0.0.1" for request in got)
        with pytest.raises(Exception, match="418"):
            await read(client, "pods/p/proxy/teapot")


async def test_refusals_are_those_of_a_real_server(tmp_path: Path) -> None:
    async with ApiServer() as server, Client(connect(server.kubeconfig(tmp_path / "k"))) as client:
        container = {"name": "c", "image": "i"}
        await client.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}}, namespace="default")
        ports = [{"name": "http", "port": 80}]
        await client.create(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": ports}}, namespace="default")
        for path, kind, message in (
            ("pods/absent", NotFound, 'pods "absent" not found'),
            ("services/absent:80", NotFound, 'services "absent" not found'),
            ("pods/p:80", BadRequest, "address not allowed"),
            ("services/s:80", ServerFault, 'no endpoints available for service "s"'),
            ("services/s:99", ServerFault, 'no service port "99" found for service "s"'),
            ("services/a:b:c:d", BadRequest, 'invalid service request "a:b:c:d"'),
        ):
            with pytest.raises(kind) as caught:
                await read(client, f"{path}/proxy/")
            assert caught.value.message == message, path
        status = {"status": {"podIP": "127.0.0.1"}}
        await client.patch(PODS, "p", status, PatchType.MERGE, namespace="default", subresource="status")
        with pytest.raises(ServerFault, match="error trying to reach service"):
            await read(client, "pods/p:1/proxy/")
