"""Print rows of a cluster, once or again whenever something changed: what `navarch jobs`, `queues` and `nodes` do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click
import yaml

from navarch.cli.cluster.embedded_kubeconfig import reminder
from navarch.cli.cluster.failure import cluster_failure
from navarch.cli.cluster.options import ClusterOptions
from navarch.cli.cluster.selection import in_order, require_names, selected
from navarch.cli.tables.columns import Layout, TableForm, print_lines, print_rows
from navarch.cli.tables.document import print_document
from navarch.cli.tables.text import output_console
from navarch.engine.policy import PolicyError
from navarch.engine.registry import RegistrationError
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, KubeError

WATCH_SECONDS = 2.0
GONE = "Deleted"


Tell = Callable[[str], None]
"""Called with a line for the user about something that the rows do not show. A line is printed once."""


@dataclass(frozen=True)
class Shown:
    rows: Sequence[Any]
    others: Mapping[str, int] = field(default_factory=dict)
    """Scheduler name -> pods that wait for another scheduler."""


@dataclass(frozen=True)
class Listing:
    """What one command shows."""

    read: Callable[[Client, Endpoint, Tell], Awaitable[Shown]]
    form: Callable[[Sequence[Any], float], TableForm[Any]]
    gone: Callable[[Any], Any]
    """The row of an object that was deleted, as --watch prints it last."""
    noun: str
    """What one row is."""
    where: Callable[[Endpoint], str] = lambda _: ""
    """Where rows were looked for: empty, or such as ` in namespace a`."""


def show(options: ClusterOptions, listing: Listing) -> None:
    try:
        asyncio.run(_show(connect(options.kubeconfig, options.context), options, listing))
    except ConfigError as error:
        raise click.UsageError(f"{error}{'' if options.kubeconfig or options.context else reminder()}") from None
    except (PolicyError, RegistrationError) as error:
        raise click.UsageError(str(error)) from None
    except KubeError as error:
        raise cluster_failure(error, options.kubeconfig, options.context) from None
    except KeyboardInterrupt:
        return


async def _show(endpoint: Endpoint, options: ClusterOptions, listing: Listing) -> None:
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            click.echo(text, err=True)
        told.add(text)

    async with Client(endpoint) as client:
        found = await listing.read(client, endpoint, tell)
        where = listing.where(endpoint)
        require_names(found.rows, options.names, listing.noun, where)
        rows = selected(found.rows, options)
        form = listing.form(rows, time.time())
        rows = in_order(rows, form, options.sort_by)
        table = _print(rows, form, options.output, found.others, f"no {listing.noun}s found{where}")
        before = {row.identity: row for row in rows}
        while options.watch:
            await asyncio.sleep(WATCH_SECONDS)
            rows = selected((await listing.read(client, endpoint, tell)).rows, options)
            now = {row.identity: row for row in rows}
            changed = [row for key, row in now.items() if key not in before or before[key].to_dict() != row.to_dict()]
            changed += [listing.gone(row) for key, row in before.items() if key not in now]
            if table is None and changed and options.output in ("table", "wide"):
                table = _print(changed, listing.form(changed, time.time()), options.output, {}, "")
            elif changed:
                _print_changed(changed, table, options.output, listing.form(changed, time.time()))
            before = now


def _print(rows: Sequence[Any], form: TableForm[Any], output: str, others: Mapping[str, int], nothing: str) -> Layout[Any] | None:
    """Returns the layout in which rows that change later are printed. `nothing`: what to say where there are no rows."""
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
        click.echo(nothing, err=True)
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
