"""ExtenderClient are asked for cycles without a cluster: `plan` is a shell that asks, and `explain` one that asks on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from navarch.engine.points.conversation import Exchange, Manifest
from navarch.engine.record import CycleRecord


def decide_asking(
    decide: Callable[[list[Exchange] | None], CycleRecord], manifest: Callable[[Manifest], Any], *, asks: bool
) -> CycleRecord:
    """Run a cycle, and ask what it asks if it may."""
    record = decide([] if asks else None)
    return ask_extenders(record, decide, manifest) if record.question is not None or record.notices else record


def ask_extenders(
    record: CycleRecord, decide: Callable[[list[Exchange]], CycleRecord], manifest: Callable[[Manifest], Any]
) -> CycleRecord:
    """The decided cycle. A caller inside of an event loop waits as well: `plan` is not asynchronous."""
    # An HTTP client takes longer to import than all else that `plan` needs, and few policies name an extender.
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from navarch.extenders import ExtenderClient, converse

    async def ask() -> CycleRecord:
        extenders = ExtenderClient(manifest)
        try:
            decided = await converse(record, decide, extenders)
            await extenders.tell(decided.notices)
            return decided
        finally:
            await extenders.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(ask())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, ask()).result()
