"""Fixtures that every suite needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def closed_default_loop() -> Iterator[None]:
    """pytest-asyncio asks the policy for a loop when a synchronous test came first, and leaves that one open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
