"""What `navarch jobs`, `queues` and `nodes` share: their options, reading a cluster into the model, and printing rows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml
from rich.table import Table

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.listing import Listed, listed
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.scheduler_names import served
from navarch.cli.tables.rows import print_rows
from navarch.cli.tables.text import output_console
from navarch.engine.policy import Policy, PolicyError
from navarch.engine.registry import RegistrationError, Registry
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, KubeError
from navarch.live.usage.usage_over_time import UsageOverTime
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, QueueSpec
from navarch.offline.inventory import Inventory
from navarch.offline.plan import read_policy, settings_for
from navarch.views.overview import JobRow, NodeRow, Overview, QueueRow, overview

F = TypeVar("F", bound=Callable[..., Any])
Row = JobRow | QueueRow | NodeRow
TableOf = Callable[[Sequence[Any], float], Table]
OthersOf = Callable[[Overview, Endpoint], Mapping[str, int]]
NamespaceOf = Callable[[Endpoint], str | None]
WATCH_SECONDS = 2.0
UNSEEN = "?"
"""The queue of a job whose group may not be looked at."""
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
    needs: Sequence[str],
    scheduler_names: Sequence[str] = (),
    others_of: OthersOf | None = None,
    namespace_of: NamespaceOf | None = None,
) -> None:
    """Read, choose rows, print; once or until stopped. Without the kinds that it `needs` there is nothing to show. `others_of` counts
    the pods that wait for other schedulers, by name. `namespace_of` is for jobs: the namespace that is enough, if one is."""
    try:
        endpoint = connect(kubeconfig, context)
        reading = _Reading(policy, installed(plugin_dirs), scheduler_names, needs, namespace_of)
        asyncio.run(_look(endpoint, reading, output, watch, rows_of, table_of, others_of))
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
    reading: _Reading,
    output: str,
    watch: bool,
    rows_of: Callable[[Overview, Endpoint], Sequence[Row]],
    table_of: TableOf,
    others_of: OthersOf | None,
) -> None:
    before: dict[str, Any] | None = None
    async with Client(endpoint) as client:
        while True:
            found = await reading(client, endpoint)
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
    """The whole cluster as rows, for whoever may list all of it."""
    return await _rows(await listed(client), policy_name, registry, scheduler_names, lambda text: click.echo(text, err=True))


@dataclass
class _Reading:
    """Reads a cluster again and again, and tells what it cannot show once."""

    policy: str
    registry: Registry
    scheduler_names: Sequence[str]
    needs: Sequence[str]
    namespace_of: NamespaceOf | None
    told: set[str] = field(default_factory=set)

    async def __call__(self, client: Client, endpoint: Endpoint) -> Overview:
        namespace = self.namespace_of(endpoint) if self.namespace_of else None
        found = await listed(client, namespace)
        for each in found.refused:
            if each.kind in self.needs:
                elsewhere = "; -n NAMESPACE shows one where they may be listed" if self.namespace_of and namespace is None else ""
                raise click.ClickException(f"{each.error}{elsewhere}")
        if self.namespace_of:
            return await _rows(found, self.policy, self.registry, self.scheduler_names, self._tell, found.unseen)
        if found.refused:
            self._tell(found.told())
        return await _rows(found, self.policy, self.registry, self.scheduler_names, self._tell)

    def _tell(self, text: str) -> None:
        if text not in self.told:
            click.echo(text, err=True)
        self.told.add(text)


async def _rows(
    found: Listed,
    policy_name: str,
    registry: Registry,
    scheduler_names: Sequence[str],
    tell: Callable[[str], None],
    unseen: frozenset[str] = frozenset(),
) -> Overview:
    policy = read_policy(policy_name, registry)
    inventory = Inventory(found.documents, settings_for(policy))
    for mistake in inventory.mistakes:
        tell(f"left out: {mistake}")
    cluster = inventory.cluster
    if _stand_in(cluster, unseen):
        tell(found.told("PodGroup"))
    await _lay_in_usage(policy, cluster, tell)
    pods = {(pod.metadata.namespace or "default", pod.metadata.name): pod for pod in inventory.pods.values()}
    ours = served(scheduler_names, (each.manifest for each in found.documents if each.manifest.get("kind") == "Node"))
    return overview(cluster, policy, registry, time.time(), lambda namespace, name: pods.get((namespace, name)), ours)


def _stand_in(cluster: Cluster, unseen: frozenset[str]) -> bool:
    """Groups and queues that may not be listed are taken to exist: nobody is told that they do not. True: a group was."""
    groups = [key for key, row in cluster.jobs.rows.of.items() if cluster.jobs.specs[row] is None] if "PodGroup" in unseen else []
    for key in groups:
        cluster.put_job(JobSpec(key, UNSEEN, min_member=0))
    for spec in cluster.jobs.specs:
        if spec is not None and spec.queue not in cluster.queues and (spec.queue == UNSEEN or "Queue" in unseen):
            cluster.put_queue(QueueSpec(spec.queue))
    return bool(groups)


async def _lay_in_usage(policy: Policy, cluster: Cluster, tell: Callable[[str], None]) -> None:
    """What queues held over time, if the policy names a server that can be asked. A history that the scheduler keeps for itself
    lies beside it, not here."""
    if policy.usage.get("clientType") != "prometheus":
        return
    usage = UsageOverTime(time.time)
    await usage.open(policy.usage)
    try:
        usage.put_into(cluster)
        if usage.problem():
            tell(usage.problem())
    finally:
        await usage.close()
