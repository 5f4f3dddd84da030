"""`navarch nodes`: what nodes have and what is used of it, by the scheduler's own count."""

from __future__ import annotations

import click

from navarch.cli.cluster.options import ClusterOptions, cluster_options
from navarch.cli.cluster.show import Listing, show
from navarch.cli.tables.overview import nodes_table


@click.command()
@cluster_options
def nodes(options: ClusterOptions) -> None:
    """List nodes with what is used of what they have, by the scheduler's own count.

    A GPU that pods share counts as used, however much of it they hold. -o json has what is free as well.
    """
    show(options, Listing(lambda found, _: found.nodes, nodes_table, ("Node",)))
