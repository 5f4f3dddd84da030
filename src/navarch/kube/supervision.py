"""How a long-running task is kept running: the caller decides, and hands in a `Supervise`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Work = Callable[[], Awaitable[None]]
Supervise = Callable[[str, Work], Awaitable[None]]
"""`supervise(name, work)` runs `work()`. It may run it again when it raises."""


async def run_once(name: str, work: Work) -> None:
    """Without supervision: what the work raises is raised."""
    await work()
