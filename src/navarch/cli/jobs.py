"""`navarch jobs`: gangs and bare workloads as the scheduler sees them, and why those that wait do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from navarch.cli.looking import look, looking_options
from navarch.cli.overview import JobRow, Overview
from navarch.cli.overview_tables import jobs_table
from navarch.kube.connect import Endpoint


@click.command()
@click.option("-n", "--namespace", help="Namespace to show.  [that of the context]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the jobs of all namespaces.")
@click.option("--queue", help="Only jobs of this queue.")
@looking_options
def jobs(
    namespace: str | None,
    all_namespaces: bool,
    queue: str | None,
    kubeconfig: Path | None,
    context: str | None,
    policy: str,
    output: str,
    watch: bool,
) -> None:
    """List jobs as the scheduler sees them.

    A job is a PodGroup of any dialect, or the pods of one controller that have no group.
    """

    def rows(found: Overview, endpoint: Endpoint) -> Sequence[JobRow]:
        wanted = None if all_namespaces else namespace or endpoint.namespace
        return [
            row for row in found.jobs if (wanted is None or row.namespace == wanted) and (queue is None or row.queue == queue)
        ]

    def table(chosen: Sequence[JobRow], now: float) -> Table:
        return jobs_table(chosen, now, namespaces=all_namespaces)

    look(kubeconfig, context, policy, output, watch, rows, table)
