"""What is written before a pod with volumes is bound, and taken back if it is not: never over another writer's fields."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.live_parts.storage import CLAIMS, VOLUMES, Object, Seen, Store, bound, claim, served, storage_class, volume

from navarch.kube.client import Client
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.prebind.preparation import PreparationFailed
from navarch.live.prebind.volumes import ATTEMPTS, BOUND_BY_US, SELECTED_NODE

NONE_MADE = "kubernetes.io/no-provisioner"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with served(tmp_path) as made:
        yield made


async def prepared_in_vain(world: Seen, bind: AssumedBind, why: str) -> None:
    async with asyncio.timeout(60):
        with pytest.raises(PreparationFailed, match=why):
            await world.volumes.prepare(bind)


async def until_written(store: Store, name: str = "data") -> Object:
    async with asyncio.timeout(60):
        while SELECTED_NODE not in ((found := await store.claim(name))["metadata"].get("annotations") or {}):
            await asyncio.sleep(0)
    return found


def reference(found: Object) -> tuple[Any, Any]:
    held = found["spec"].get("claimRef") or {}
    return held.get("name"), held.get("uid")


async def with_volumes(store: Store, *names: str, client: Client | None = None) -> tuple[Seen, list[AssumedBind]]:
    """Pods with a claim each, and as many volumes; all on n0. The claims are called after the pods."""
    world = Seen(client or store.client)
    world.shows(storage_class(NONE_MADE))
    for name in names:
        world.shows(await store.make(volume(f"pv-{name}", "n0")))
        world.shows(await store.make(claim(name)))
        world.pod(f"pod-{name}", name)
    return world, world.decide()


async def test_a_node_is_chosen_and_the_pod_waits_for_what_is_made_there(store: Store) -> None:
    world = Seen(store.client)
    world.shows(storage_class(), await store.make(claim("data")))
    world.pod("a", "data")
    (bind,) = world.decide()
    assert world.seen("PersistentVolumeClaim", "data")["metadata"]["annotations"][SELECTED_NODE] == "n0", "the next cycle knows"
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    found = await until_written(store)
    assert found["metadata"]["annotations"][SELECTED_NODE] == "n0" and not preparing.done()
    world.shows(volume("made", "n0"), bound(found, "made"))
    async with asyncio.timeout(60):
        await preparing
    world.volumes.done(bind)
    assert not world.volumes.wants(bind.uid) and not world.cache.is_assumed("PersistentVolumeClaim", "default", "data")


async def test_a_node_that_was_chosen_in_vain_is_taken_back(store: Store) -> None:
    world = Seen(store.client)
    world.shows(storage_class(), await store.make(claim("data")))
    world.pod("a", "data")
    (bind,) = world.decide()
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    await until_written(store)
    preparing.cancel()
    await asyncio.gather(preparing, return_exceptions=True)
    await world.volumes.undo(bind)
    assert SELECTED_NODE not in ((await store.claim("data"))["metadata"].get("annotations") or {})
    assert not world.volumes.wants(bind.uid)
    assert SELECTED_NODE not in world.seen("PersistentVolumeClaim", "data")["metadata"].get("annotations", {})


async def test_nothing_is_taken_back_from_a_claim_that_is_bound_by_now(store: Store) -> None:
    """The watch is behind; the provisioner that made the volume still reads the annotation."""
    world = Seen(store.client)
    world.shows(storage_class(), await store.make(claim("data")))
    world.pod("a", "data")
    (bind,) = world.decide()
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    found = await until_written(store)
    preparing.cancel()
    await asyncio.gather(preparing, return_exceptions=True)
    after = bound(found, "made")
    await store.change(CLAIMS, "data", {"metadata": {"annotations": after["metadata"]["annotations"]}, "spec": {"volumeName": "made"}})
    await world.volumes.undo(bind)
    assert (await store.claim("data"))["metadata"]["annotations"][SELECTED_NODE] == "n0"


async def test_another_claim_of_the_name_is_left_alone(store: Store) -> None:
    world = Seen(store.client)
    world.shows(storage_class(), claim("data", uid="of-the-one-before"))
    world.pod("a", "data")
    (bind,) = world.decide()
    await store.make(claim("data", annotations={SELECTED_NODE: "of another scheduler"}))
    await prepared_in_vain(world, bind, "volumes: ")
    await world.volumes.undo(bind)
    assert (await store.claim("data"))["metadata"]["annotations"] == {SELECTED_NODE: "of another scheduler"}


async def test_another_claim_of_the_name_that_is_bound_does_not_keep_our_volume(store: Store) -> None:
    world, (bind,) = await with_volumes(store, "data")
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    async with asyncio.timeout(60):
        while reference(await store.volume("pv-data"))[0] is None:
            await asyncio.sleep(0)
    preparing.cancel()
    await asyncio.gather(preparing, return_exceptions=True)
    await store.change(CLAIMS, "data", {"metadata": {"finalizers": None}})
    await store.client.delete(CLAIMS, "data", namespace="default")
    await store.make(bound(claim("data"), "elsewhere"))
    await world.volumes.undo(bind)
    found = await store.volume("pv-data")
    assert reference(found) == (None, None) and BOUND_BY_US not in (found["metadata"].get("annotations") or {})


async def test_each_claim_of_a_cycle_gets_a_volume_of_its_own(store: Store) -> None:
    world, binds = await with_volumes(store, "x", "y")
    assert len(binds) == 2
    preparing = [asyncio.create_task(world.volumes.prepare(bind)) for bind in binds]
    async with asyncio.timeout(60):
        while None in (kept := {reference(await store.volume(f"pv-{name}"))[0] for name in "xy"}):
            await asyncio.sleep(0)
    assert kept == {"x", "y"}
    assert (await store.volume("pv-x"))["metadata"]["annotations"][BOUND_BY_US] == "yes"
    for task in preparing:
        task.cancel()
    await asyncio.gather(*preparing, return_exceptions=True)


async def test_a_volume_that_is_promised_is_not_free_until_it_is_given_up(store: Store) -> None:
    world, (bind,) = await with_volumes(store, "first")
    world.shows(await store.volume("pv-first"))
    world.shows(claim("second", uid="2"))
    world.pod("b", "second")
    assert world.decide() == [], "what the watch shows is older than the promise"
    world.cache.assumed.binds.clear()
    world.cache.remove_pod(bind.uid)
    await world.volumes.undo(bind)
    assert [each.uid for each in world.decide()] == ["uid-b"]


async def test_a_volume_that_is_kept_for_another_is_not_taken(store: Store) -> None:
    world, (bind,) = await with_volumes(store, "data")
    theirs = {"namespace": "default", "name": "data", "uid": "of the one before"}
    await store.change(VOLUMES, "pv-data", {"spec": {"claimRef": theirs}})
    await prepared_in_vain(world, bind, "pv-data is kept for claim default/data")
    await world.volumes.undo(bind)
    assert reference(await store.volume("pv-data")) == ("data", "of the one before")


async def test_a_volume_that_is_kept_for_another_by_its_name_is_not_taken(store: Store) -> None:
    world, (bind,) = await with_volumes(store, "data")
    await store.change(VOLUMES, "pv-data", {"spec": {"claimRef": {"namespace": "default", "name": "other"}}})
    await prepared_in_vain(world, bind, "pv-data is kept for claim default/other")
    assert reference(await store.volume("pv-data")) == ("other", None)


async def test_a_volume_that_its_owner_kept_for_the_claim_by_its_name_is_taken_and_stays_kept(store: Store) -> None:
    """As the volume controller does: what was not bound by a controller is not unbound by one."""
    world, (bind,) = await with_volumes(store, "data")
    await store.change(VOLUMES, "pv-data", {"spec": {"claimRef": {"namespace": "default", "name": "data"}}})
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    async with asyncio.timeout(60):
        while reference(await store.volume("pv-data"))[1] is None:
            await asyncio.sleep(0)
    found = await store.volume("pv-data")
    assert reference(found)[1] == (await store.claim("data"))["metadata"]["uid"]
    assert BOUND_BY_US not in (found["metadata"].get("annotations") or {})
    preparing.cancel()
    await asyncio.gather(preparing, return_exceptions=True)
    await world.volumes.undo(bind)
    assert reference(await store.volume("pv-data")) == ("data", None)


class Rival:
    """A client whose reads of volumes are followed, `times` times, by another client's write."""

    def __init__(self, client: Client, times: int) -> None:
        self.client = client
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def get(self, resource: Any, name: str, **options: Any) -> Object:
        found: Object = await self.client.get(resource, name, **options)
        if resource == VOLUMES and self.times:
            self.times -= 1
            await Store(self.client).change(VOLUMES, name, {"metadata": {"labels": {"written": f"{self.times}"}}})
        return found


@pytest.mark.parametrize("times", [1, ATTEMPTS - 1, ATTEMPTS])
async def test_a_volume_that_changes_meanwhile_is_looked_at_again(store: Store, times: int) -> None:
    rival: Any = Rival(store.client, times)
    world, (bind,) = await with_volumes(store, "data", client=rival)
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    if times == ATTEMPTS:
        async with asyncio.timeout(60):
            with pytest.raises(PreparationFailed, match="pv-data changed too often"):
                await preparing
        assert reference(await store.volume("pv-data")) == (None, None)
        return
    async with asyncio.timeout(60):
        while reference(await store.volume("pv-data"))[0] is None:
            assert not preparing.done()
            await asyncio.sleep(0)
    preparing.cancel()
    await asyncio.gather(preparing, return_exceptions=True)
    assert rival.times == 0


async def test_a_write_that_cannot_be_undone_is_logged_and_the_rest_is_undone(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Two claims of one pod. Another client writes to the first volume all the time, the second is ours to give back."""
    rival: Any = Rival(store.client, 0)
    world = Seen(rival)
    world.shows(storage_class(NONE_MADE))
    for name in ("x", "y"):
        world.shows(await store.make(volume(f"pv-{name}", "n0")), await store.make(claim(name)))
    world.pod("a", "x", "y")
    (bind,) = world.decide()
    preparing = asyncio.create_task(world.volumes.prepare(bind))
    async with asyncio.timeout(60):
        while None in {reference(await store.volume(f"pv-{name}"))[0] for name in "xy"}:
            await asyncio.sleep(0)
    preparing.cancel()
    await asyncio.gather(preparing, return_exceptions=True)
    rival.times = ATTEMPTS
    await world.volumes.undo(bind)
    assert [reference(await store.volume(f"pv-{name}"))[0] is None for name in "xy"] == [False, True]
    assert "claim default/x keeps what was chosen for it" in caplog.text


async def test_writes_that_were_not_started_are_not_undone(store: Store) -> None:
    """The first claim's write is refused: the second has the annotation of another writer, which stays."""
    world = Seen(store.client)
    made = await store.make(claim("y"))
    world.shows(storage_class(), claim("x", uid="gone"), made)
    world.pod("a", "x", "y")
    (bind,) = world.decide()
    await prepared_in_vain(world, bind, "volumes: ")
    await store.change(CLAIMS, "y", {"metadata": {"annotations": {SELECTED_NODE: "n7"}}})
    await world.volumes.undo(bind)
    assert (await store.claim("y"))["metadata"]["annotations"] == {SELECTED_NODE: "n7"}
