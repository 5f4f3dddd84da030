"""The error message for a policy that is not valid: every mistake, and advice if there is any."""

from __future__ import annotations

import re
from pathlib import Path

import click

from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.policy.compat_advice import remedy
from navarch.installed import installed
from navarch.offline.policies import policy_text

UNHEARD_OF = re.compile(r"unknown (plugin|action) '[^']*'")
"""The message part for a name that resembles no known name, and so is not a typing mistake."""
MOST_SHOWN = 100
MISTAKES = 2
"""The exit code for input that cannot be used."""


def tell(error: PolicyError, name: str, plugin_dirs: tuple[Path, ...] | None, text: str | None = None) -> None:
    """Print to standard error. `plugin_dirs` is None if the command has no such option. `text` is the policy if it cannot be read
    again."""
    for mistake in error.mistakes[:MOST_SHOWN]:
        click.echo(f"{name}: {mistake}", err=True)
    count = len(error.mistakes)
    if count > MOST_SHOWN:
        click.echo(f"... and {count - MOST_SHOWN} more", err=True)
    click.echo(f"{count} mistake{'s' if count > 1 else ''}; this policy cannot be used", err=True)
    if plugin_dirs == () and any(mistake.not_here and UNHEARD_OF.fullmatch(mistake.message) for mistake in error.mistakes):
        click.echo("one of your own is found with --plugin-dir DIR", err=True)
    if text is None and name not in PRESETS and Path(name).is_file():
        try:
            text = policy_text(name)
        except PolicyError:
            return  # that it cannot be read is the mistake told above
    if text is not None and (way_out := remedy(text, installed(plugin_dirs or ()).catalogue())):
        click.echo(way_out, err=True)
