"""A client that only writes: it decides nothing, pod i goes to node i modulo the number of nodes.

What it reaches is what the API server and this machine allow, and so the ceiling of any scheduler that makes the same
writes. Run as a process of its own by the benchmark; `--events` adds the Scheduled event to each binding.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import click

from bench.live import objects
from bench.live.wire import Pool, Target


async def _write(target: Target, pods: int, nodes: int, connections: int, events: bool) -> None:
    def requests() -> Iterator[tuple[str, bytes]]:
        for index in range(pods):
            pod, node = f"pod-{index:05d}", f"node-{index % nodes:05d}"
            yield objects.binding(pod, node)
            if events:
                yield objects.event(pod, node)

    async with Pool(target, connections) as pool:
        await pool.post_all(requests())


@click.command()
@click.option("--kubeconfig", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--pods", type=int, required=True)
@click.option("--nodes", type=int, required=True)
@click.option("--connections", type=int, default=32, show_default=True)
@click.option("--events", is_flag=True)
def main(kubeconfig: Path, pods: int, nodes: int, connections: int, events: bool) -> None:
    try:
        import uvloop

        uvloop.install()
    except ImportError:
        pass  # the standard loop does; uvloop is an extra
    asyncio.run(_write(Target.read(kubeconfig), pods, nodes, connections, events))
    signal.pause()  # stays, so that the benchmark can read what it used


if __name__ == "__main__":
    main()
