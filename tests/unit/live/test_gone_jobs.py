"""Jobs that go: who waits on their account hears of it, and another of the same name starts afresh."""

from __future__ import annotations

from msgspec.structs import replace
from tests.unit.live.test_live_mirror import SETTINGS, group, mirror, pod, put

from navarch.engine.reasons import Event
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.loop import Loop
from navarch.live.queue.scheduling_queue import SchedulingQueue


class World:
    """A mirror whose news reach those who wait, as in the scheduler."""

    def __init__(self) -> None:
        self.holding = SchedulingQueue()
        self.mirror = ClusterCache(SETTINGS, AssumedPods(), Loop(self.holding, lambda: None).notice)
        self.mirror.on_gone = self.holding.forget
        self.mirror.pods = {}

    def fails(self, job: str, times: int = 1) -> float:
        """How long it waits after its last failure."""
        for _ in range(times):
            self.holding.failed(job, (Event.POD_REMOVED,), 1, now=0.0)
        return self.holding._jobs[job].until


def test_a_group_that_goes_is_told_once() -> None:
    made, heard = mirror()
    made.put(group("g", 1))
    put(made, pod("a", group="g"))
    heard.notices.clear()
    made.remove(group("g", 1))
    assert heard.notices == [(Event.JOB_CHANGED, "default/g", False), (Event.POD_REMOVED, "", False)]
    made.remove(group("g", 1))
    assert len(heard.notices) == 2


def test_a_group_made_anew_starts_with_the_shortest_wait() -> None:
    world = World()
    world.mirror.put(group("g", 1))
    put(world.mirror, pod("a", group="g"))
    assert world.fails("default/g", 4) == 8.0
    world.mirror.remove(group("g", 1))
    assert world.holding.asleep() == [] and world.holding._jobs == {}
    world.mirror.put(replace(group("g", 1), uid="another"))
    assert world.fails("default/g") == 1.0


def test_a_pod_made_anew_starts_with_the_shortest_wait() -> None:
    world = World()
    put(world.mirror, pod("a"))
    assert world.fails("default/pod/a", 4) == 8.0
    world.mirror.remove_pod("uid-a")
    assert world.holding.asleep() == [] and world.holding._jobs == {}
    put(world.mirror, pod("a"))
    assert world.fails("default/pod/a") == 1.0


def test_who_waits_to_be_admitted_hears_of_a_group_that_gives_its_place_up() -> None:
    for phase, woken in (("Pending", ["default/other"]), ("Inqueue", [])):
        world = World()
        world.mirror.put(replace(group("g", 1, minResources={"cpu": "4"}), phase=phase))
        world.fails("default/other")
        world.mirror.remove(group("g", 1))
        assert world.holding.asleep() == woken, phase
