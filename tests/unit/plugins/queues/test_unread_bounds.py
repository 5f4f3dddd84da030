"""Warnings about quotas and limits of queue objects that the policy does not enforce."""

from __future__ import annotations

import pytest
from tests.worlds.plugin_session import World

from navarch.engine.plugin import Plugin
from navarch.model.spec import QueueShare
from navarch.plugins.capacity.plugin import Capacity
from navarch.plugins.proportion import Proportion

BOUNDED = {"gpu": QueueShare(quota=2, limit=4), "cpu": QueueShare(quota=-1)}
UNBOUNDED = {"gpu": QueueShare(quota=-1), "cpu": QueueShare(quota=-1)}


def warnings_of(world: World, plugin: type[Plugin], **switches: bool) -> list[str]:
    return [each for each in world.session(plugin, switches=switches).record.warnings if each.startswith("Queue")]


def tree() -> World:
    world = World().node("n", cpu=12).queue("team", parent="root", capability={"cpu": 2}).queue("other", capability={"cpu": 2})
    return world.queue("below", parent="team").job("a", "below").pods("a", 1, cpu=1)


@pytest.mark.parametrize("plugin", [Proportion, Capacity])
def test_a_capability_above_other_queues_is_named_where_no_tree_is_divided(plugin: type[Plugin]) -> None:
    (warning,) = warnings_of(tree(), plugin)
    assert warning.startswith("Queue team: spec.capability does not bound the queues below")


def test_capacity_bounds_a_tree_where_the_policy_says_so() -> None:
    assert warnings_of(tree(), Capacity, hierarchy=True) == []


@pytest.mark.parametrize("plugin", [Proportion, Capacity])
def test_quotas_of_kai_are_named_once_for_all_queues(plugin: type[Plugin]) -> None:
    world = World().node("n", cpu=12).queue("free", shares=UNBOUNDED).job("a", "free").pods("a", 1, cpu=1)
    assert warnings_of(world, plugin) == []
    for number in range(7):
        world.queue(f"q{number}", shares=BOUNDED)
    (warning,) = warnings_of(world, plugin)
    assert warning.startswith("Queues q0, q1, q2, q3, q4 and 2 more: spec.resources")
