"""`navarch web`: the dashboard of a cluster."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.state_option import state_option
from navarch.cli.history_file import history_option
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.scheduler_names import served
from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.registry import RegistrationError
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, KubeError
from navarch.kube.listener import raise_descriptor_limit
from navarch.kube.resources import Resource
from navarch.live.ops.event_loop import run_in_event_loop
from navarch.live.ops.health import ListenError, tls_context
from navarch.live.ops.log_lines import log_to_stderr
from navarch.views.published_state import PublishedState, StateAddress, read_state
from navarch.views.running_policy import running_policy
from navarch.web.server import Follow, WebOptions, WebServer

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NODES = Resource("", "v1", "nodes", namespaced=False)
EXAMPLES = """\b
Examples:
  navarch web                                          # the cluster of the kubeconfig; prints the address to open
  navarch web --listen 127.0.0.1:9000 --policy volcano
  navarch web --scheduler http://localhost:8080        # a scheduler on this machine, not through the API server
  navarch web --simulations out --recordings records   # with reports of `navarch simulate`, and recorded cycles
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Cluster to show; else $KUBECONFIG, the pod's account, ~/.kube/config."
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--listen", default="127.0.0.1:8090", show_default=True, metavar="ADDR", help="Where to serve; port 0: any free one.")
@click.option(
    "--login", type=click.Choice(("token", "cluster")), help="A printed token, or tokens of the cluster.  [token on loopback]"
)
@click.option("--tls-cert-file", "tls_certificate", type=_FILE, metavar="FILE", help="Serve over TLS.")
@click.option("--tls-key-file", "tls_key", type=_FILE, metavar="FILE", help="The key of --tls-cert-file.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name besides localhost that browsers may use; may repeat.")
@click.option("--policy", metavar="FILE|PRESET", help=f"One of {', '.join(PRESETS)}, or a file.  [that of the running scheduler]")
@click.option("--scheduler", default="", metavar="URL", help="The scheduler's metrics port.  [found, and read through the API server]")
@history_option
@click.option("--simulations", type=_FOLDER, metavar="DIR", help="Folder with reports of `navarch simulate --report`.")
@click.option("--recordings", type=_FOLDER, metavar="DIR", help="Folder of `navarch run --record`.")
@click.option("--scheduler-name", "scheduler_names", multiple=True, metavar="NAME", help="spec.schedulerName to show; may repeat.")
@click.option("--stop-with-input", is_flag=True, hidden=True, help="Stop when standard input ends.")
@state_option
@namespace_as_queue_option
@plugin_dirs_option
def web(
    kubeconfig: Path | None,
    context: str | None,
    policy: str | None,
    scheduler_names: tuple[str, ...],
    namespace_as_queue: bool,
    plugin_dirs: tuple[Path, ...],
    stop_with_input: bool,
    listen: str,
    login: str | None,
    state: str,
    tls_certificate: Path | None,
    tls_key: Path | None,
    **given: Any,
) -> None:
    """Serve the dashboard of a cluster until stopped.

    Prints an address with a token; open it in a browser. Reads the cluster by watches of its own and writes nothing.
    """
    log_to_stderr("text", "warning")
    raise_descriptor_limit()
    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-cert-file, --tls-key-file: expected both or none")
    if login == "token" and not _is_loopback(listen):
        raise click.UsageError(
            f"--login token: expected a loopback address to listen on, found {listen}; --login cluster reviews tokens"
        )
    try:
        tls = tls_context(tls_certificate, tls_key) if tls_certificate is not None and tls_key is not None else None
    except ListenError as error:
        raise click.UsageError(str(error)) from None
    try:
        endpoint = connect(kubeconfig, context)
        registry = installed(plugin_dirs)
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None

    async def main() -> None:
        try:
            published, hollow = await _found(endpoint, StateAddress.parse(state))
            running = running_policy(policy, published, registry)
        except PolicyError as error:
            raise click.UsageError(str(error)) from None
        for note in running.notes:
            click.echo(note, err=True)
        names = scheduler_names or running.scheduler_names or served((), hollow)
        as_queue = namespace_as_queue or running.parameters.namespace_as_queue
        options = WebOptions(
            scheduler_names=sorted(names),
            names_given=bool(scheduler_names),
            namespace_as_queue=as_queue,
            kubeconfig=kubeconfig,
            context=context,
            plugin_dirs=plugin_dirs,
            listen=listen,
            login=login or ("token" if _is_loopback(listen) else "cluster"),
            tls=tls,
            state=StateAddress.parse(state),
            **given,
        )
        follow = None if policy else Follow(published)
        await _serve(
            WebServer(endpoint, running.policy, registry, options, running.settings(sorted(names), as_queue), follow=follow),
            stop_with_input,
        )

    run_in_event_loop(main())


async def _serve(server: WebServer, stop_with_input: bool) -> None:
    try:
        await server.start()
    except ListenError as error:
        raise click.UsageError(f"--listen {error}") from None
    click.echo(server.address)
    sys.stdout.flush()
    running = asyncio.create_task(server.run(), name="web")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    if stop_with_input:
        loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 64) else running.cancel())
    try:
        await running
    except asyncio.CancelledError:
        pass
    finally:
        await server.stop()


def _is_loopback(listen: str) -> bool:
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _found(endpoint: Endpoint, address: StateAddress) -> tuple[PublishedState | None, Sequence[dict[str, Any]]]:
    """What the running scheduler publishes, and one node. The informers tell what is wrong with a server that does not answer."""
    async with Client(endpoint) as client:
        try:
            state = await read_state(client, address)
            async for page in client.pages(NODES, dict[str, Any], page_size=1):
                return state, page.items or ()
            return state, ()
        except KubeError:
            return None, ()
