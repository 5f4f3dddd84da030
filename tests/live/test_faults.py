"""Whatever goes wrong between the scheduler and the API server: no pod twice, no node too full, no half gang, nothing lost."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.worlds.live.broken_wire import BreakingWire
from tests.worlds.live.cluster import NODES, Clock, LeaseOptions, World, end, lasting
from tests.worlds.live.conditions import conditions
from tests.worlds.live.load import GANGS, SINGLES, load, nodes
from tests.worlds.live.servers import serve_volcano
from tests.worlds.live.storms import STORMS

from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.server import ApiServer
from navarch.kube.client import PatchType
from navarch.kube.resources import LEASES

pytestmark = pytest.mark.live


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", list(STORMS))
async def test_the_books_are_right_after_a_storm(server: ApiServer, world: World, name: str, seed: int) -> None:
    rng = random.Random(seed)
    history = await nodes(world)
    async with world.scheduler(seed=seed) as scheduler:
        # Objects are made before the storm hits what makes them.
        await load(world, rng)
        await STORMS[name](server, world, rng)
        await history.until_bound(4 * len(GANGS) + SINGLES)
        # Whatever was assumed is seen or forgotten, and no outcome is awaited any more.
        await world.eventually(
            lambda: asyncio.sleep(0, (scheduler.assumed.binds, scheduler.assumed.nominations, len(scheduler.resync))),
            lambda left: left == ({}, {}, 0),
        )
        for stem, _ in GANGS:
            name = stem.rstrip("-")
            await world.eventually(
                lambda name=name: world.get_group(name), lambda found: found.get("status", {}).get("phase") == "Running"
            )
    history.check(GANGS)


@pytest.mark.parametrize("seed", [1, 2])
async def test_killed_in_the_midst_of_binding_and_started_again(server: ApiServer, world: World, seed: int) -> None:
    rng = random.Random(seed)
    history = await nodes(world)
    # Half of the bindings take a while, so that the process dies with some done, some on the wire, some not yet sent.
    server.faults.delay(0.5, path="/binding", rate=0.5, seed=seed)
    await load(world, rng)
    process = await world.process("--no-leader-elect")
    await history.until_bound(rng.randrange(1, 12))
    await end(process, signal.SIGKILL)
    server.faults.clear()
    async with world.scheduler():
        await history.until_bound(4 * len(GANGS) + SINGLES)
    history.check(GANGS)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_answers_that_get_lost_are_asked_for_and_nothing_is_bound_twice(server: ApiServer, world: World, seed: int) -> None:
    rng = random.Random(seed)
    history = await nodes(world)
    async with BreakingWire(server.port, seed) as wire, world.scheduler(port=wire.port, seed=seed) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, scheduler.informers.missing()), lambda missing: missing == [])
        wire.rate = 0.2
        await load(world, rng)

        number = itertools.count()

        async def stirred() -> int:
            """Something is told of as long as that is needed, also when everything is bound."""
            mark = {"metadata": {"annotations": {"stirred": str(next(number))}}}
            await world.client.patch(NODES, "n0", mark, PatchType.MERGE)
            return wire.broken

        await world.eventually(stirred, lambda broken: broken >= 5)
        wire.rate = 0.0
        await history.until_bound(4 * len(GANGS) + SINGLES)
        await world.eventually(lambda: asyncio.sleep(0, len(scheduler.assumed.binds)), lambda left: left == 0)
    history.check(GANGS)


async def test_a_real_api_server_dies_and_comes_back(tmp_path: Path) -> None:
    """kube-apiserver and etcd killed with bindings on the wire, started again on the same data."""
    async with KubeApiServer(binaries=binaries_or_skip()) as real:
        world = World(Path(real.kubeconfig), "default", tmp_path)
        await serve_volcano(world.client)
        history = await nodes(world)
        async with world.scheduler() as scheduler:
            await world.eventually(lambda: asyncio.sleep(0, scheduler.informers.missing()), lambda missing: missing == [])
            await load(world, random.Random(5))
            await asyncio.to_thread(real.kill)
            await asyncio.to_thread(real.start)
            await history.until_bound(4 * len(GANGS) + SINGLES, timeout=240)
        history.check(GANGS)
        await world.close()


async def test_a_leader_that_dies_is_followed_and_one_that_leaves_hands_over(server: ApiServer, world: World) -> None:
    history = await nodes(world)
    lease = LeaseOptions(leader_elect=True, lock_namespace="default", lease_duration=12.0, renew_deadline=8.0, retry_period=0.3)
    async with world.scheduler(kubeconfig=world.speaking_as("first"), **lease) as first:
        await world.gang("first", 4)
        await history.until_bound(4)
        async with world.scheduler(**lease) as second:
            await world.eventually(lambda: asyncio.sleep(0, second.informers.missing()), lambda missing: missing == [])
            assert first.leading and not second.leading

            async def refuse_renewal(request: web.BaseRequest) -> None:
                if request.method == "PUT" and "/leases/" in request.path and request.headers.get("Impersonate-User") == "first":
                    raise ApiError(503, "ServiceUnavailable", "the leader cannot renew its lease")

            server.faults.intercept(refuse_renewal)
            await world.gang("second", 4)
            await history.until_bound(8)
            await world.eventually(lambda: asyncio.sleep(0, second.leading), bool)
            assert not first.leading
            await world.gang("third", 4)
            await history.until_bound(12)
    history.check([("first", 4), ("second", 4), ("third", 4)])


async def test_two_replicas_and_a_clean_hand_over(server: ApiServer, world: World) -> None:
    history = await nodes(world)
    async with world.scheduler(**lasting()) as first:
        await world.gang("first", 4)
        await history.until_bound(4)
        async with world.scheduler(**lasting()) as second:
            await world.eventually(lambda: asyncio.sleep(0, second.informers.missing()), lambda missing: missing == [])
            assert first.leading and not second.leading
            answer = asyncio.Event()

            async def held(request: web.BaseRequest) -> None:
                if request.path.endswith("/binding"):
                    await answer.wait()

            server.faults.intercept(held)
            await world.gang("second", 4)
            await world.eventually(lambda: asyncio.sleep(0, len(first.assumed.binds)), lambda count: count == 4)
            # Told to go with four bindings on the wire: they are finished, then the lease is given back.
            first.stop()
            answer.set()
            await history.until_bound(8)
            await world.eventually(lambda: asyncio.sleep(0, second.leading), bool)
            await world.gang("third", 4)
            await history.until_bound(12)
    history.check([("first", 4), ("second", 4), ("third", 4)])


async def test_a_node_is_deleted_under_its_pods(server: ApiServer, world: World) -> None:
    history = await nodes(world)
    async with world.scheduler() as scheduler:
        await world.gang("stays", 4)
        await history.until_bound(4)
        node = next(iter(history.node_of.values()))
        await world.client.delete(NODES, node)
        await world.eventually(lambda: asyncio.sleep(0, scheduler.cache.cluster.nodes.alive.sum()), lambda alive: alive == 5)
        await world.gang("comes", 12)
        await history.until_bound(16)
        assert node not in {history.node_of[uid] for uid, key in history.seen.items() if "/comes" in key}
    history.check([("stays", 4), ("comes", 12)])


async def test_a_rival_fills_nodes_that_we_thought_were_free(server: ApiServer, world: World) -> None:
    """Two schedulers with names of their own share the nodes. Each sees what the other has bound."""
    history = await nodes(world)
    async with world.scheduler(), world.scheduler(scheduler_names=("rival",), seed=8):
        for i in range(6):
            await world.gang(f"ours{i}", 2)
            await history.until_bound(2 * (i + 1), "ours")
            await world.gang(f"theirs{i}", 2, scheduler="rival")
            await history.until_bound(2 * (i + 1), "theirs")
    history.check([(f"{who}{i}-", 2) for who in ("ours", "theirs") for i in range(6)])


async def test_clocks_that_jump_do_no_harm(server: ApiServer, world: World) -> None:
    history = await nodes(world)
    rng = random.Random(3)
    clock = Clock()
    lease = LeaseOptions(leader_elect=True, lock_namespace="default", retry_period=0.2)
    async with world.scheduler(clock=clock, **lease):
        for i, ahead in enumerate((3600.0, -86400.0, 0.0, 1e6, -1e6)):
            clock.ahead = ahead
            await world.gang(f"gang{i}", 4)
            await asyncio.sleep(rng.random() * 0.05)
            # A waiting pod gets its event whatever the clock says, and again by the new time.
            await world.pod(f"large{i}", cpu="64")
            said = await world.eventually(partial(world.events, f"large{i}"), bool)
            assert said[0][1] == "FailedScheduling"
            pod = await world.eventually(
                partial(world.get_pod, f"large{i}"),
                lambda found: "PodScheduled" in conditions(found),
            )
            assert conditions(pod)["PodScheduled"]["reason"] == "Unschedulable"
        await history.until_bound(20)
        await world.eventually(lambda: world.get_group("gang4"), lambda found: found.get("status", {}).get("phase") == "Running")
    history.check([(f"gang{i}-", 4) for i in range(5)])


async def test_a_process_told_to_stop_finishes_its_writes_and_hands_the_lease_back(server: ApiServer, world: World) -> None:
    history = await nodes(world)
    await world.gang("gang", 8)
    server.faults.delay(0.4, path="/binding")
    process = await world.process("--lock-namespace=default", "--log-format=json")
    await history.until_bound(1)
    assert await end(process, signal.SIGTERM) == 0
    await history.until_bound(8)
    lease = await world.client.get(LEASES, "navarch", namespace="default")
    assert not lease["spec"].get("holderIdentity")
    lines = [json.loads(line) for line in (world.folder / "scheduler.log").read_text().splitlines()]
    assert lines[-1]["message"] == "stopped"
    history.check([("gang", 8)])
