"""`navarch queues`: the tree of queues with what each is owed, has, and asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from navarch.cli.cluster.options import look, looking_options
from navarch.cli.tables.overview import queues_table
from navarch.views.overview import QueueRow


@click.command()
@looking_options
def queues(kubeconfig: Path | None, context: str | None, policy: str, plugin_dirs: tuple[Path, ...], output: str, watch: bool) -> None:
    """List queues with their shares.

    DESERVED is what the policy grants the queue right now, SHARE its largest allocated part of that: above 1 it borrows. Under a
    policy that divides the cluster over a tree of queues (kai), FAIR SHARE stands in its place, and USAGE is what the queue held
    over time, where the policy's usageDBConfig can be asked from here.
    """

    def table(chosen: Sequence[QueueRow], _: float) -> Table:
        return queues_table(chosen)

    look(kubeconfig, context, policy, plugin_dirs, output, watch, lambda found, _: found.queues, table, ("Node", "Pod"))
