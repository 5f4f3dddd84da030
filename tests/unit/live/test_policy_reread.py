"""A policy that reads objects differently: the cache is filled again, and nothing is bound meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from tests.worlds.live_parts.offline_scheduler import scheduling, sent_by

from navarch.kube.write.pool import Outcome, Write


def ignore(outcome: Outcome) -> None:
    return None


@pytest.mark.parametrize("leading", [True, False])
async def test_nothing_is_bound_meanwhile_and_only_by_the_leader_afterwards(leading: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scheduling() as scheduler:
        scheduler.core.leading = leading
        may_read = asyncio.Event()
        monkeypatch.setattr(scheduler.informers, "read_again", may_read.wait)
        rereading = asyncio.create_task(scheduler.periodic_tasks.reread(scheduler.read_settings()))
        await asyncio.sleep(0)
        scheduler.writers.binder.outbox.put(lambda: (Write("POST", "/binding", b"{}"), ignore))
        assert (scheduler.rereading, sent_by(scheduler).writes) == (True, [])
        may_read.set()
        await rereading
        assert (scheduler.rereading, len(sent_by(scheduler).writes)) == (False, int(leading))


async def test_an_incomplete_cache_is_filled_when_the_lead_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lead is lost while all objects are read again for a new policy."""
    async with scheduling() as scheduler:
        reads: list[str] = []
        begun, may_read = asyncio.Event(), asyncio.Event()

        async def read_again() -> None:
            reads.append("begun")
            begun.set()
            await may_read.wait()
            reads.append("done")

        monkeypatch.setattr(scheduler.informers, "read_again", read_again)
        checking = asyncio.create_task(scheduler.periodic_tasks.reread(scheduler.read_settings()))
        async with asyncio.timeout(60):
            await begun.wait()
        checking.cancel()
        await asyncio.gather(checking, return_exceptions=True)
        assert scheduler.rereading, "no cycle may run on an incomplete cache"
        may_read.set()
        await scheduler.periodic_tasks.check_policy()
        assert (scheduler.rereading, reads) == (False, ["begun", "begun", "done"])
