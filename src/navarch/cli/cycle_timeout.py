"""The option --cycle-timeout of commands that run cycles without a cluster's scheduler."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from navarch.cli.seconds import Seconds
from navarch.offline.cycle_limit import DEFAULT_SECONDS, CycleTooLong, cycle_limit


def limits_cycles(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option to a command that has `plugin_dirs`, and end the command where a plugin does not return in time."""

    @click.option(
        "--cycle-timeout",
        type=Seconds(min=0),
        default=DEFAULT_SECONDS,
        show_default=True,
        help="Seconds after which a cycle in which a plugin does not return ends the command; 0: never.",
    )
    @wraps(command)
    def run(*, cycle_timeout: float, **given: Any) -> None:
        try:
            with cycle_limit(cycle_timeout, given["plugin_dirs"]):
                command(**given)
        except CycleTooLong as error:
            raise click.ClickException(f"{error}; --cycle-timeout 0 waits for it") from None

    return run
