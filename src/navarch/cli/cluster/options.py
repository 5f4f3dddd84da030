"""The options that `navarch jobs`, `queues` and `nodes` share: which cluster, which policy, which output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from navarch.cli.cluster.state_option import state_option
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.views.published_state import StateAddress

FORMS = ("table", "wide", "name", "json", "yaml")
_OUTPUT = "A table for the terminal's width, one with every column and word, names for kubectl, or all that is known."
_SORT = "A column, or a field of -o json with a leading dot (.pods.pending); a leading - reverses."
_POLICY = "Policy whose rules say what a queue deserves.  [that of the running scheduler]"


@dataclass(frozen=True)
class ClusterOptions:
    kubeconfig: Path | None
    context: str | None
    policy: str | None
    """None: that of the running scheduler."""
    plugin_dirs: tuple[Path, ...]
    namespace_as_queue: bool
    output: str
    watch: bool
    names: tuple[str, ...] = ()
    """NAME or KIND/NAME; empty: all."""
    selector: str = ""
    sort_by: str = ""
    state: StateAddress = field(default_factory=StateAddress)


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: it takes these options as one `ClusterOptions`, its first argument."""

    @functools.wraps(command)
    def with_options(
        kubeconfig: Path | None,
        context: str | None,
        policy: str | None,
        state: str,
        plugin_dirs: tuple[Path, ...],
        namespace_as_queue: bool,
        output: str,
        watch: bool,
        names: tuple[str, ...],
        selector: str,
        sort_by: str,
        **others: Any,
    ) -> None:
        address = StateAddress.parse(state)
        options = ClusterOptions(
            kubeconfig, context, policy, plugin_dirs, namespace_as_queue, output, watch, names, selector, sort_by, address
        )
        command(options, **others)

    decorated: Callable[..., None] = with_options
    for option in reversed(
        (
            click.argument("names", nargs=-1, metavar="[NAME]..."),
            click.option(
                "-l", "--selector", default="", metavar="LABELS", help="Only those with these labels, as kubectl reads them."
            ),
            click.option("--sort-by", default="", metavar="COLUMN|.FIELD", help=_SORT),
            click.option("--kubeconfig", type=click.Path(path_type=Path), help="Cluster to read; else as kubectl finds it."),
            click.option("--context", help="Context of the kubeconfig."),
            click.option("--policy", metavar="FILE|PRESET", help=_POLICY),
            state_option,
            plugin_dirs_option,
            namespace_as_queue_option,
            click.option("-o", "--output", type=click.Choice(FORMS), default="table", show_default=True, help=_OUTPUT),
            click.option("-w", "--watch", is_flag=True, help="Print rows again when they change, until stopped."),
        )
    ):
        decorated = option(decorated)
    return decorated
