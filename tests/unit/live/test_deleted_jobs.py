"""Deleted jobs: jobs that wait for their resources become active, and a new job of the same name starts afresh."""

from __future__ import annotations

from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, cache, group, pod, put

from navarch.engine.reasons import Event
from navarch.live.core import LiveCore


class World:
    """A cache whose events reach the scheduling queue."""

    def __init__(self) -> None:
        core = LiveCore(SETTINGS, lambda instruction: None)
        self.queue, self.cache = core.queue, core.cache

    def fails(self, job: str, times: int = 1) -> float | None:
        """How long it waits after its last failure, if no other job waits."""
        for _ in range(times):
            self.queue.add_unschedulable(job, (Event.POD_REMOVED,), 1, now=0.0)
        return self.queue.next_retry


def test_a_group_that_goes_is_told_once() -> None:
    made, heard = cache()
    made.put(group("g", 1))
    put(made, pod("a", group="g"))
    heard.notices.clear()
    made.remove(group("g", 1))
    assert heard.notices == [(Event.JOB_CHANGED, "default/g", False), (Event.POD_REMOVED, "", False)]
    made.remove(group("g", 1))
    assert len(heard.notices) == 2


def test_a_group_made_anew_starts_with_the_shortest_wait() -> None:
    world = World()
    world.cache.put(group("g", 1))
    put(world.cache, pod("a", group="g"))
    assert world.fails("default/g", 4) == 8.0
    world.cache.remove(group("g", 1))
    assert world.queue.inactive() == [] and world.queue.attempts("default/g") == 0
    world.cache.put(replace(group("g", 1), uid="another"))
    assert world.fails("default/g") == 1.0


def test_a_pod_made_anew_starts_with_the_shortest_wait() -> None:
    world = World()
    put(world.cache, pod("a"))
    assert world.fails("default/pod/a", 4) == 8.0
    world.cache.remove_pod("uid-a")
    assert world.queue.inactive() == [] and world.queue.attempts("default/pod/a") == 0
    put(world.cache, pod("a"))
    assert world.fails("default/pod/a") == 1.0


def test_a_deleted_group_activates_jobs_that_wait_to_be_admitted() -> None:
    for phase, woken in (("Pending", ["default/other"]), ("Inqueue", [])):
        world = World()
        world.cache.put(replace(group("g", 1, minResources={"cpu": "4"}), phase=phase))
        world.fails("default/other")
        world.cache.remove(group("g", 1))
        assert world.queue.inactive() == woken, phase
