"""What `navarch jobs`, `queues` and `nodes` share: their options, reading a cluster into the model, and printing rows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml
from rich.console import Console
from rich.table import Table

from navarch.cache.usage_over_time import UsageOverTime
from navarch.cli.overview import JobRow, NodeRow, Overview, QueueRow, overview
from navarch.dialects.inventory import Inventory
from navarch.dialects.manifests import Document
from navarch.dialects.registry import KINDS
from navarch.engine.policy import Policy, PolicyError
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, Forbidden, KubeError, NotFound
from navarch.kube.resources import PODS, Resource
from navarch.model.cluster import Cluster
from navarch.plan import read_policy, settings_for

F = TypeVar("F", bound=Callable[..., Any])
Row = JobRow | QueueRow | NodeRow
LOOKED_AT = ("Namespace", "Node", "PodGroup", "PriorityClass", "Queue")
WATCH_SECONDS = 2.0
_POLICY = "Whose rules say what a queue deserves."


def looking_options(command: F) -> F:
    """The options that all three commands take."""
    for option in reversed(
        (
            click.option("--kubeconfig", type=click.Path(path_type=Path), help="Cluster to look at; else as kubectl finds it."),
            click.option("--context", help="Context of the kubeconfig."),
            click.option("--policy", default="navarch", show_default=True, metavar="FILE|PRESET", help=_POLICY),
            click.option("-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True),
            click.option("-w", "--watch", is_flag=True, help="Print again when something changed, until stopped."),
        )
    ):
        command = option(command)
    return command


def look(
    kubeconfig: Path | None,
    context: str | None,
    policy: str,
    output: str,
    watch: bool,
    rows_of: Callable[[Overview, Endpoint], Sequence[Row]],
    table_of: Callable[[Sequence[Any], float], Table],
) -> None:
    """Read, choose rows, print; once or until stopped."""
    try:
        endpoint = connect(kubeconfig, context)
        asyncio.run(_look(endpoint, policy, output, watch, rows_of, table_of))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except PolicyError as error:
        raise click.UsageError(str(error)) from None
    except KubeError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        return


async def _look(
    endpoint: Endpoint,
    policy: str,
    output: str,
    watch: bool,
    rows_of: Callable[[Overview, Endpoint], Sequence[Row]],
    table_of: Callable[[Sequence[Any], float], Table],
) -> None:
    before: list[dict[str, Any]] | None = None
    async with Client(endpoint) as client:
        while True:
            rows = rows_of(await read(client, policy), endpoint)
            plain = [row.to_dict() for row in rows]
            if plain != before:
                _print(rows, plain, output, table_of)
                before = plain
            if not watch:
                return
            await asyncio.sleep(WATCH_SECONDS)


def _print(rows: Sequence[Row], plain: list[dict[str, Any]], output: str, table_of: Callable[..., Table]) -> None:
    match output:
        case "json":
            click.echo(json.dumps({"items": plain}, indent=2))
        case "yaml":
            click.echo(yaml.safe_dump({"items": plain}, sort_keys=False, width=120), nl=False)
        case _ if not rows:
            click.echo("nothing found", err=True)
        case _:
            console = Console(highlight=False)
            if not console.is_terminal:
                console.width = 240
            console.print(table_of(rows, time.time()))


async def read(client: Client, policy_name: str) -> Overview:
    """The whole cluster as rows. Kinds that are not served, or that we may not list, are passed over."""
    registry = installed()
    policy = read_policy(policy_name, registry)
    wanted: dict[str, list[tuple[Resource, str]]] = {}
    for (api_version, name), kind in KINDS.items():
        if name in LOOKED_AT:
            group, _, version = api_version.rpartition("/")
            resource = Resource(group, version, kind.plural, namespaced=kind.namespaced)
            wanted.setdefault(f"{name}.{group}", []).append((resource, name))
    lists = await asyncio.gather(
        _list(client, [(PODS, "Pod")]), *(_list(client, versions) for versions in wanted.values())
    )
    documents = [Document(each, "") for found in lists for each in found]
    inventory = Inventory(documents, settings_for(policy))
    for mistake in inventory.mistakes:
        click.echo(f"left out: {mistake}", err=True)
    cluster = Cluster()
    inventory.fill(cluster)
    await _lay_in_usage(policy, cluster)
    pods = {(pod.metadata.namespace or "default", pod.metadata.name): pod for pod in inventory.pods.values()}
    return overview(cluster, policy, registry, time.time(), lambda namespace, name: pods.get((namespace, name)))


async def _lay_in_usage(policy: Policy, cluster: Cluster) -> None:
    """What queues held over time, if the policy names a server that can be asked. A history that the scheduler keeps for itself
    lies beside it, not here."""
    if policy.usage.get("clientType") != "prometheus":
        return
    usage = UsageOverTime(time.time)
    await usage.open(policy.usage)
    try:
        usage.lay_into(cluster)
        if usage.problem():
            click.echo(usage.problem(), err=True)
    finally:
        await usage.close()


async def _list(client: Client, versions: Sequence[tuple[Resource, str]]) -> list[dict[str, Any]]:
    """The objects of a kind in the first version that is served."""
    for resource, kind in versions:
        try:
            listing = await client.list(resource)
        except NotFound:
            continue
        except Forbidden as error:
            click.echo(f"not shown: {error}", err=True)
            return []
        return [{**each, "apiVersion": resource.api_version, "kind": kind} for each in listing.items]
    return []
