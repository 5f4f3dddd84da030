"""How a policy that cannot be used is refused on the terminal: every mistake, and the way out if there is one."""

from __future__ import annotations

from pathlib import Path

import click

from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.policy.remedy import remedy
from navarch.installed import installed
from navarch.plan import policy_text

MISTAKES = 2
"""The exit code for input that cannot be used."""


def tell(error: PolicyError, name: str, plugin_dirs: tuple[Path, ...], text: str | None = None) -> None:
    """To standard error. `text` is the policy's, where reading it again is not possible."""
    for mistake in error.mistakes:
        click.echo(f"{name}: {mistake}", err=True)
    count = len(error.mistakes)
    click.echo(f"{count} mistake{'s' if count > 1 else ''}; this policy cannot be used", err=True)
    if text is None and name not in PRESETS and Path(name).is_file():
        text = policy_text(name)
    if text is not None and (way_out := remedy(text, installed(plugin_dirs).catalogue())):
        click.echo(way_out, err=True)
