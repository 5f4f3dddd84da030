"""`navarch policy`: which preset to take, what a policy file runs, what it may name, and which pods came (`typical-pods`)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.policy.choices import choices_lines, choices_table
from navarch.cli.policy.mistakes import MISTAKES, MOST_SHOWN, tell
from navarch.cli.policy.reference import in_full, listed, markdown
from navarch.cli.policy.report import report_lines
from navarch.cli.policy.shard_option import shard_option
from navarch.cli.policy.typical_pods import typical_pods_command
from navarch.engine.policy import PRESETS, Catalogue, PolicyError, load
from navarch.engine.policy.describe import describe
from navarch.engine.policy.reference import reference
from navarch.engine.registry import RegistrationError
from navarch.installed import installed
from navarch.offline.policies import policy_text

_WIDEST = 130
WARNINGS = 1
"""The exit code of --fail-on-warning."""


@click.group()
def policy() -> None:
    """Choose a preset, check policy files, and list plugins and actions."""


@policy.command(short_help="Say which preset to take, and what it costs.")
@click.option("-o", "--output", type=click.Choice(("text", "markdown")), default="text", show_default=True)
def presets(output: str) -> None:
    """Say what one gets with each preset, and what it costs.

    `navarch policy check PRESET` prints what it runs. `-o markdown` writes the table of docs/policy.md.
    """
    click.echo(choices_table() if output == "markdown" else "\n".join(choices_lines(_width())))


@policy.command(short_help="Print what a policy will really run, or all its mistakes.")
@click.argument("name", metavar="FILE|PRESET")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--fail-on-warning", is_flag=True, help="Exit with 1 if there are warnings: for pipelines.")
@shard_option("in the file")
@plugin_dirs_option
def check(name: str, output: str, fail_on_warning: bool, shard: str, plugin_dirs: tuple[Path, ...]) -> None:
    """Print what a policy file or a preset runs, or all of its mistakes.

    FILE may be `-` for standard input. KAI's SchedulingShard and Config objects are read as KAI's operator reads them.
    A name that is both a preset and a file means the preset; write ./NAME for the file. Exits with 2 if the policy
    cannot be used, and with 1 if --fail-on-warning is given and there are warnings.
    """
    catalogue = _catalogue(plugin_dirs)
    text: str | None = None
    try:
        text = None if name in PRESETS else policy_text(name)
        report = describe(load(PRESETS[name] if text is None else text, catalogue, name, shard=shard), catalogue)
    except PolicyError as error:
        if output == "json":
            mistakes = [{"line": m.line, "path": m.path, "message": m.message} for m in error.mistakes[:MOST_SHOWN]]
            click.echo(_json({"source": name, "mistakes": mistakes, "mistakeCount": len(error.mistakes)}))
        else:
            tell(error, name, plugin_dirs, text)
        raise SystemExit(MISTAKES) from None
    click.echo(_json(report) if output == "json" else "\n".join(report_lines(report, _width())))
    warnings = report["warnings"]
    if fail_on_warning and isinstance(warnings, list) and warnings:
        click.echo(f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}", err=True)
        raise SystemExit(WARNINGS)


@policy.command(short_help="List the plugins and actions that there are.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("-o", "--output", type=click.Choice(("text", "json", "markdown")), default="text", show_default=True)
@plugin_dirs_option
def plugins(names: tuple[str, ...], output: str, plugin_dirs: tuple[Path, ...]) -> None:
    """List the plugins and actions that a policy may name, or describe those given.

    If two systems have a plugin of one name, both are shown. `-o markdown` writes docs/plugins.md.
    """
    found: dict[str, list[dict[str, Any]]] = reference(_catalogue(plugin_dirs))
    if names:
        known = {entry["name"] for kind in ("actions", "plugins") for entry in found[kind]}
        for name in names:
            if name not in known:
                near = get_close_matches(name, sorted(known), n=1)
                raise click.UsageError(f"no plugin or action is called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        found = {kind: [entry for entry in found[kind] if entry["name"] in names] for kind in ("actions", "plugins")} | {"points": []}
    match output:
        case "json":
            click.echo(_json(found))
        case "markdown":
            click.echo(markdown(found), nl=False)
        case _ if names:
            entries = [(entry, kind) for kind in ("actions", "plugins") for entry in found[kind]]
            blocks = ["\n".join(in_full(entry, kind.removesuffix("s"), _width())) for entry, kind in entries]
            click.echo("\n\n".join(blocks))
        case _:
            click.echo("\n".join(listed(found, _width())).rstrip())


policy.add_command(typical_pods_command)


def _catalogue(plugin_dirs: tuple[Path, ...]) -> Catalogue:
    try:
        return installed(plugin_dirs).catalogue()
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2, sort_keys=True)


def _width() -> int:
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)
