"""The options --node-pool-label-key and --partition-label-value, the same for every command that decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])


def node_pool_options(command: Command) -> Command:
    """Decorate a command with both options."""
    pool = click.option("--node-pool-label-key", default="", help="Label that divides nodes, groups and queues among schedulers.")
    value = click.option("--partition-label-value", default="", help="Its value for what is ours; empty: what has no such label.")
    return pool(value(command))


def check_node_pool(label_key: str, label_value: str) -> None:
    if label_value and not label_key:
        raise click.UsageError("--partition-label-value: expected --node-pool-label-key beside it, which label has that value")
