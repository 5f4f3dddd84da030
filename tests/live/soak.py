"""The storms of the live suite, again and again with new seeds, for as long as told.

    make soak MINUTES=30          # or: python -m tests.live.soak --minutes 30 --seed 1

A round is a storm, or two at once, and something that happens to the scheduler meanwhile: nothing, a clock that jumps, a lease
handed over, a node deleted, a process killed with -9. Each round prints what it was and its seed; one that breaks a rule is
printed in full and ends the run, so that `--seed N --rounds 1` repeats it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import click
from tests.worlds.live.cluster import NODES, Clock, LeaseOptions, World, end
from tests.worlds.live.load import GANGS, SINGLES, load, nodes
from tests.worlds.live.storms import STORMS

from navarch.embedded.api.server import ApiServer
from navarch.kube.errors import KubeError, NotFound

Fate = Callable[[World, random.Random], AbstractAsyncContextManager[None]]
LEASE = LeaseOptions(leader_elect=True, lock_namespace="default", lease_duration=3.0, renew_deadline=2.0, retry_period=0.2)


@contextlib.asynccontextmanager
async def undisturbed(world: World, rng: random.Random) -> AsyncIterator[None]:
    async with world.scheduler(seed=rng.randrange(1 << 30)):
        yield


@contextlib.asynccontextmanager
async def jumping_clock(world: World, rng: random.Random) -> AsyncIterator[None]:
    clock = Clock()

    async def jump() -> None:
        while True:
            await asyncio.sleep(rng.random() * 0.3)
            clock.ahead = rng.uniform(-1e6, 1e6)

    async with world.scheduler(seed=rng.randrange(1 << 30), clock=clock, **LEASE):
        jumps = asyncio.create_task(jump())
        yield
        jumps.cancel()


@contextlib.asynccontextmanager
async def handed_over(world: World, rng: random.Random) -> AsyncIterator[None]:
    async with world.scheduler(seed=rng.randrange(1 << 30), **LEASE) as first, world.scheduler(**LEASE):
        go = asyncio.get_running_loop().call_later(0.5 + rng.random(), first.stop)
        yield
        go.cancel()


@contextlib.asynccontextmanager
async def node_deleted(world: World, rng: random.Random) -> AsyncIterator[None]:
    """A node without pods, so that everything still fits; whatever is on its way to it has to go elsewhere or stay there."""
    await world.node("doomed", cpu="1")

    async def delete() -> None:
        await asyncio.sleep(rng.random())
        while True:
            try:
                await world.client.delete(NODES, "doomed")
                return
            except NotFound:
                return
            except KubeError:  # the storm has the API server down, or garbles its replies
                await asyncio.sleep(0.05)

    async with world.scheduler(seed=rng.randrange(1 << 30)):
        deletion = asyncio.create_task(delete())
        yield
        await deletion


@contextlib.asynccontextmanager
async def killed(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Dies when a part is bound, or after a while where the storm lets nothing be bound; another goes on."""
    history = world.history
    assert history is not None
    process = await world.process("--no-leader-elect")

    async def succeed() -> None:
        with contextlib.suppress(AssertionError):
            await history.until_bound(rng.randrange(1, 12), timeout=5)
        await end(process, signal.SIGKILL)
        async with world.scheduler(seed=rng.randrange(1 << 30)):
            await asyncio.Event().wait()

    succession = asyncio.create_task(succeed())
    try:
        yield
    finally:
        succession.cancel()
        await asyncio.gather(succession, return_exceptions=True)
        await end(process, signal.SIGKILL)


FATES: dict[str, Fate] = {
    "undisturbed": undisturbed,
    "a jumping clock": jumping_clock,
    "handed over": handed_over,
    "a node deleted": node_deleted,
    "killed": killed,
}


async def one_round(seed: int) -> str:
    """One storm, or two at once, on a fresh cluster."""
    rng = random.Random(seed)
    names = rng.sample(sorted(STORMS), rng.choice((1, 1, 2)))
    fate = rng.choice(sorted(FATES))
    with tempfile.TemporaryDirectory(prefix="navarch-soak-") as folder:
        async with ApiServer(taint_new_nodes=False) as server:
            world = World(server.kubeconfig(Path(folder) / "kubeconfig"), "default", Path(folder))
            history = await nodes(world)
            async with FATES[fate](world, rng):
                await load(world, rng)
                await asyncio.gather(*(STORMS[name](server, world, rng) for name in names))
                server.faults.clear()
                await history.until_bound(4 * len(GANGS) + SINGLES, timeout=60)
                for name in [stem.rstrip("-") for stem, _ in GANGS]:
                    await world.eventually(
                        partial(world.get_group, name),
                        lambda found: found.get("status", {}).get("phase") == "Running",
                    )
            history.check(GANGS)
            await world.close()
    return f"{' and '.join(names)}, {fate}"


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--rounds", type=int, default=0, help="Stop after so many rounds instead.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the first round.")
def main(minutes: float, rounds: int, seed: int) -> None:
    """Run storms until the time is over; the first broken rule ends it."""
    logging.basicConfig(level=logging.ERROR)
    last = time.monotonic() + minutes * 60
    done = 0
    while (done < rounds) if rounds else (time.monotonic() < last):
        started = time.monotonic()
        try:
            storm = asyncio.run(one_round(seed + done))
        except (AssertionError, TimeoutError) as broken:
            raise click.ClickException(f"seed {seed + done}: {broken}") from broken
        done += 1
        click.echo(f"seed {seed + done - 1}: {storm}: the books are right ({time.monotonic() - started:.1f} s)")


if __name__ == "__main__":
    main()
