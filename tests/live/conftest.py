from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.envtest.fixtures import kube_apiserver  # noqa: F401
from tests.worlds.kube.ports import held_port
from tests.worlds.live.cluster import World
from tests.worlds.live.servers import serve_volcano, world_on

from navarch.embedded.api.server import ApiServer
from navarch.kube.errors import ApiError, Forbidden


@pytest.fixture(autouse=True)
def frequent_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a leader checks once a second it checks ten times here: many tests wait for it."""
    monkeypatch.setattr("navarch.live.ops.periodic_tasks.PERIOD", 0.1)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """The embedded API server, with its faults on demand."""
    with held_port() as port:
        async with ApiServer(port=port, taint_new_nodes=False) as started:
            yield started


@pytest.fixture
async def world(server: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    made = World(server.kubeconfig(tmp_path / "kubeconfig"), "default", tmp_path)
    yield made
    await made.close()


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every "403" an API server answered in this test, also those that no log shows."""
    heard: list[str] = []

    def made(error: Forbidden, *given: Any, **named: Any) -> None:
        ApiError.__init__(error, *given, **named)
        heard.append(str(error))

    monkeypatch.setattr(Forbidden, "__init__", made)
    return heard


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def any_world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """The same test on both servers."""
    async with world_on(request, tmp_path, serve_volcano) as made:
        yield made
