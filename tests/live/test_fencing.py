"""A leader that is stopped in the midst of its writes for longer than its lease lasts, followed by another, and continued.

It continues with bindings decided, replies to read, and a clock that it has to look at first. By the server's own account it
sends nothing but questions and looks at the lease from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp import web
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.worlds.live import audit
from tests.worlds.live.cluster import LeaseOptions, World, end
from tests.worlds.live.servers import serve_volcano

from navarch.embedded.api.server import ApiServer
from navarch.kube.errors import NotFound
from navarch.kube.resources import LEASES, PODS

pytestmark = pytest.mark.live

GANGS = [(f"gang{i}-", 4) for i in range(10)]
SINGLES = 200
EVERYTHING = 4 * len(GANGS) + SINGLES
LEASE = ("--lock-namespace=default", "--lease-duration=12", "--renew-deadline=9", "--retry-period=0.3", "--cycle-timeout=0")
"""As short as a busy machine allows: a slow leader must not lose it, and tests wait for its end. No process guard ends a
process that was stopped for long."""
PATIENT = LeaseOptions(leader_elect=True, lock_namespace="default", lease_duration=300.0, renew_deadline=200.0)
"""A lease that no slow machine loses."""


@contextlib.asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[tuple[World, audit.Audit]]:
    async with ApiServer(taint_new_nodes=False) as server:
        heard = audit.listen(server)
        # Slow enough that the leader is stopped with all its connections busy and more writes waiting for one.
        server.faults.delay(0.2, path="/binding")
        yield World(server.kubeconfig(folder / "kubeconfig"), "default", folder), heard


@contextlib.asynccontextmanager
async def real(folder: Path) -> AsyncIterator[tuple[World, audit.Audit]]:
    async with KubeApiServer(audit.flags(folder), binaries=binaries_or_skip()) as server:
        world = World(Path(server.kubeconfig), "default", folder)
        await serve_volcano(world.client)
        yield world, audit.read(folder)


async def leader(world: World) -> str:
    lease = await world.client.get(LEASES, "navarch", namespace="default")
    return str(lease["spec"]["holderIdentity"])


@pytest.mark.parametrize(
    ("server", "seed"), [(embedded, 1), (embedded, 2), (real, 3)], ids=["embedded-1", "embedded-2", "kube-apiserver-3"]
)
async def test_a_leader_that_slept_through_its_lease_writes_nothing_more(
    tmp_path: Path, server: Callable[[Path], AbstractAsyncContextManager[tuple[World, audit.Audit]]], seed: int
) -> None:
    rng = random.Random(seed)
    async with server(tmp_path) as (world, sent):
        for i in range(6):
            await world.node(f"n{i}", cpu="40")
        history = await world.watch()
        first = await world.process(*LEASE, name="first")
        second = None
        try:
            await world.said("first", "leading:")
            holder = await leader(world)
            second = await world.process(*LEASE, name="second")
            await world.said("second", "leader: ")
            for stem, members in GANGS:
                await world.group(stem.rstrip("-"), members)
            pods = [world.pod(f"{stem}{i}", group=stem.rstrip("-")) for stem, members in GANGS for i in range(members)]
            pods += [world.pod(f"single-{i}") for i in range(SINGLES)]
            rng.shuffle(pods)
            # The last of them come when it is stopped: there is always something left to do.
            early, late = pods[:200], pods[200:]
            making = asyncio.gather(*early)
            await history.until_bound(rng.randrange(20, 60))
            first.send_signal(signal.SIGSTOP)
            await making
            await asyncio.gather(*late)
            await world.eventually(lambda: leader(world), lambda who: who not in ("", holder))
            if rng.random() < 0.5:
                await history.until_bound(EVERYTHING)
            first.send_signal(signal.SIGCONT)
            await world.said("first", "lost the lease")
            await history.until_bound(EVERYTHING)
            # Both look at the lease once more, so that whatever the first had to say is said.
            await world.said("first", "leader: ")
            seen = sent()
            after = audit.since_lease(seen, "second")
            await world.eventually(
                lambda: asyncio.sleep(0, [s for s in audit.since_lease(sent(), "second") if s.who == "first"]), bool
            )
            assert audit.writes(seen, "first"), "the first has led"
            assert len([w for w in audit.writes(after, "second") if w.path.endswith("/binding")]) > 0
            # One may have been allowed already and not yet be on the wire when the process was stopped: that is the width of
            # the gap that no check before a write can close.
            assert len(audit.writes(audit.since_lease(sent(), "second"), "first")) <= 1
            history.check(GANGS)
        finally:
            for process in filter(None, (first, second)):
                await end(process, signal.SIGKILL)
            await world.close()


@pytest.mark.parametrize("answered", [True, False])
async def test_the_lease_is_handed_over_only_when_every_binding_has_its_answer(
    world: World, server: ApiServer, answered: bool
) -> None:
    """One that is still on its way would put a pod where the next leader has put another."""
    await world.node("n0")
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(request: web.BaseRequest) -> None:
        if request.path.endswith("/binding"):
            asked.set()
            await answer.wait()

    server.faults.intercept(slow)
    async with world.scheduler(**PATIENT, shutdown_timeout=60.0 if answered else 0.2) as scheduler:
        await world.pod("a")
        await asked.wait()
        scheduler.stop()
        if answered:
            answer.set()
    assert await leader(world) == ("" if answered else scheduler.identity)
    answer.set()


async def test_unsent_bindings_are_void_and_the_lease_is_handed_over(
    world: World, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More bindings than the time to stop allows for: those on the wire get their answers, the others are left to the next leader."""
    monkeypatch.setattr("navarch.live.scheduler.DRAIN_TIMEOUT", 120.0)
    await world.node("n0", cpu="40")
    history = await world.watch()
    answer = asyncio.Event()

    async def slow(request: web.BaseRequest) -> None:
        if request.path.endswith("/binding"):
            await answer.wait()

    server.faults.intercept(slow)
    for i in range(20):
        await world.pod(f"single-{i}")
    async with world.scheduler(**PATIENT, shutdown_timeout=0.5) as scheduler:
        scheduler.writers.binder.outbox.room = 4
        await world.eventually(lambda: asyncio.sleep(0, len(scheduler.writers.binder.outbox)), lambda many: many >= 20)
        scheduler.stop()
        await world.eventually(lambda: asyncio.sleep(0, scheduler.writers.binder.outbox.paused), bool)
        answer.set()
    assert await leader(world) == ""
    found = (await world.client.list(PODS, namespace="default")).items
    assert len([each for each in found if each["spec"].get("nodeName")]) == 4
    async with world.scheduler(**PATIENT):
        await history.until_bound(20)
    history.check()


async def test_the_lease_is_left_to_one_that_has_read_the_cluster(world: World, server: ApiServer) -> None:
    server.faults.errors(500, path="/api/v1/pods", method="GET")
    async with world.scheduler(**PATIENT) as scheduler:
        await world.eventually(lambda: asyncio.sleep(0, server.faults.struck), lambda often: often >= 5)
        with pytest.raises(NotFound):
            await leader(world)
        server.faults.clear()
        await world.eventually(lambda: asyncio.sleep(0, scheduler.leading), bool)
        assert await leader(world) == scheduler.identity
