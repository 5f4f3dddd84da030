"""`navarch nodes`: what nodes have and what is used of it, by the scheduler's own count."""

from __future__ import annotations

from pathlib import Path

import click

from navarch.cli.cluster.options import look, looking_options
from navarch.cli.tables.overview import nodes_table


@click.command()
@looking_options
def nodes(kubeconfig: Path | None, context: str | None, policy: str, plugin_dirs: tuple[Path, ...], output: str, watch: bool) -> None:
    """List nodes with what is used of what they have, by the scheduler's own count.

    A GPU that pods share counts as used, however much of it they hold. -o json has what is free as well.
    """
    look(kubeconfig, context, policy, plugin_dirs, output, watch, lambda found, _: found.nodes, nodes_table, ("Node",))
