"""Gangs that come together share what is left after their minimums, although each is decided as soon as it comes."""

from __future__ import annotations

from collections import Counter

from tests.worlds.kai_objects import group, node, pod, queue
from tests.worlds.live_parts.kai_core import KaiCore

from navarch.live.surplus import MOST

SETTLE = 0.25


class World(KaiCore):
    """A queue that may hold six GPUs."""

    def __init__(self) -> None:
        super().__init__(node("n", 16), surplus_settle=SETTLE)
        self.show_queue(queue("a", "dep", limit=6))

    def gang(self, name: str, pods: int = 6, least: int = 2, parts: tuple[str, ...] = ()) -> None:
        manifest = group(name, "a", least=least)
        if parts:
            manifest["spec"]["subGroups"] = [{"name": part, "minMember": least // len(parts)} for part in parts]
        self.show_group(manifest)
        for number in range(pods):
            made = pod(f"{name}-{number}", name, gpus=1)
            if parts:
                made["metadata"]["labels"] = {"kai.scheduler/subgroup-name": parts[number % len(parts)]}
            self.show(made)

    def bound_by(self) -> dict[str, int]:
        """The pods of each gang that a cycle binds now. Watches show them afterwards."""
        found = Counter(job.partition("/")[2] for _, job in self.decide())
        for name, _ in self.bound:
            self.show({**self.pods[name], "spec": {**self.pods[name]["spec"], "nodeName": "n"}})
        return dict(found)


def test_two_gangs_that_come_one_after_the_other_share_a_queue() -> None:
    world = World()
    world.gang("x")
    assert world.bound_by() == {"x": 2}, "its minimum at once"
    world.now += 0.1
    world.gang("y")
    assert world.bound_by() == {"y": 2}
    world.now += 0.2
    assert not world.core.surplus.is_due(world.now), "y came 0.2 s ago"
    assert world.bound_by() == {}
    world.now += 0.1
    assert world.core.surplus.is_due(world.now)
    assert world.bound_by() == {"x": 1, "y": 1}


def test_sub_groups_get_their_minimums_at_once() -> None:
    world = World()
    world.gang("x", parts=("left", "right"))
    assert world.bound_by() == {"x": 2}
    parts = Counter(world.pods[name]["metadata"]["labels"]["kai.scheduler/subgroup-name"] for name, _ in world.bound)
    assert parts == {"left": 1, "right": 1}


def test_no_pod_waits_longer_than_some_settling_times() -> None:
    """Also where gangs keep coming to its queue."""
    world = World()
    world.show_queue(queue("a", "dep", limit=16))
    world.gang("x")
    assert world.bound_by() == {"x": 2}
    for number in range(2 * MOST - 1):
        world.now += SETTLE / 2
        world.gang(f"y{number}", pods=2, least=1)
        assert "x" not in world.bound_by()
    world.now += SETTLE / 2
    assert "x" in world.bound_by()


def test_a_gang_that_needs_all_its_pods_and_a_gang_that_runs_do_not_wait() -> None:
    world = World()
    world.gang("x", pods=3, least=3)
    assert world.bound_by() == {"x": 3}
    world.now += 10
    world.show(pod("x-3", "x", gpus=1))
    assert world.bound_by() == {"x": 1}


def test_a_gang_that_is_alone_gets_the_rest_after_one_settling_time() -> None:
    world = World()
    world.gang("x")
    assert world.bound_by() == {"x": 2}
    assert not world.core.surplus.is_due(world.now + SETTLE - 0.01)
    world.now += SETTLE
    assert world.core.surplus.is_due(world.now)
    assert not world.core.surplus.is_due(world.now), "it is said once"
    assert world.bound_by() == {"x": 4}
