"""When jobs started: known from that moment on, before a PodGroup says so, and also where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.kai_objects import group, node, pod, queue
from tests.worlds.live_parts.kai_core import KaiCore


def bare(name: str, of: str, on: str = "") -> dict[str, Any]:
    made = pod(name, "", gpus=1, on=on)
    made["metadata"] |= {"annotations": {}, "labels": {"kai.scheduler/queue": of}}
    return made


@pytest.fixture
def world() -> KaiCore:
    """Two GPUs; queue b, whose jobs are protected for a minute, may borrow that of queue a."""
    world = KaiCore(node("n", 2))
    world.show_queue(queue("a", "dep", quota=1))
    guarded = queue("b", "dep", quota=1)
    guarded["spec"]["reclaimMinRuntime"] = "60s"
    world.show_queue(guarded)
    return world


def test_the_minimum_run_time_of_a_queue_protects_pods_without_a_group(world: KaiCore) -> None:
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


def test_it_protects_a_group_before_its_object_says_when_it_started(world: KaiCore) -> None:
    for name in ("b-0", "b-1"):
        world.show_group(group(name, "b"))
        world.show(pod(f"{name}-0", name, gpus=1))
    assert len(world.decide()) == 2
    world.now += 0.1
    for name in ("b-0", "b-1"):
        world.show(pod(f"{name}-0", name, gpus=1, on="n"))
        world.show_group(group(name, "b", markUnschedulable=True))
    world.show(bare("a-0", "a"))
    world.decide()
    assert world.evicted == []
    shown = group("b-0", "b")
    shown["metadata"]["annotations"] = {"kai.scheduler/last-start-timestamp": "2026-01-01T00:00:00Z"}
    world.show_group(shown)
    assert list(world.core.assumed.starts) == ["ns/b-1"], "the object says it now"
