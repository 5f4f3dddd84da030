"""`--watch`: run a command again whenever a file that it reads changes: manifests, policy, metrics, plugins.

The content is compared, not the time stamp. A mistake in a file is printed and ends the run, not the command: the next change may
mend it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from navarch.offline.manifests import STDIN

_PAUSE = 0.5


def watched(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option to a command that has `paths`, `policy`, `metrics` and `plugin_dirs`."""

    @click.option("--watch", is_flag=True, help="Decide again whenever a file, the policy or a plugin changes.")
    @wraps(command)
    def run(*, watch: bool, **given: Any) -> None:
        if not watch:
            return command(**given)
        if STDIN in given["paths"]:
            raise click.UsageError("--watch needs files: standard input cannot be read again")
        names = [*given["paths"], given["policy"], given["metrics"], *given["plugin_dirs"]]
        try:
            _repeat(lambda: command(**given), [Path(name) for name in names if name])
        except KeyboardInterrupt:
            return None

    return run


def _repeat(command: Callable[[], None], places: list[Path]) -> None:
    while True:
        before = _contents(places)
        try:
            command()
        except click.ClickException as error:
            error.show()
        except SystemExit:
            pass  # the command has said what is wrong
        click.echo("watching for changes; Ctrl-C ends", err=True)
        while not (changed := _difference(before, _contents(places))):
            time.sleep(_PAUSE)
        click.echo(f"\nchanged: {', '.join(changed)}", err=True)


def _contents(places: Iterable[Path]) -> dict[str, bytes]:
    """File -> digest of its content. A preset or a file that is just being swapped has none."""
    found: dict[str, bytes] = {}
    for place in places:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            try:
                found[str(path)] = hashlib.sha256(path.read_bytes()).digest()
            except OSError:
                continue
    return {name: digest for name, digest in found.items() if "__pycache__" not in name}


def _difference(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
