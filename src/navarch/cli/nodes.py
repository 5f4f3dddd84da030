"""`navarch nodes`: allocatable and used amounts of nodes, by the scheduler's own count."""

from __future__ import annotations

import click

from navarch.cli.cluster.options import ClusterOptions, cluster_options
from navarch.cli.cluster.show import Listing, show
from navarch.cli.tables.overview import nodes_table


@click.command()
@cluster_options
def nodes(options: ClusterOptions) -> None:
    """List nodes with their used and allocatable amounts, by the scheduler's own count.

    A GPU that pods share counts as used as a whole. -o json has the free amounts as well.
    """
    show(options, Listing(lambda found, _: found.nodes, nodes_table, ("Node",)))
