"""The option --state: which scheduler's published state a command uses. Apart, because `navarch plan` without a cluster imports no
client."""

from __future__ import annotations

import click

_HELP = "The scheduler whose published state is used: its installation, or the address of its metrics port."
state_option = click.option("--state", default="", metavar="[NAMESPACE/]NAME|URL", help=f"{_HELP}  [navarch-system/navarch]")
