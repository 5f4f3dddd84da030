from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.worlds.live.cluster import World
from tests.worlds.live.servers import embedded_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with embedded_world(tmp_path) as made:
        yield made
