"""A full cluster where many jobs wait: which one starts when a pod ends, on the embedded API server and on kube-apiserver."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.worlds.live.cluster import World

from navarch.engine.record import CycleRecord
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live

FIT, WAIT = 4, 60


def refused(pod: dict[str, Any]) -> bool:
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod.get("status", {}).get("conditions") or ())


async def test_the_place_of_a_pod_that_ends_goes_to_the_oldest_job_and_few_others_are_tried(
    any_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = any_world
    await world.node("n0", cpu=str(FIT))
    history = await world.watch()
    async with world.scheduler() as scheduler:
        # No job is retried because its back-off ends, also after the policy set its own back-off.
        scheduler.queue.set_backoff(3600.0, 3600.0)
        monkeypatch.setattr(scheduler.queue, "set_backoff", lambda initial, longest: None)
        for number in range(FIT):
            await world.pod(f"first-{number}")
        await history.until_bound(FIT)
        waiting = [f"later-{number:02d}" for number in range(WAIT)]
        for name in waiting:
            await world.pod(name)
        await asyncio.gather(*(world.eventually(partial(world.get_pod, name), refused) for name in waiting))
        # That a queue is open concerns every job, and may be seen late.
        queues, queue = scheduler.cache.cluster.queues, scheduler.queue
        await world.eventually(lambda: asyncio.sleep(0, (queues["default"].state, len(queue))), lambda seen: seen == ("Open", WAIT))
        tried: list[int] = []
        commit = scheduler.core.commit

        def counting(record: CycleRecord, now: float) -> None:
            tried.append(sum(decision.job.startswith(f"{world.namespace}/pod/later-") for decision in record.jobs))
            commit(record, now)

        monkeypatch.setattr(scheduler.core, "commit", counting)
        for number in range(FIT):
            await world.client.delete(PODS, f"first-{number}", namespace=world.namespace, grace_period=0)
            await history.until_bound(number + 1, "later")
        assert 0 < max(tried) <= 4 * FIT, tried
        placed = [name for name in waiting if (await world.get_pod(name))["spec"].get("nodeName")]
        assert placed == waiting[:FIT]
    history.check(lost=False)
