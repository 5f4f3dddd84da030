"""Fixtures that every suite needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings


@pytest.fixture(scope="session", autouse=True)
def closed_default_loop() -> Iterator[None]:
    """pytest-asyncio asks the policy for a loop when a synchronous test came first, and leaves that one open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


# A slow machine is not a wrong answer: no test fails for the time an example takes.
settings.register_profile("navarch", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("navarch")
