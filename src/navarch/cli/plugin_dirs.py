"""The option --plugin-dir of every command that runs a policy, and the message for a plugin that fails."""

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
    """File, line and error of a plugin from these directories that failed; None: the error is not from one of them."""
    folders = [folder.resolve() for folder in plugin_dirs]
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if any(Path(f.filename).resolve().is_relative_to(d) for d in folders)
    ]
    if not frames:
        return None
    last = frames[-1]
    return f"{last.filename}:{last.lineno}, in {last.name}: {type(error).__name__}: {error}\n    {last.line}"
