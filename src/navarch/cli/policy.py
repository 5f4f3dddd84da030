"""`navarch policy check`: what a policy file will really do, in order, or every mistake in it at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from navarch.engine.policy import PRESETS, Catalogue, PolicyError, load, preset
from navarch.engine.policy.describe import describe
from navarch.engine.registry import RegistrationError
from navarch.installed import installed

MISTAKES = 2


@click.group()
def policy() -> None:
    """Look at policy files and presets."""


@policy.command()
@click.argument("name", metavar="FILE|PRESET")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "--plugin-dir",
    "plugin_dirs",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with plugins of your own; may repeat.",
)
def check(name: str, output: str, plugin_dirs: tuple[Path, ...]) -> None:
    """Print what a policy file or a preset will really run, or all of its mistakes.

    FILE may be `-` for standard input. A name that is both a preset and a file means the preset; write ./NAME for the
    file. Exits with 2 if the policy cannot be used.
    """
    try:
        catalogue = installed(plugin_dirs).catalogue()
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None
    try:
        report = _report(name, catalogue)
    except PolicyError as error:
        mistakes = [{"line": m.line, "path": m.path, "message": m.message} for m in error.mistakes]
        if output == "json":
            click.echo(_json({"source": name, "mistakes": mistakes}))
        else:
            for mistake in error.mistakes:
                click.echo(f"{name}: {mistake}", err=True)
            count = len(error.mistakes)
            click.echo(f"{count} mistake{'s' if count > 1 else ''}; this policy cannot be used", err=True)
        raise SystemExit(MISTAKES) from None
    click.echo(_json(report) if output == "json" else "\n".join(_text(report)))


def _report(name: str, catalogue: Catalogue) -> dict[str, Any]:
    if name in PRESETS:
        return describe(preset(name, catalogue), catalogue)
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise click.UsageError(f"{name} is neither a file nor a preset ({', '.join(PRESETS)})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{name} cannot be read: {error}") from None
    return describe(load(text, catalogue, name), catalogue)


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=2, sort_keys=True)


def _text(report: Mapping[str, Any]) -> Iterator[str]:
    mode = "strict" if report["compat"] == "strict" else f"as {report['compat']} does it"
    whose = "" if report["dialect"] in ("navarch", report["compat"]) else f", with {report['dialect']}'s plugins"
    yield f"{report['source']}: read {mode}{whose}, because {report['chosen']}"
    yield ""
    yield "Actions, in order"
    for number, action in enumerate(report["actions"], 1):
        yield f"  {number}. {action['name']:<20}{action['doc']}".rstrip()
        yield from _arguments(action["arguments"])
    for number, tier in enumerate(report["tiers"], 1):
        yield ""
        yield "Plugins, in order" if len(report["tiers"]) == 1 else f"Plugins of tier {number}"
        for plugin in tier:
            yield from _plugin(plugin)
    yield ""
    yield "Who is asked"
    for point in report["points"]:
        yield from _point(point)
    yield f"  {'nobody answers':<20}{_words(report['unanswered']) or 'none'}"
    for title, key in (("Parameters", "parameters"), ("Jobs looked at per queue", "queueDepth")):
        if report[key]:
            yield ""
            yield title
            yield from (f"  {name} = {value}" for name, value in report[key].items())
    for title, key in (
        (f"What differs from strict mode under compat {report['compat']}", "departures"),
        ("Warnings", "warnings"),
    ):
        if report[key]:
            yield ""
            yield title
            yield from (f"  - {line}" for line in report[key])


def _plugin(plugin: Mapping[str, Any]) -> Iterator[str]:
    yield f"  {plugin['name']:<24}{plugin['doc']}".rstrip()
    if plugin["switchedOff"]:
        yield f"      not asked: {_words(plugin['switchedOff'])}"
    if plugin["switchedOn"]:
        yield f"      also on: {_words(plugin['switchedOn'])}"
    yield from _arguments(plugin["arguments"])


def _arguments(arguments: list[Mapping[str, Any]]) -> Iterator[str]:
    for argument in arguments:
        value = "unset" if argument["value"] is None else argument["value"]
        yield f"      {argument['name']} = {value}{'' if argument['given'] else '  (default)'}"


def _point(point: Mapping[str, Any]) -> Iterator[str]:
    """Tiers are set apart by a bar."""
    asked = " | ".join(", ".join(names) for names in point["plugins"]) or "nobody"
    silenced = f"  (switched off: {', '.join(point['switchedOff'])})" if point["switchedOff"] else ""
    yield f"  {_words([point['point']]):<20}{asked}{silenced}"
    yield f"  {'':<20}  {point['combined']}"


def _words(points: list[str]) -> str:
    return ", ".join(point.replace("_", " ") for point in points)
