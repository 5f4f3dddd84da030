"""`navarch nodes`: allocatable and used amounts of nodes, by the scheduler's own count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from navarch.cli.cluster.node_reading import read_nodes
from navarch.cli.cluster.options import ClusterOptions, cluster_options
from navarch.cli.cluster.show import GONE, Listing, Shown, Tell, show
from navarch.cli.tables.columns import TableForm
from navarch.cli.tables.overview import nodes_form
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.views.nodes import NodeRow

EXAMPLES = """\b
Examples:
  navarch nodes
  navarch nodes -l pool=train --sort-by -gpu   # the fullest first
  navarch nodes node-003 -o json
"""


@click.command(epilog=EXAMPLES)
@cluster_options
def nodes(options: ClusterOptions) -> None:
    """List nodes with their used and allocatable amounts, by the scheduler's own count.

    A GPU that pods share counts as used as a whole. -o json has the free amounts as well, -o wide other resources.
    """

    def form(_: Sequence[NodeRow], now: float) -> TableForm[NodeRow]:
        return nodes_form(now)

    def gone(row: NodeRow) -> NodeRow:
        return replace(row, status=GONE)

    async def read(client: Client, _: Endpoint, tell: Tell) -> Shown:
        return Shown(await read_nodes(client, options, tell))

    show(options, Listing(read, form, gone, "node"))
