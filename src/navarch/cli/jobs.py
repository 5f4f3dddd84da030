"""`navarch jobs`: gangs and bare workloads as the scheduler sees them, and why some of them wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from navarch.cli.cluster.options import ClusterOptions, cluster_options
from navarch.cli.cluster.reading import OverviewReading
from navarch.cli.cluster.show import GONE, Listing, Shown, Tell, show
from navarch.cli.cluster.start_estimate import StartEstimate
from navarch.cli.history_file import history_option
from navarch.cli.tables.columns import TableForm
from navarch.cli.tables.overview import jobs_form
from navarch.job_history import HistoryError, read_history
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.views.jobs import JobRow
from navarch.views.overview import Overview

_NAMES = "Scheduler names of Navarch; may repeat. Other pods are only counted.  [navarch; in an embedded cluster all it serves]"


EXAMPLES = """\b
Examples:
  navarch jobs                                  # in the namespace of the context
  navarch jobs -A --pending --sort-by priority  # what waits, in all namespaces
  navarch jobs bert deployment/web -o wide      # two of them, with every column and the whole reason
  navarch jobs --eta --history runs.db          # when they start, by past run times
  navarch jobs -l team=nlp -w                   # rows again when they change
  kubectl delete $(navarch jobs -l team=nlp -o name)
"""


@click.command(epilog=EXAMPLES)
@click.option("-n", "--namespace", help="Namespace to show.  [that of the context]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the jobs of all namespaces.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--pending", is_flag=True, help="Only jobs that have pods without a node.")
@click.option("--scheduler-name", multiple=True, metavar="NAME", help=_NAMES)
@click.option("--eta", is_flag=True, help="Show START: the time until a job starts, with a chance of 50 and of 90 percent.")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=5.0, show_default=True, help="Estimate for about so long.")
@history_option
@cluster_options
def jobs(
    options: ClusterOptions,
    namespace: str | None,
    all_namespaces: bool,
    queue: str | None,
    pending: bool,
    scheduler_name: tuple[str, ...],
    eta: bool,
    seconds: float,
    history: Path | None,
) -> None:
    """List jobs as the scheduler sees them.

    A job is a PodGroup of any API, or the pods of one controller that have no group. It has the name and kind of the workload that
    makes it, if there is one. WHY is what keeps it waiting, cut to the terminal's width. A narrow terminal shows fewer columns.
    -o wide shows all of them, and the conditions of the group.
    """

    def wanted(name: str, endpoint: Endpoint) -> bool:
        return all_namespaces or name == (namespace or endpoint.namespace)

    def rows(found: Overview, endpoint: Endpoint) -> Sequence[JobRow]:
        chosen = [row for row in found.jobs if wanted(row.namespace, endpoint)]
        chosen.sort(key=lambda row: (row.namespace, row.name, row.key))
        return [row for row in chosen if (queue is None or row.queue == queue) and (row.pending or not pending)]

    def others(found: Overview, endpoint: Endpoint) -> dict[str, int]:
        counts = Counter[str]()
        for (where, scheduler), count in found.others.items():
            counts[scheduler] += count if wanted(where, endpoint) else 0
        return {name: count for name, count in counts.items() if count}

    def form(_: Sequence[JobRow], now: float) -> TableForm[JobRow]:
        return jobs_form(now, namespaces=all_namespaces, starts=eta)

    def one(endpoint: Endpoint) -> str | None:
        return None if all_namespaces else namespace or endpoint.namespace

    def gone(row: JobRow) -> JobRow:
        return replace(row, phase=GONE, why="", messages="")

    try:
        past = read_history(history) if history is not None else []
    except HistoryError as error:
        raise click.UsageError(str(error)) from None
    estimate = StartEstimate(past, seconds) if eta else None
    reading = OverviewReading(options, ("Pod",), scheduler_name, one, estimate=estimate)

    async def read(client: Client, endpoint: Endpoint, tell: Tell) -> Shown:
        found = await reading(client, endpoint, tell)
        return Shown(rows(found, endpoint), others(found, endpoint))

    def where(endpoint: Endpoint) -> str:
        return "" if all_namespaces else f" in namespace {namespace or endpoint.namespace}"

    show(options, Listing(read, form, gone, "job", where))
