"""`navarch jobs`: gangs and bare workloads as the scheduler sees them, and why some of them wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click
from rich.table import Table

from navarch.cli.cluster.options import ClusterOptions, cluster_options
from navarch.cli.cluster.show import Listing, show
from navarch.cli.tables.overview import jobs_table
from navarch.kube.connect import Endpoint
from navarch.views.jobs import JobRow
from navarch.views.overview import Overview

_NAMES = "Scheduler names of Navarch; may repeat. Other pods are only counted.  [navarch; in an embedded cluster all it serves]"


@click.command()
@click.option("-n", "--namespace", help="Namespace to show.  [that of the context]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the jobs of all namespaces.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--scheduler-name", multiple=True, metavar="NAME", help=_NAMES)
@cluster_options
def jobs(
    options: ClusterOptions,
    namespace: str | None,
    all_namespaces: bool,
    queue: str | None,
    scheduler_name: tuple[str, ...],
) -> None:
    """List jobs as the scheduler sees them.

    A job is a PodGroup of any API, or the pods of one controller that have no group. WHY is what keeps it waiting, cut to the
    terminal's width; -o wide shows the conditions of its group as well.
    """

    def wanted(name: str, endpoint: Endpoint) -> bool:
        return all_namespaces or name == (namespace or endpoint.namespace)

    def rows(found: Overview, endpoint: Endpoint) -> Sequence[JobRow]:
        return [row for row in found.jobs if wanted(row.namespace, endpoint) and (queue is None or row.queue == queue)]

    def others(found: Overview, endpoint: Endpoint) -> dict[str, int]:
        counts = Counter[str]()
        for (where, scheduler), count in found.others.items():
            counts[scheduler] += count if wanted(where, endpoint) else 0
        return {name: count for name, count in counts.items() if count}

    def table(chosen: Sequence[JobRow], now: float) -> Table:
        return jobs_table(chosen, now, namespaces=all_namespaces)

    def one(endpoint: Endpoint) -> str | None:
        return None if all_namespaces else namespace or endpoint.namespace

    show(options, Listing(rows, table, ("Pod",), scheduler_name, others, one))
