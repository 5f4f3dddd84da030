"""A policy that reads objects differently: the cache is filled anew, and nothing is bound by half of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.apis.dialect import Settings
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Write
from navarch.live.ops.periodic_tasks import PeriodicTasks
from navarch.live.scheduler import Scheduler
from navarch.live.writers.outbox import Outbox


class Informers:
    """Read the cluster when they are told to."""

    def __init__(self) -> None:
        self.may = asyncio.Event()

    async def read_again(self) -> None:
        await self.may.wait()


@pytest.mark.parametrize("leading", [True, False])
async def test_nothing_is_bound_meanwhile_and_only_by_the_leader_afterwards(leading: bool) -> None:
    submitted, informers = Submitted(), Informers()
    outbox = Outbox(submitted.pool)
    parts: dict[str, Any] = dict.fromkeys(("pod_statuses", "group_statuses", "clock"))
    scheduler = SimpleNamespace(
        **parts,
        cache=SimpleNamespace(configure=lambda settings: None, cluster=None),
        informers=informers,
        binder=SimpleNamespace(outbox=outbox),
        rereading=False,
        leading=leading,
    )
    task = asyncio.create_task(PeriodicTasks(cast(Scheduler, scheduler)).reread(Settings()))
    await asyncio.sleep(0)
    outbox.put(lambda: (Write("POST", "/binding", b"{}"), _heard))
    assert (scheduler.rereading, submitted.writes) == (True, [])
    informers.may.set()
    await task
    assert (scheduler.rereading, len(submitted.writes)) == (False, int(leading))


def _heard(outcome: Reply | Exception) -> None:
    return None
