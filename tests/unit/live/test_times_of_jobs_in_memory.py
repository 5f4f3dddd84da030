"""Jobs that are made in memory keep when they started from cycle to cycle, as PodGroups do in their annotations."""

from __future__ import annotations

from typing import Any

from tests.worlds.kai_objects import node, pod, queue
from tests.worlds.live_parts.kai_core import KaiCore


def bare(name: str, of: str, on: str = "") -> dict[str, Any]:
    made = pod(name, "", gpus=1, on=on)
    made["metadata"] |= {"annotations": {}, "labels": {"kai.scheduler/queue": of}}
    return made


def test_the_minimum_run_time_of_a_queue_protects_pods_without_a_group() -> None:
    world = KaiCore(node("n", 2))
    world.show_queue(queue("a", "dep", quota=1))
    guarded = queue("b", "dep", quota=1)
    guarded["spec"]["reclaimMinRuntime"] = "60s"
    world.show_queue(guarded)
    for name in ("b-0", "b-1"):
        world.show(bare(name, "b"))
    assert len(world.decide()) == 2, "b borrows what a does not use"
    for name in ("b-0", "b-1"):
        world.show(bare(name, "b", on="n"))
    world.show(bare("a-0", "a"))
    world.now += 59.0
    world.decide()
    assert world.evicted == []
    world.now += 2.0
    world.core.queue.activate_all()
    world.decide()
    assert len(world.evicted) == 1
