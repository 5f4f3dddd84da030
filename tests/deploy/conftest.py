"""Objects that Navarch ships, checked by a real API server where one can be had."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.envtest.fixtures import kube_apiserver
from tests.envtest.server import KubeApiServer

from navarch.kube.client import Client
from navarch.kube.connect import connect

__all__ = ["admin", "kube_apiserver"]


@pytest_asyncio.fixture
async def admin(kube_apiserver: KubeApiServer) -> AsyncIterator[Client]:
    """A client that may do everything."""
    async with Client(connect(kube_apiserver.kubeconfig)) as client:
        yield client
