"""What is written to claims on devices before a pod is bound, and taken back if it is not: never over another writer's fields."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.worlds.device_objects import claim, exactly, slice_of
from tests.worlds.live_parts.resources import RESOURCE_CLAIMS, binding_conditions
from tests.worlds.live_parts.shared_claims import World, bind_of

from navarch.apis.devices.allocation_body import allocation
from navarch.embedded.api.server import ApiServer
from navarch.engine.record import ClaimAllocation
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.resources import Resource
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.device_claims import ATTEMPTS, KIND, PROTECTION, DeviceClaims
from navarch.live.prebind.preparation import PreparationFailed
from navarch.model.objects.devices import AllocatedDevice

Object = dict[str, Any]
OTHER = {"resource": "pods", "name": "other", "uid": "uid-other"}


class Rival:
    """A client whose reads are followed, `times` times, by another client's write."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.times = 0
        self.writes = 0

    async def get(self, resource: Resource, name: str, **options: Any) -> Object:
        found: Object = await self.client.get(resource, name, **options)
        if self.times:
            self.times -= 1
            label = {"metadata": {"labels": {"written": f"{self.times}"}}}
            await self.client.patch(resource, name, label, PatchType.MERGE, namespace="default")
        return found

    async def patch(self, *words: Any, **options: Any) -> Object:
        self.writes += 1
        made: Object = await self.client.patch(*words, **options)
        return made

    async def update(self, *words: Any, **options: Any) -> Object:
        self.writes += 1
        made: Object = await self.client.update(*words, **options)
        return made


class Served(World):
    """The same with a real API server."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client
        self.rival = Rival(client)
        client = cast(Client, self.rival)
        self.claims = DeviceClaims(ClaimAccess(client, self.cache, lambda: RESOURCE_CLAIMS, binding_conditions(self.cache)))

    async def make(self, manifest: Object) -> Object:
        """On the server, and shown to the cache."""
        body = {key: value for key, value in manifest.items() if key != "status"}
        made: Object = await self.client.create(RESOURCE_CLAIMS, body, namespace="default")
        if "status" in manifest:
            made = await self.status(made["metadata"]["name"], manifest["status"])
        self.shows(made)
        return made

    async def status(self, name: str, status: Object) -> Object:
        made: Object = await self.client.patch(
            RESOURCE_CLAIMS, name, {"status": status}, PatchType.MERGE, namespace="default", subresource="status"
        )
        return made

    async def found(self, name: str = "shared") -> Object:
        return await self.client.get(RESOURCE_CLAIMS, name, namespace="default")

    async def devices(self, name: str = "shared") -> tuple[list[str], list[str]]:
        """Of a claim: its devices and its users."""
        status = (await self.found(name)).get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        return [each["device"] for each in results], [each["name"] for each in status.get("reservedFor") or ()]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Served]:
    async with ApiServer() as server, Client(connect(server.kubeconfig(tmp_path / "kubeconfig"))) as client:
        made = Served(client)
        await made.make(claim("shared", exactly()))
        yield made


async def test_a_claim_is_protected_before_it_gets_devices(world: Served) -> None:
    """Or it could be deleted under a running pod; and its devices would stay allocated after the pod has ended."""
    world.pod("p1", "shared")
    world.decide()
    await world.claims.prepare(bind_of("uid-p1"))
    assert (await world.found())["metadata"]["finalizers"] == [PROTECTION]
    assert await world.devices() == (["g0"], ["p1"])
    world.claims.done(bind_of("uid-p1"))
    assert not world.claims.wants("uid-p1")


async def test_a_write_that_is_made_a_second_time_names_its_pod_once(world: Served) -> None:
    """The answer to the first was lost."""
    world.pod("p1", "shared")
    world.decide()
    for _ in range(2):
        await world.claims.prepare(bind_of("uid-p1"))
    assert await world.devices() == (["g0"], ["p1"])


async def test_finalizers_of_others_stay_and_ours_is_written_once(world: Served) -> None:
    await world.client.patch(
        RESOURCE_CLAIMS, "shared", {"metadata": {"finalizers": ["example.com/x"]}}, PatchType.MERGE, namespace="default"
    )
    for name in ("p1", "p2"):
        world.pod(name, "shared")
    world.decide()
    for name in ("p1", "p2"):
        await world.claims.prepare(bind_of(f"uid-{name}"))
    assert (await world.found())["metadata"]["finalizers"] == ["example.com/x", PROTECTION]
    assert await world.devices() == (["g0"], ["p1", "p2"])
    assert world.rival.writes == 3, "the finalizer, and a user each"


async def test_the_first_of_the_pods_that_share_a_claim_writes_its_devices(world: Served) -> None:
    """Decided in two cycles, and the second pod's write goes out before the first's."""
    world.pod("p1", "shared")
    world.decide()
    world.pod("p2", "shared")
    world.decide()
    await world.claims.prepare(bind_of("uid-p2"))
    await world.claims.prepare(bind_of("uid-p1"))
    assert await world.devices() == (["g0"], ["p2", "p1"])


@pytest.mark.parametrize("times", [1, ATTEMPTS - 1, ATTEMPTS])
async def test_a_claim_that_changes_meanwhile_is_looked_at_again(world: Served, times: int) -> None:
    world.pod("p1", "shared")
    world.decide()
    world.rival.times = times
    if times < ATTEMPTS:
        await world.claims.prepare(bind_of("uid-p1"))
        assert await world.devices() == (["g0"], ["p1"])
    else:
        with pytest.raises(PreparationFailed, match=r"resource claim shared: .*Conflict"):
            await world.claims.prepare(bind_of("uid-p1"))
        assert await world.devices() == ([], [])
    assert (await world.found())["metadata"]["labels"] == {"written": "0"}


async def test_devices_allocated_by_another_scheduler_stay(world: Served) -> None:
    world.pod("p1", "shared")
    world.decide()
    theirs = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "n1", "device": "g1"}]}}
    await world.status("shared", {"allocation": theirs, "reservedFor": [OTHER]})
    with pytest.raises(PreparationFailed, match="was allocated by another scheduler"):
        await world.claims.prepare(bind_of("uid-p1"))
    await world.is_not_bound("p1")
    assert await world.devices() == (["g1"], ["other"])


async def test_a_claim_that_lost_its_devices(world: Served) -> None:
    allocated = await world.make(claim("had", exactly(), allocated="n1"))
    world.pod("p1", "had")
    world.decide()
    await world.status("had", {"allocation": None})
    with pytest.raises(PreparationFailed, match="resource claim had lost its devices"):
        await world.claims.prepare(bind_of("uid-p1"))
    assert allocated["status"]["allocation"] and await world.devices("had") == ([], [])


async def test_a_claim_that_is_being_deleted_gets_nothing(world: Served) -> None:
    await world.client.patch(
        RESOURCE_CLAIMS, "shared", {"metadata": {"finalizers": ["example.com/x"]}}, PatchType.MERGE, namespace="default"
    )
    world.pod("p1", "shared")
    world.decide()
    await world.client.delete(RESOURCE_CLAIMS, "shared", namespace="default")
    with pytest.raises(PreparationFailed, match="resource claim shared is being deleted"):
        await world.claims.prepare(bind_of("uid-p1"))
    assert await world.devices() == ([], [])


async def test_a_pod_that_is_not_bound_gives_its_devices_back(world: Served) -> None:
    world.pod("p1", "shared")
    world.decide()
    await world.claims.prepare(bind_of("uid-p1"))
    await world.is_not_bound("p1")
    assert await world.devices() == ([], [])
    assert not world.claims.wants("uid-p1")


async def test_a_pod_that_is_not_bound_leaves_shared_devices_to_the_others(world: Served) -> None:
    world.pod("p1", "shared")
    world.decide()
    await world.claims.prepare(bind_of("uid-p1"))
    now = (await world.found())["status"]
    await world.status("shared", {"reservedFor": [*now["reservedFor"], OTHER]})
    await world.is_not_bound("p1")
    assert await world.devices() == (["g0"], ["other"])


async def test_devices_that_a_claim_had_before_are_not_ours_to_give_back(world: Served) -> None:
    await world.make(claim("had", exactly(), allocated="n1"))
    world.pod("p1", "had")
    world.decide()
    await world.claims.prepare(bind_of("uid-p1"))
    assert await world.devices("had") == (["g0"], ["p1"])
    assert "finalizers" not in (await world.found("had"))["metadata"], "the writer of its devices decides whether it is protected"
    await world.is_not_bound("p1")
    assert await world.devices("had") == (["g0"], [])


async def test_claims_whose_write_was_not_started_are_not_undone(world: Served) -> None:
    world.pod("p1", "shared")
    world.decide()
    await world.status("shared", {"allocation": {"devices": {"results": []}}, "reservedFor": [{**OTHER, "uid": "uid-p1"}]})
    await world.is_not_bound("p1")
    assert (await world.devices(), world.rival.writes) == (([], ["other"]), 0)


async def test_nothing_is_written_to_give_back_what_was_never_had(world: Served) -> None:
    world.pod("p1", "shared")
    world.decide()
    await world.claims.prepare(bind_of("uid-p1"))
    await world.status("shared", {"reservedFor": None, "allocation": None})
    before = world.rival.writes
    await world.is_not_bound("p1")
    assert world.rival.writes == before


@pytest.mark.parametrize("gone", [True, False])
async def test_one_claim_that_cannot_be_given_back_does_not_keep_the_others(
    world: Served, gone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await world.make(claim("second", exactly()))
    world.pod("p1", "shared", "second")
    world.decide()
    await world.claims.prepare(bind_of("uid-p1"))
    assert await world.devices("second") == (["g1"], ["p1"])
    if gone:
        free = {"metadata": {"finalizers": None}}
        await world.client.patch(RESOURCE_CLAIMS, "shared", free, PatchType.MERGE, namespace="default")
        await world.client.delete(RESOURCE_CLAIMS, "shared", namespace="default")
    else:
        world.rival.times = ATTEMPTS
    await world.is_not_bound("p1")
    assert await world.devices("second") == ([], [])
    assert ("resource claim default/shared stays reserved" in caplog.text) is not gone


async def test_a_claim_that_is_assumed_is_seen_as_the_api_shows_it_with_what_is_promised(world: Served) -> None:
    world.pod("p1", "shared")
    world.decide()
    world.shows({**claim("shared", exactly()), "metadata": {"name": "shared", "namespace": "default", "labels": {"a": "b"}}})
    world.pod("p2", "shared")
    world.decide()
    assert world.seen == (True, ["p1", "p2"])
    assert world.cache.cluster.objects[KIND]["default", "shared"]["metadata"]["labels"] == {"a": "b"}


def one_slice(name: str, driver: str = "d", pool: str = "n1", **where: Any) -> Object:
    found = slice_of(pool, "a")
    spec = {key: value for key, value in found["spec"].items() if key != "nodeName"}
    return {**found, "metadata": {"name": name}, "spec": {**spec, "driver": driver, **where}}


THERE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
ANY_ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}]}


@pytest.mark.parametrize(
    ("slices", "where"),
    [
        ([one_slice("n1-1", nodeName="n1")], THERE),
        ([one_slice("n1-1", nodeSelector=ANY_ZONE)], ANY_ZONE),
        ([one_slice("n1-1", allNodes=True)], None),
        ([one_slice("n1-1", nodeSelector=ANY_ZONE), one_slice("e", driver="e", nodeName="n1")], ANY_ZONE),
        ([one_slice("n1-1", nodeSelector=ANY_ZONE), one_slice("p", pool="p", nodeName="n7")], ANY_ZONE),
    ],
    ids=["a node's own", "of some nodes", "of all", "another driver's pool of the name", "another pool"],
)
async def test_from_where_devices_can_be_used_is_said_with_them(world: Served, slices: list[Object], where: Object | None) -> None:
    for each in slices:
        world.shows(each)
    world.pod("p1", "shared")
    world.decide()
    await world.claims.prepare(bind_of("uid-p1"))
    assert (await world.found())["status"]["allocation"].get("nodeSelector") == where


async def test_all_that_a_driver_must_know_is_written_with_its_devices(world: Served) -> None:
    taint = {"key": "worn", "operator": "Exists"}
    told = {"requests": ["r"], "opaque": {"driver": "d", "parameters": {"mode": "exclusive"}}}
    asked = {
        **claim("c", exactly(tolerations=[taint])),
        "spec": {"devices": {"requests": [exactly(tolerations=[taint])], "config": [told]}},
    }
    found = ClaimAllocation(
        "default/c", "", "n1", (AllocatedDevice("r", "d", "n1", "g0", True), AllocatedDevice("q", "d", "n1", "g1"))
    )
    devices = allocation(found, asked, {}, lambda name: {}, "", lambda: "")["devices"]
    assert devices["results"] == [
        {"request": "r", "driver": "d", "pool": "n1", "device": "g0", "adminAccess": True, "tolerations": [taint]},
        {"request": "q", "driver": "d", "pool": "n1", "device": "g1"},
    ]
    assert devices["config"] == [{"source": "FromClaim", **told}]


@pytest.mark.parametrize(("users", "released"), [([], True), ([{**OTHER, "uid": "uid-p1"}], True), ([OTHER], False)])
async def test_a_claim_is_released_unless_another_pod_uses_it(world: Served, users: list[Object], released: bool) -> None:
    made = claim("had", exactly(), allocated="n1")
    made["status"]["reservedFor"] = users
    await world.make(made)
    for _ in range(2):  # the second request finds the first under way
        world.claims.release("default", "had", "uid-p1")
    world.claims.release("default", "absent", "uid-p1")
    while world.claims.releasing:
        await asyncio.sleep(0.01)
    assert await world.devices("had") == (([], []) if released else (["g0"], ["other"]))
