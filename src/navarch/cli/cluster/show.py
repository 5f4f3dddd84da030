"""Print rows of a cluster, once or again whenever something changed: what `navarch jobs`, `queues` and `nodes` do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import yaml
from rich.table import Table

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.listing import listed
from navarch.cli.cluster.options import ClusterOptions
from navarch.cli.cluster.reading import overview_of
from navarch.cli.tables.rows import print_rows
from navarch.cli.tables.text import output_console
from navarch.engine.policy import PolicyError
from navarch.engine.registry import RegistrationError, Registry
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, KubeError
from navarch.views.jobs import JobRow
from navarch.views.nodes import NodeRow
from navarch.views.overview import Overview
from navarch.views.published_state import PublishedState, WaitingPage, read_page, read_state
from navarch.views.queues import QueueRow

Row = JobRow | QueueRow | NodeRow
WATCH_SECONDS = 2.0


@dataclass(frozen=True)
class Listing:
    """What one command shows."""

    rows: Callable[[Overview, Endpoint], Sequence[Row]]
    table: Callable[[Sequence[Any], float], Table]
    needs: Sequence[str]
    """Kinds without which there is nothing to show."""
    scheduler_names: Sequence[str] = ()
    others: Callable[[Overview, Endpoint], Mapping[str, int]] | None = None
    """Scheduler name -> pods that wait for another scheduler."""
    namespace: Callable[[Endpoint], str | None] | None = None
    """For jobs: the namespace to list, or None for all."""


def show(options: ClusterOptions, listing: Listing) -> None:
    try:
        endpoint = connect(options.kubeconfig, options.context)
        asyncio.run(_show(endpoint, _Reading(options, listing, installed(options.plugin_dirs))))
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if options.kubeconfig or options.context else reminder()}") from None
    except (PolicyError, RegistrationError) as error:
        raise click.UsageError(str(error)) from None
    except KubeError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        return


async def _show(endpoint: Endpoint, reading: _Reading) -> None:
    options, listing = reading.options, reading.listing
    before: dict[str, Any] | None = None
    async with Client(endpoint) as client:
        while True:
            found = await reading(client, endpoint)
            rows = listing.rows(found, endpoint)
            others = {} if listing.others is None else listing.others(found, endpoint)
            plain: dict[str, Any] = {"items": [row.to_dict() for row in rows]}
            if others:
                plain["otherSchedulers"] = dict(others)
            if plain != before:
                _print(rows, plain, options.output, listing, others)
                before = plain
            if not options.watch:
                return
            await asyncio.sleep(WATCH_SECONDS)


def _print(rows: Sequence[Row], plain: dict[str, Any], output: str, listing: Listing, others: Mapping[str, int]) -> None:
    match output:
        case "json":
            click.echo(json.dumps(plain, indent=2))
            return
        case "yaml":
            click.echo(yaml.safe_dump(plain, sort_keys=False, width=120), nl=False)
            return
    if rows:
        print_rows(output_console(), rows, lambda some: listing.table(some, time.time()), wide=output == "wide")
    else:
        click.echo("nothing found", err=True)
    if others:
        click.echo(_others_text(others), err=True)


def _others_text(others: Mapping[str, int]) -> str:
    """
    >>> _others_text({"default-scheduler": 3, "volcano": 1})
    '4 pending pods name other schedulers (default-scheduler 3, volcano 1)'
    """
    count = sum(others.values())
    which = ", ".join(f"{name} {number}" for name, number in sorted(others.items(), key=lambda each: (-each[1], each[0])))
    whose = "pods name other schedulers" if count > 1 else "pod names another scheduler"
    return f"{count} pending {whose} ({which})"


@dataclass
class _Reading:
    """Reads a cluster again and again, and says once what it cannot show."""

    options: ClusterOptions
    listing: Listing
    registry: Registry
    told: set[str] = field(default_factory=set)

    async def __call__(self, client: Client, endpoint: Endpoint) -> Overview:
        options, listing = self.options, self.listing
        namespace = listing.namespace(endpoint) if listing.namespace else None
        found = await listed(client, namespace)
        for each in found.refused:
            if each.kind in listing.needs:
                hint = "; -n NAMESPACE shows one where they may be listed" if listing.namespace and namespace is None else ""
                raise click.ClickException(f"{each.error}{hint}")
        if found.refused and not listing.namespace:
            self._tell(found.told())
        unseen = found.unseen if listing.namespace else frozenset()
        names, as_queue = listing.scheduler_names, options.namespace_as_queue
        state, waiting = await self._published(client, endpoint)
        return await overview_of(found, options.policy, self.registry, self._tell, names, as_queue, unseen, state, waiting)

    async def _published(self, client: Client, endpoint: Endpoint) -> tuple[PublishedState | None, WaitingPage | None]:
        """What the scheduler publishes, and its order of waiting jobs if the user gave its address."""
        address = self.options.state
        waiting = await read_page(endpoint, address.url, WaitingPage) if address.url else None
        return await read_state(client, address), waiting

    def _tell(self, text: str) -> None:
        if text not in self.told:
            click.echo(text, err=True)
        self.told.add(text)
