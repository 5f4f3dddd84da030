"""The option that names the file of past run times, from which start times are estimated."""

from __future__ import annotations

from pathlib import Path

import click

history_option = click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Past run times, as `navarch run --history FILE` writes them: the basis of start times.",
)
