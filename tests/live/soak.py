"""The storms of the live suite, again and again with new seeds, for as long as told.

    python -m tests.live.soak --minutes 30 --seed 1

Each round prints its storm and its seed; one that breaks a rule is printed in full and ends the run, so that
`--seed N --rounds 1` repeats it.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path

import click
from tests.live.storms import STORMS
from tests.live.test_faults import GANGS, SINGLES, load, nodes
from tests.live.world import World

from navarch.cluster.server import ApiServer


async def one_round(seed: int) -> str:
    """One storm, or two at once, on a fresh cluster."""
    rng = random.Random(seed)
    names = rng.sample(sorted(STORMS), rng.choice((1, 1, 2)))
    with tempfile.TemporaryDirectory(prefix="navarch-soak-") as folder:
        async with ApiServer(taint_new_nodes=False) as server:
            world = World(server.kubeconfig(Path(folder) / "kubeconfig"), "default", Path(folder))
            history = await nodes(world)
            async with world.scheduler(seed=seed):
                await load(world, rng)
                await asyncio.gather(*(STORMS[name](server, world, rng) for name in names))
                server.faults.clear()
                await history.until_bound(4 * len(GANGS) + SINGLES, timeout=60)
            history.check(GANGS)
            await world.close()
    return " and ".join(names)


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--rounds", type=int, default=0, help="Stop after so many rounds instead.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the first round.")
def main(minutes: float, rounds: int, seed: int) -> None:
    """Run storms until the time is over; the first broken rule ends it."""
    end = time.monotonic() + minutes * 60
    done = 0
    while (done < rounds) if rounds else (time.monotonic() < end):
        started = time.monotonic()
        try:
            storm = asyncio.run(one_round(seed + done))
        except AssertionError as broken:
            raise click.ClickException(f"seed {seed + done}: {broken}") from broken
        done += 1
        click.echo(f"seed {seed + done - 1}: {storm}: the books are right ({time.monotonic() - started:.1f} s)")


if __name__ == "__main__":
    main()
