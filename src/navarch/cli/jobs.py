"""`navarch jobs`: gangs and bare workloads as the scheduler sees them, and why those that wait do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from navarch.cli.cluster.options import look, looking_options
from navarch.cli.tables.overview import jobs_table
from navarch.kube.connect import Endpoint
from navarch.views.overview import JobRow, Overview

_NAMES = "Whose pods are navarch's; may repeat. Others are only counted.  [navarch; in an embedded cluster all it serves]"


@click.command()
@click.option("-n", "--namespace", help="Namespace to show.  [that of the context]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the jobs of all namespaces.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--scheduler-name", multiple=True, metavar="NAME", help=_NAMES)
@looking_options
def jobs(
    namespace: str | None,
    all_namespaces: bool,
    queue: str | None,
    scheduler_name: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    policy: str,
    plugin_dirs: tuple[Path, ...],
    output: str,
    watch: bool,
) -> None:
    """List jobs as the scheduler sees them.

    A job is a PodGroup of any dialect, or the pods of one controller that have no group. WHY is what keeps it waiting, cut to the
    terminal's width; -o wide has all that was said to it.
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

    look(kubeconfig, context, policy, plugin_dirs, output, watch, rows, table, ("Pod",), scheduler_name, others, one)
