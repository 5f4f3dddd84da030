"""One history: two to four replicas of the scheduler, several faults at once, a load, and the check of what the API server saw.

Everything is drawn from the seed: how many replicas there are, what becomes of each (it stays, stops on purpose, is killed with -9,
its wall clock jumps), and two to four faults. Replicas in this process speak to the server over wires that can break. The first
replica stays, so that in the end everything is bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct
from tests.envtest.server import KubeApiServer
from tests.worlds.live.broken_wire import BreakingWire
from tests.worlds.live.cluster import NODES, Clock, LeaseOptions, World, end
from tests.worlds.live.false_proxy import FalseProxy
from tests.worlds.live.load import GANGS, SINGLES, nodes
from tests.worlds.live.servers import real_world, serve_volcano
from tests.worlds.live.storms import STORMS, thieves

from navarch.embedded.api.server import ApiServer
from navarch.kube.errors import AlreadyExists, ApiError, KubeError

FALSE: list[tuple[int, bytes]] = [
    (404, b"<html>not found</html>"),
    (404, b"404 page not found\n"),
    (404, b'{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{"name":"other","kind":"pods"}}'),
    (200, b"<html>sign in</html>"),
    (200, b""),
    (200, b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":""},"items":[]}'),
    (200, b'{"kind":"Status","status":"Failure","code":500}'),
    (201, b'{"kind":"Pod","metadata":{"name":"other"}}'),
    (409, b"<html>conflict</html>"),
    (410, b"<html>gone</html>"),
    (502, b"<html>bad gateway</html>"),
    (503, b""),
]
"""What a proxy says in the server's place."""
LEASE = LeaseOptions(leader_elect=True, lock_namespace="default", lease_duration=3.0, renew_deadline=2.0, retry_period=0.2)
FLAGS = ("--leader-elect", "--lock-namespace=default", "--lease-duration=3", "--renew-deadline=2", "--retry-period=0.2")
BOUND_WITHIN = 240.0
"""Seconds after the faults within which everything is bound."""


class Scene(Struct):
    """What a fault may touch. One of the servers is there."""

    world: World
    wires: list[BreakingWire]
    rng: random.Random
    embedded: ApiServer | None = None
    real: KubeApiServer | None = None


Fault = Callable[[Scene], Awaitable[None]]


class Report(Struct):
    """A line of the results. `violation` is empty if every rule held."""

    seed: int
    server: str
    replicas: list[str]
    faults: list[str]
    seconds: float = 0.0
    violation: str = ""


# faults of the wire and of the real server; those of the embedded server are the storms


async def lost_answers(scene: Scene) -> None:
    for wire in scene.wires:
        wire.rate = 0.2
    await asyncio.sleep(1.5)
    _mend(scene)


async def partition(scene: Scene) -> None:
    """One replica is cut off for longer than its lease lasts, or for less."""
    wire = scene.rng.choice(scene.wires)
    wire.cut()
    await asyncio.sleep(scene.rng.uniform(0.2, 4.0))
    wire.rate = 0.0


async def cut_wires(scene: Scene) -> None:
    for _ in range(4):
        await asyncio.sleep(scene.rng.random() * 0.3)
        for wire in scene.wires:
            wire.cut()
            wire.rate = 0.0


async def compacted_history(scene: Scene) -> None:
    assert scene.real is not None
    for _ in range(2):
        await asyncio.sleep(scene.rng.random() * 0.5)
        with contextlib.suppress(OSError, RuntimeError):  # another fault has the server down
            await asyncio.to_thread(scene.real.compact)
        for wire in scene.wires:
            wire.cut()
            wire.rate = 0.0


async def killed_server(scene: Scene) -> None:
    assert scene.real is not None
    await asyncio.sleep(scene.rng.random())
    await asyncio.to_thread(scene.real.kill)
    await asyncio.to_thread(scene.real.start)


async def stolen_pods(scene: Scene) -> None:
    with contextlib.suppress(KubeError):
        await thieves(scene.embedded, scene.world, scene.rng)


async def deleted_node(scene: Scene) -> None:
    """A node without pods goes, so that everything still fits. Pods that are on their way to it go elsewhere or stay there."""
    await asyncio.sleep(scene.rng.random())
    while True:
        try:
            await scene.world.client.delete(NODES, "doomed")
            return
        except ApiError as error:
            if error.code == 404:
                return
        except KubeError:
            pass
        await asyncio.sleep(0.05)


def _storm(name: str) -> Fault:
    async def strike(scene: Scene) -> None:
        assert scene.embedded is not None
        await STORMS[name](scene.embedded, scene.world, scene.rng)

    return strike


ANYWHERE: dict[str, Fault] = {
    "lost answers": lost_answers,
    "partition": partition,
    "cut wires": cut_wires,
    "thieves": stolen_pods,
    "deleted node": deleted_node,
}
EMBEDDED = {**{name: _storm(name) for name in STORMS}, **ANYWHERE}
REAL = {**ANYWHERE, "compacted history": compacted_history, "killed server": killed_server}


# replicas


async def stays(scene: Scene, wire: BreakingWire, lock: str) -> None:
    async with scene.world.scheduler(port=wire.port, seed=wire.port, lock_name=lock, **LEASE):
        await asyncio.Event().wait()


async def stops(scene: Scene, wire: BreakingWire, lock: str) -> None:
    async with scene.world.scheduler(port=wire.port, seed=wire.port, lock_name=lock, **LEASE):
        await asyncio.sleep(scene.rng.uniform(0.3, 3.0))


async def is_killed(scene: Scene, wire: BreakingWire, lock: str) -> None:
    process = await scene.world.process(*FLAGS, f"--lock-name={lock}")
    try:
        await asyncio.sleep(scene.rng.uniform(1.0, 5.0))
    finally:
        await end(process, signal.SIGKILL)


async def has_a_jumping_clock(scene: Scene, wire: BreakingWire, lock: str) -> None:
    clock = Clock()
    async with scene.world.scheduler(port=wire.port, seed=wire.port, lock_name=lock, clock=clock, **LEASE):
        while True:
            await asyncio.sleep(scene.rng.random() * 0.3)
            clock.ahead = scene.rng.uniform(-1e6, 1e6)


class MixedUpProxy(FalseProxy):
    """Of the requests that say most of what is believed one in five is answered falsely; of the pieces that watches bring one in ten
    has its lines in another order. Until `ends`, on the loop's clock."""

    def __init__(self, world: World, rng: random.Random, ends: float) -> None:
        super().__init__(world)
        self._rng, self._ends = rng, ends
        for status, body in FALSE:
            self.answer(self._strikes, status, body, carried_out=rng.random() < 0.5)
        rng.shuffle(self.answers)

    def _strikes(self, method: str, path: str) -> bool:
        named = path.endswith(("/binding", "/eviction", "/status")) or "/pods/" in path or "/leases/" in path
        listed = method == "GET" and path.endswith(("/pods", "/nodes", "/podgroups"))
        return self._now() and (named or listed) and self._rng.random() < 0.2 / len(FALSE)

    def _now(self) -> bool:
        return asyncio.get_running_loop().time() < self._ends

    def passed_on(self, request: web.BaseRequest, chunk: bytes) -> bytes:
        if not self._now() or self._rng.random() > 0.1:
            return chunk
        lines = chunk.splitlines(keepends=True)
        whole = [line for line in lines if line.startswith(b'{"type"') and line.endswith(b"\n")]
        if len(whole) < len(lines):
            return chunk
        self._rng.shuffle(lines)
        return b"".join(lines)


async def is_answered_falsely(scene: Scene, wire: BreakingWire, lock: str) -> None:
    ends = asyncio.get_running_loop().time() + scene.rng.uniform(2.0, 8.0)
    async with (
        MixedUpProxy(scene.world, random.Random(scene.rng.randrange(1 << 30)), ends) as proxy,
        scene.world.scheduler(kubeconfig=proxy.kubeconfig, seed=wire.port, lock_name=lock, **LEASE),
    ):
        await asyncio.Event().wait()


REPLICAS = {
    "stays": stays,
    "stops": stops,
    "killed": is_killed,
    "jumping clock": has_a_jumping_clock,
    "false answers": is_answered_falsely,
}


# the history


def draw(seed: int, server: str) -> tuple[Report, random.Random]:
    """What happens under this seed."""
    rng = random.Random(seed)
    replicas = ["stays", *(rng.choice(sorted(REPLICAS)) for _ in range(rng.randint(1, 3)))]
    faults = rng.sample(sorted(EMBEDDED if server == "embedded" else REAL), rng.randint(2, 4))
    return Report(seed, server, replicas, faults), rng


async def run_history(report: Report, rng: random.Random, folder: Path, real: KubeApiServer | None) -> None:
    """Raises AssertionError where a rule is broken. `real`: the server to use; None: an embedded one."""
    kinds = EMBEDDED if real is None else REAL
    async with _scene(report.seed, rng, folder, real) as scene:
        world = scene.world
        await world.node("doomed", cpu="1")
        history = await nodes(world)
        async with AsyncExitStack() as stack:
            port = urlsplit(world.endpoint().server).port or 0
            for _ in report.replicas:
                scene.wires.append(await stack.enter_async_context(BreakingWire(port, rng.randrange(1 << 30))))
            lock, named = f"soak-{report.seed}", zip(report.replicas, scene.wires, strict=True)
            replicas = [asyncio.create_task(REPLICAS[name](scene, wire, lock)) for name, wire in named]
            stack.push_async_callback(_end, replicas)
            await asyncio.gather(load(world, rng), *(kinds[name](scene) for name in report.faults))
            _mend(scene)
            await history.until_bound(4 * len(GANGS) + SINGLES, timeout=BOUND_WITHIN)
            for name in [stem.rstrip("-") for stem, _ in GANGS]:
                await _until_running(world, name)
            for replica in replicas:
                if replica.done():
                    replica.result()
        history.check(GANGS)


async def _until_running(world: World, name: str) -> None:
    """Until the group is told that it runs."""
    await world.eventually(lambda: world.get_group(name), lambda found: found.get("status", {}).get("phase") == "Running")


async def load(world: World, rng: random.Random) -> None:
    """The gangs and single pods of `tests.worlds.live.load`, made again until the server has taken each of them."""
    gangs = [(stem.rstrip("-"), members) for stem, members in GANGS]
    work: list[Callable[[], Awaitable[object]]] = [partial(world.group, name, members) for name, members in gangs]
    work += [partial(world.pod, f"{name}-{member}", group=name) for name, members in gangs for member in range(members)]
    work += [partial(world.pod, f"single-{number}") for number in range(SINGLES)]
    rng.shuffle(work)
    for make in work:
        while True:
            try:
                await make()
                break
            except AlreadyExists:
                break
            except KubeError:
                await asyncio.sleep(0.05)
        await asyncio.sleep(rng.random() * 0.1)


@contextlib.asynccontextmanager
async def _scene(seed: int, rng: random.Random, folder: Path, real: KubeApiServer | None) -> AsyncIterator[Scene]:
    if real is not None:
        async with real_world(Path(real.kubeconfig), f"soak-{seed}", folder, serve_volcano) as world:
            yield Scene(world, [], rng, real=real)
        return
    async with ApiServer(taint_new_nodes=False) as server:
        world = World(server.kubeconfig(folder / "kubeconfig"), "default", folder)
        try:
            yield Scene(world, [], rng, embedded=server)
        finally:
            await world.close()


def _mend(scene: Scene) -> None:
    for wire in scene.wires:
        wire.rate = 0.0
    if scene.embedded is not None:
        scene.embedded.faults.clear()


async def _end(replicas: list[asyncio.Task[None]]) -> None:
    for replica in replicas:
        replica.cancel()
    await asyncio.gather(*replicas, return_exceptions=True)
