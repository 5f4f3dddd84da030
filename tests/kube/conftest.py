from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.envtest.fixtures import kube_apiserver  # noqa: F401

from navarch.kube.client import Client
from navarch.kube.connect import Endpoint

from .live import embedded, live  # noqa: F401
from .small_api import SmallApi


@pytest.fixture
async def api() -> AsyncIterator[SmallApi]:
    server = await SmallApi().start()
    yield server
    await server.stop()


@pytest.fixture
async def client(api: SmallApi) -> AsyncIterator[Client]:
    async with Client(Endpoint(api.url)) as client:
        yield client
