"""The option --metrics-names of the commands that schedule."""

from __future__ import annotations

from typing import Final

import click

SYSTEMS: Final = ("volcano", "kai", "kube-scheduler")
"""As in `live/ops/metric_names/systems.py`, which is imported only when a scheduler starts. A test compares them."""

metrics_names_option = click.option(
    "--metrics-names",
    type=click.Choice(SYSTEMS),
    default=None,
    callback=lambda context, parameter, value: value or "",
    help="Serve metrics under the names of this system too, for its dashboards.",
)
