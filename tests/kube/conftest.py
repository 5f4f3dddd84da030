from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from tests.envtest.fixtures import kube_apiserver  # noqa: F401
from tests.worlds.kube.servers import embedded, live  # noqa: F401
from tests.worlds.kube.small_api import SmallApi

from navarch.kube.client import Client
from navarch.kube.connect import Endpoint


@pytest.fixture
async def ahead(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Move the loop's clock on by hand: what waits for a time-out need not be waited for, and a slow machine cannot be late."""
    loop, moved = asyncio.get_running_loop(), [0.0]
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + moved[0])

    def move(seconds: float) -> None:
        moved[0] += seconds
        loop.call_soon(lambda: None)  # it may wait for a moment that has now come

    return move


@pytest.fixture
async def api() -> AsyncIterator[SmallApi]:
    server = await SmallApi().start()
    yield server
    await server.stop()
    server.close()


@pytest.fixture
async def client(api: SmallApi) -> AsyncIterator[Client]:
    async with Client(Endpoint(api.url)) as client:
        yield client
