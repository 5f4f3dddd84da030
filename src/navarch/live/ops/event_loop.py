"""The event loop of a long-running command: uvloop's where it is installed, otherwise asyncio's.

uvloop takes about a third less CPU for the same writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_event_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a loop of its own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
