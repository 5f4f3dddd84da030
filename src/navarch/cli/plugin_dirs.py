"""`--plugin-dir`, which every command that runs a policy takes."""

from __future__ import annotations

from pathlib import Path

import click

plugin_dirs_option = click.option(
    "--plugin-dir",
    "plugin_dirs",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with plugins of your own; may repeat.",
)
