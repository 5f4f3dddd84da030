"""What `navarch jobs`, `queues` and `nodes` share: their options, reading a cluster into the model, and printing rows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml
from rich.table import Table

from navarch.cache.usage_over_time import UsageOverTime
from navarch.cli.embedded_kubeconfig import reminder
from navarch.cli.overview import JobRow, NodeRow, Overview, QueueRow, overview
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.row_tables import print_rows
from navarch.cli.scheduler_names import served
from navarch.cli.tables import output_console
from navarch.dialects.inventory import Inventory
from navarch.dialects.manifests import Document
from navarch.dialects.registry import KINDS
from navarch.engine.policy import Policy, PolicyError
from navarch.engine.registry import RegistrationError, Registry
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, Forbidden, KubeError, NotFound
from navarch.kube.resources import PODS, Resource
from navarch.model.cluster import Cluster
from navarch.plan import read_policy, settings_for

F = TypeVar("F", bound=Callable[..., Any])
Row = JobRow | QueueRow | NodeRow
TableOf = Callable[[Sequence[Any], float], Table]
OthersOf = Callable[[Overview, Endpoint], Mapping[str, int]]
LOOKED_AT = ("Namespace", "Node", "PodGroup", "PriorityClass", "Queue")
WATCH_SECONDS = 2.0
FORMS = ("table", "wide", "json", "yaml")
_OUTPUT = "A table for the terminal's width, one with every word, or all that is known."
_POLICY = "Whose rules say what a queue deserves."


def looking_options(command: F) -> F:
    """The options that all three commands take."""
    for option in reversed(
        (
            click.option("--kubeconfig", type=click.Path(path_type=Path), help="Cluster to look at; else as kubectl finds it."),
            click.option("--context", help="Context of the kubeconfig."),
            click.option("--policy", default="navarch", show_default=True, metavar="FILE|PRESET", help=_POLICY),
            plugin_dirs_option,
            click.option("-o", "--output", type=click.Choice(FORMS), default="table", show_default=True, help=_OUTPUT),
            click.option("-w", "--watch", is_flag=True, help="Print again when something changed, until stopped."),
        )
    ):
        command = option(command)
    return command


def look(
    kubeconfig: Path | None,
    context: str | None,
    policy: str,
    plugin_dirs: tuple[Path, ...],
    output: str,
    watch: bool,
    rows_of: Callable[[Overview, Endpoint], Sequence[Row]],
    table_of: TableOf,
    scheduler_names: Sequence[str] = (),
    others_of: OthersOf | None = None,
) -> None:
    """Read, choose rows, print; once or until stopped. `others_of` counts the pods that wait for other schedulers, by their name."""
    try:
        endpoint = connect(kubeconfig, context)
        asyncio.run(_look(endpoint, policy, installed(plugin_dirs), output, watch, rows_of, table_of, scheduler_names, others_of))
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if kubeconfig or context else reminder()}") from None
    except (PolicyError, RegistrationError) as error:
        raise click.UsageError(str(error)) from None
    except KubeError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        return


async def _look(
    endpoint: Endpoint,
    policy: str,
    registry: Registry,
    output: str,
    watch: bool,
    rows_of: Callable[[Overview, Endpoint], Sequence[Row]],
    table_of: TableOf,
    scheduler_names: Sequence[str],
    others_of: OthersOf | None,
) -> None:
    before: dict[str, Any] | None = None
    async with Client(endpoint) as client:
        while True:
            found = await read(client, policy, registry, scheduler_names)
            rows = rows_of(found, endpoint)
            others = {} if others_of is None else others_of(found, endpoint)
            plain: dict[str, Any] = {"items": [row.to_dict() for row in rows]}
            if others:
                plain["otherSchedulers"] = dict(others)
            if plain != before:
                _print(rows, plain, output, table_of, others)
                before = plain
            if not watch:
                return
            await asyncio.sleep(WATCH_SECONDS)


def _print(rows: Sequence[Row], plain: dict[str, Any], output: str, table_of: TableOf, others: Mapping[str, int]) -> None:
    match output:
        case "json":
            click.echo(json.dumps(plain, indent=2))
            return
        case "yaml":
            click.echo(yaml.safe_dump(plain, sort_keys=False, width=120), nl=False)
            return
    if rows:
        print_rows(output_console(), rows, lambda some: table_of(some, time.time()), wide=output == "wide")
    else:
        click.echo("nothing found", err=True)
    if others:
        click.echo(_waiting_elsewhere(others), err=True)


def _waiting_elsewhere(others: Mapping[str, int]) -> str:
    """
    >>> _waiting_elsewhere({"default-scheduler": 3, "volcano": 1})
    '4 pending pods name other schedulers (default-scheduler 3, volcano 1)'
    """
    count = sum(others.values())
    which = ", ".join(f"{name} {number}" for name, number in sorted(others.items(), key=lambda each: (-each[1], each[0])))
    whose = "pods name other schedulers" if count > 1 else "pod names another scheduler"
    return f"{count} pending {whose} ({which})"


async def read(client: Client, policy_name: str, registry: Registry, scheduler_names: Sequence[str] = ()) -> Overview:
    """The whole cluster as rows. Kinds that are not served, or that we may not list, are passed over."""
    policy = read_policy(policy_name, registry)
    wanted: dict[str, list[tuple[Resource, str]]] = {}
    for (api_version, name), kind in KINDS.items():
        if name in LOOKED_AT:
            group, _, version = api_version.rpartition("/")
            resource = Resource(group, version, kind.plural, namespaced=kind.namespaced)
            wanted.setdefault(f"{name}.{group}", []).append((resource, name))
    lists = await asyncio.gather(_list(client, [(PODS, "Pod")]), *(_list(client, versions) for versions in wanted.values()))
    documents = [Document(each, "") for found in lists for each in found]
    inventory = Inventory(documents, settings_for(policy))
    for mistake in inventory.mistakes:
        click.echo(f"left out: {mistake}", err=True)
    cluster = Cluster()
    inventory.fill(cluster)
    await _lay_in_usage(policy, cluster)
    pods = {(pod.metadata.namespace or "default", pod.metadata.name): pod for pod in inventory.pods.values()}
    ours = served(scheduler_names, (each.manifest for each in documents if each.manifest.get("kind") == "Node"))
    return overview(cluster, policy, registry, time.time(), lambda namespace, name: pods.get((namespace, name)), ours)


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
