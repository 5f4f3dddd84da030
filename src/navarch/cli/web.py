"""`navarch web`: the dashboard of a cluster."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Any

import click

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.scheduler_names import served
from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.registry import RegistrationError
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, KubeError
from navarch.kube.resources import Resource
from navarch.live.ops.health import ListenError
from navarch.offline.plan import read_policy
from navarch.web.server import WebOptions, WebServer

NODES = Resource("", "v1", "nodes", namespaced=False)
EXAMPLES = """\b
Examples:
  navarch web                                          # the cluster of the kubeconfig; prints the address to open
  navarch web --listen 127.0.0.1:9000 --policy volcano
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Cluster to show; else $KUBECONFIG, the pod's account, ~/.kube/config."
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--listen", default="127.0.0.1:8090", show_default=True, metavar="ADDR", help="Where to serve; port 0: any free one.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name besides localhost that browsers may use; may repeat.")
@click.option("--policy", default="navarch", show_default=True, metavar="FILE|PRESET", help=f"One of {', '.join(PRESETS)}, or a file.")
@click.option("--scheduler-name", "scheduler_names", multiple=True, metavar="NAME", help="spec.schedulerName to show; may repeat.")
@namespace_as_queue_option
@plugin_dirs_option
def web(
    kubeconfig: Path | None,
    context: str | None,
    policy: str,
    scheduler_names: tuple[str, ...],
    plugin_dirs: tuple[Path, ...],
    **given: Any,
) -> None:
    """Serve the dashboard of a cluster until stopped.

    Prints an address with a token; open it in a browser. Reads the cluster by watches of its own and writes nothing.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        endpoint = connect(kubeconfig, context)
        registry = installed(plugin_dirs)
        chosen = read_policy(policy, registry)
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
    except (PolicyError, RegistrationError) as error:
        raise click.UsageError(str(error)) from None

    async def main() -> None:
        names = scheduler_names or await _names(endpoint)
        server = WebServer(endpoint, chosen, registry, WebOptions(scheduler_names=names, **given), policy)
        try:
            await server.start()
        except ListenError as error:
            raise click.UsageError(f"--listen {error}") from None
        click.echo(server.address)
        sys.stdout.flush()
        running = asyncio.create_task(server.run(), name="web")
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, running.cancel)
        try:
            await running
        except asyncio.CancelledError:
            pass
        finally:
            await server.stop()

    _run(main())


async def _names(endpoint: Endpoint) -> tuple[str, ...]:
    """The scheduler names that are served: those of an embedded cluster, or `navarch`."""
    async with Client(endpoint) as client:
        try:
            async for page in client.pages(NODES, dict, page_size=1):
                return tuple(sorted(served((), page.items or ())))
        except KubeError:
            pass  # the informers tell what is wrong with the server
    return ("navarch",)


def _run(main: Any) -> None:
    """Use uvloop if it is installed: it takes less CPU for the same requests."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
