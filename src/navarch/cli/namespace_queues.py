"""The option --namespace-as-queue, the same for every command that reads objects."""

from __future__ import annotations

import click

namespace_as_queue_option = click.option(
    "--namespace-as-queue", is_flag=True, help="A job that names no queue belongs to the queue of its namespace."
)
