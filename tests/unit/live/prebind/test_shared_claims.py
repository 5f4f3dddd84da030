"""Pods that share a claim on devices: what is promised to one stays promised when another is not bound."""

from __future__ import annotations

import pytest
from tests.worlds.device_objects import claim, exactly
from tests.worlds.live_parts.shared_claims import World, bind_of

from navarch.live.prebind.device_claims import KIND
from navarch.live.prebind.preparation import PreparationFailed


async def test_a_claim_given_up_by_one_pod_stays_assumed_for_the_other() -> None:
    world = World()
    world.pod("p1", "shared")
    world.pod("p2", "shared")
    assert len(world.decide().record.binds) == 2
    assert world.seen == (True, ["p1", "p2"])
    await world.is_not_bound("p2")
    assert world.seen == (True, ["p1"])
    world.shows(claim("other", exactly(2)))
    world.pod("p3", "other")
    assert world.decide().record.binds == [], "a device that p1 was promised is given away"
    await world.is_not_bound("p1")
    assert world.seen == (False, [])
    assert [bind.uid for bind in world.decide().record.binds] == ["uid-p3"]


async def test_an_assumption_ends_when_all_pods_that_share_it_are_seen() -> None:
    world = World()
    world.pod("p1", "shared")
    world.pod("p2", "shared")
    world.decide()
    written = dict(world.cache.cluster.objects[KIND]["default", "shared"])
    users = written["status"]["reservedFor"]
    world.shows({**written, "status": {**written["status"], "reservedFor": users[1:]}})
    assert world.seen == (True, ["p1", "p2"]), "p1 is not seen yet, and still promised"
    world.shows(written)
    assert not world.cache.is_assumed(KIND, "default", "shared")
    await world.is_not_bound("p1")
    assert world.seen == (True, ["p1", "p2"]), "what the API shows is the truth until it shows something else"


@pytest.mark.parametrize("late", [False, True])
async def test_an_assumption_ends_although_its_pod_was_never_seen_among_the_users(late: bool) -> None:
    """The watch was cut: when it shows the claim again the pod has been bound, has run and is gone. `late`: and it does so before
    the answer to our write is here."""
    world = World()
    world.pod("p1", "shared")
    world.decide()
    freed = claim("shared", exactly())
    freed["metadata"]["resourceVersion"] = "20"
    if late:
        world.shows(freed)
        assert world.seen == (True, ["p1"]), "it may well be older than our write"
    await world.claims.prepare(bind_of("uid-p1"))
    world.claims.done(bind_of("uid-p1"))
    world.cache.remove_pod("uid-p1")
    if not late:
        assert world.seen == (True, ["p1"])
        world.shows(freed)
    assert world.seen == (False, [])


async def test_devices_are_not_given_to_another_claim_of_the_same_name() -> None:
    world = World()
    world.shows({**claim("shared", exactly()), "metadata": {"name": "shared", "namespace": "default", "uid": "first"}})
    world.pod("p1", "shared")
    world.decide()
    world.server.found = {**claim("shared", exactly(2)), "metadata": {"name": "shared", "namespace": "default", "uid": "second"}}
    with pytest.raises(PreparationFailed, match="another has its name"):
        await world.claims.prepare(bind_of("uid-p1"))
    await world.is_not_bound("p1")
    assert "status" not in world.server.found or "reservedFor" not in world.server.found["status"]
