"""`navarch queues`: the tree of queues, with what each queue is owed, has and requests."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.table import Table

from navarch.cli.cluster.options import ClusterOptions, cluster_options
from navarch.cli.cluster.show import Listing, show
from navarch.cli.tables.overview import queues_table
from navarch.views.queues import QueueRow


@click.command()
@cluster_options
def queues(options: ClusterOptions) -> None:
    """List queues with their shares.

    DESERVED is what the policy grants the queue now. SHARE is the largest allocated part of that: above 1 the queue borrows. A policy
    that divides the cluster over a tree of queues (kai) shows FAIR SHARE instead. USAGE is what the queue held over time, if the
    Prometheus server of the policy's usageDBConfig answers.
    """

    def table(chosen: Sequence[QueueRow], _: float) -> Table:
        return queues_table(chosen)

    show(options, Listing(lambda found, _: found.queues, table, ("Node", "Pod")))
