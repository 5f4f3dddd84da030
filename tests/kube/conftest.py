from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.envtest.fixtures import kube_apiserver  # noqa: F401

from navarch.kube.client import Client
from navarch.kube.connect import Endpoint

from .live import embedded, live  # noqa: F401
from .small_api import SmallApi


@pytest.fixture(scope="session", autouse=True)
def closed_default_loop() -> Iterator[None]:
    """pytest-asyncio asks the policy for a loop when a synchronous test came first, and leaves that one open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


@pytest.fixture
async def api() -> AsyncIterator[SmallApi]:
    server = await SmallApi().start()
    yield server
    await server.stop()


@pytest.fixture
async def client(api: SmallApi) -> AsyncIterator[Client]:
    async with Client(Endpoint(api.url)) as client:
        yield client
