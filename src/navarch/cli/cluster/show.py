"""Print rows of a cluster, once or again whenever something changed: what `navarch jobs`, `queues` and `nodes` do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click
import yaml

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.cluster.leader import Leader
from navarch.cli.cluster.listing import listed
from navarch.cli.cluster.options import ClusterOptions
from navarch.cli.cluster.reading import overview_of
from navarch.cli.cluster.selection import in_order, require_names, selected
from navarch.cli.cluster.start_estimate import StartEstimate
from navarch.cli.tables.columns import Layout, TableForm, print_lines, print_rows
from navarch.cli.tables.document import print_document
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
from navarch.views.published_state import PublishedState
from navarch.views.queues import QueueRow

Row = JobRow | QueueRow | NodeRow
WATCH_SECONDS = 2.0
GONE = "Deleted"


@dataclass(frozen=True)
class Listing:
    """What one command shows."""

    rows: Callable[[Overview, Endpoint], Sequence[Any]]
    form: Callable[[Sequence[Any], float], TableForm[Any]]
    needs: Sequence[str]
    """Kinds without which there is nothing to show."""
    gone: Callable[[Any], Any]
    """The row of an object that was deleted, as --watch prints it last."""
    scheduler_names: Sequence[str] = ()
    others: Callable[[Overview, Endpoint], Mapping[str, int]] | None = None
    """Scheduler name -> pods that wait for another scheduler."""
    namespace: Callable[[Endpoint], str | None] | None = None
    """For jobs: the namespace to list, or None for all."""
    only_nodes: bool = False
    published: Callable[[PublishedState], Overview] | None = None
    """What can be shown to a user who may not list the cluster: that which the scheduler publishes."""
    estimate: StartEstimate | None = None
    """For jobs: with start times."""


def show(options: ClusterOptions, listing: Listing) -> None:
    try:
        endpoint = connect(options.kubeconfig, options.context)
        asyncio.run(_show(endpoint, _Reading(options, listing, installed(options.plugin_dirs))))
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if options.kubeconfig or options.context else reminder()}") from None
    except (PolicyError, RegistrationError) as error:
        raise click.UsageError(str(error)) from None
    except KubeError as error:
        raise cluster_failure(error, options.kubeconfig, options.context) from None
    except KeyboardInterrupt:
        return


async def _show(endpoint: Endpoint, reading: _Reading) -> None:
    options, listing = reading.options, reading.listing
    async with Client(endpoint) as client:
        found = await reading(client, endpoint)
        rows = listing.rows(found, endpoint)
        require_names(rows, options.names)
        rows = selected(rows, options)
        form = listing.form(rows, time.time())
        rows = in_order(rows, form, options.sort_by)
        others = {} if listing.others is None else listing.others(found, endpoint)
        table = _print(rows, form, options.output, others)
        before = {_identity(row): row for row in rows}
        while options.watch:
            await asyncio.sleep(WATCH_SECONDS)
            found = await reading(client, endpoint)
            rows = selected(listing.rows(found, endpoint), options)
            now = {_identity(row): row for row in rows}
            changed = [row for key, row in now.items() if key not in before or before[key].to_dict() != row.to_dict()]
            changed += [listing.gone(row) for key, row in before.items() if key not in now]
            if table is None and changed and options.output in ("table", "wide"):
                table = _print(changed, listing.form(changed, time.time()), options.output, {})
            elif changed:
                _print_changed(changed, table, options.output, listing.form(changed, time.time()))
            before = now


def _identity(row: Row) -> tuple[str, str, str]:
    """A job's group tells two ReplicaSets of one Deployment apart."""
    return (row.namespace, row.resource, row.key) if isinstance(row, JobRow) else ("", row.resource, row.name)


def _print(rows: Sequence[Any], form: TableForm[Any], output: str, others: Mapping[str, int]) -> Layout[Any] | None:
    """Returns the layout in which rows that change later are printed."""
    plain: dict[str, Any] = {"items": [row.to_dict() for row in rows]} if output in ("json", "yaml") else {}
    if others and plain:
        plain["otherSchedulers"] = dict(others)
    if print_document(plain, output):
        return None
    if output == "name":
        _print_changed(rows, None, output, form)
        return None
    made = None
    if rows:
        made = print_rows(output_console(), form, rows, wide=output == "wide")
    else:
        click.echo("nothing found", err=True)
    if others:
        click.echo(_others_text(others), err=True)
    return made


def _print_changed(rows: Sequence[Any], made: Layout[Any] | None, output: str, form: TableForm[Any]) -> None:
    """The rows alone, without a header, as kubectl prints what changed."""
    match output:
        case "json":
            for row in rows:
                click.echo(json.dumps(row.to_dict(), indent=2))
        case "yaml":
            for row in rows:
                click.echo(f"---\n{yaml.safe_dump(row.to_dict(), sort_keys=False, width=120)}", nl=False)
        case "name":
            for row in rows:
                click.echo(f"{row.resource}/{row.name}")
        case _:
            assert made is not None
            now = replace(made, columns=[next(new for new in form.columns if new.heading == old.heading) for old in made.columns])
            print_lines(output_console(), [line for row in rows for line in now.lines(row)])


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
    leader: Leader | None = None

    async def __call__(self, client: Client, endpoint: Endpoint) -> Overview:
        options, listing = self.options, self.listing
        leader = self.leader = self.leader or Leader(client, options.state)
        namespace = listing.namespace(endpoint) if listing.namespace else None
        found = await listed(client, namespace, only_nodes=listing.only_nodes)
        for each in found.refused:
            if each.kind in listing.needs:
                if listing.published is not None and (state := await leader.state()) is not None:
                    self._tell(f"{each.plural} may not be listed: these are the figures that the scheduler published at {state.time}")
                    return listing.published(state)
                hint = "; -n NAMESPACE shows one where they may be listed" if listing.namespace and namespace is None else ""
                raise click.ClickException(f"{each.error}{hint}")
        if found.refused and not listing.namespace:
            self._tell(found.told())
        unseen = found.unseen if listing.namespace else frozenset()
        names, as_queue = listing.scheduler_names, options.namespace_as_queue
        state = await leader.state()
        waiting = await leader.waiting() if listing.namespace is not None and (state is not None or options.state.url) else None
        return await overview_of(
            found,
            options.policy,
            self.registry,
            self._tell,
            names,
            as_queue,
            unseen,
            state,
            waiting,
            only_nodes=listing.only_nodes,
            estimate=listing.estimate,
        )

    def _tell(self, text: str) -> None:
        if text not in self.told:
            click.echo(text, err=True)
        self.told.add(text)
