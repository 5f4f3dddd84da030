"""`--plugin-dir`, which every command that runs a policy takes, and what is said of a plugin from there that fails."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

import click

plugin_dirs_option = click.option(
    "--plugin-dir",
    "plugin_dirs",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with plugins of your own; may repeat.",
)


def failure_in(plugin_dirs: Sequence[Path], error: Exception) -> str | None:
    """Where a plugin of these directories failed and how, for its author; None: it was not one of them."""
    folders = [folder.resolve() for folder in plugin_dirs]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if any(Path(f.filename).is_relative_to(d) for d in folders)]
    if not frames:
        return None
    last = frames[-1]
    return f"{last.filename}:{last.lineno}, in {last.name}: {type(error).__name__}: {error}\n    {last.line}"
