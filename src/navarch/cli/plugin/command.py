"""`navarch plugin`: start a plugin of your own, and check it before it runs in a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import click

from navarch.cli.plugin.skeleton import NAME, SkeletonExists, write_skeleton
from navarch.cli.plugin.time_limit import NoAnswer, cpu_limit
from navarch.engine.plugin import Plugin
from navarch.engine.registry import RegistrationError
from navarch.installed import classes_in, plugin_files
from navarch.testing.plugin_check import check_plugin

EXAMPLES = """\b
Examples:
  navarch plugin new oldest-first
  navarch plugin check .
  navarch plan -f examples/two-queues.yaml --policy oldest-first.yaml --plugin-dir . --watch
"""
MISTAKES = 1
SECONDS = 20.0
"""CPU time that the check of one plugin may take; most take a tenth of a second."""


@click.group(epilog=EXAMPLES)
def plugin() -> None:
    """Start a plugin of your own, and check it."""


@plugin.command()
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to write the files.  [this directory]",
)
def new(name: str, directory: Path) -> None:
    """Write a working plugin NAME with its test and a policy file that uses it."""
    if not NAME.fullmatch(name):
        expected = "lower-case letters, digits and dashes, such as oldest-first"
        raise click.BadParameter(f"found {name!r}, expected {expected}", param_hint="NAME")
    try:
        files = write_skeleton(name, directory)
    except SkeletonExists as error:
        raise click.ClickException(f"{error} exists already; nothing was written") from None
    for file in files:
        click.echo(f"wrote {file}")
    click.echo(f"try it: navarch plugin check {directory}")
    click.echo(f"        navarch plan -f MANIFESTS --policy {files[-1]} --plugin-dir {directory} --watch")


@plugin.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
def check(directory: Path, output: str) -> None:
    """Check every plugin in DIRECTORY: its methods, its answers on a small random cluster, and that equal sessions decide equally.

    Exits with 1 if there are mistakes.
    """
    found = {str(path): _problems(path) for path in plugin_files([directory])}
    if not found:
        raise click.ClickException(f"{directory} has no Python file with a plugin")
    if output == "json":
        click.echo(json.dumps(found, indent=2, sort_keys=True))
    else:
        for path, plugins in found.items():
            for name, problems in plugins.items():
                click.echo(f"{path}: {name}: {'ok' if not problems else ''}".rstrip())
                for problem in problems:
                    click.echo(f"  {problem}")
    if any(problems for plugins in found.values() for problems in plugins.values()):
        raise SystemExit(MISTAKES)


def _problems(path: Path) -> dict[str, list[str]]:
    """Plugin -> its problems. A file that cannot be imported has one problem, under its own name."""
    try:
        with cpu_limit(SECONDS, path):
            classes = classes_in(path)
    except (RegistrationError, NoAnswer) as error:
        return {path.name: [str(error)]}
    plugins = [kind for kind in classes if issubclass(kind, Plugin)]
    if not plugins:
        return {path.name: [] if classes else ["defines no subclass of navarch.engine.plugin.Plugin with a name"]}
    return {kind.name: _checked(kind, path) for kind in plugins}


def _checked(kind: type[Plugin], path: Path) -> list[str]:
    try:
        with cpu_limit(SECONDS, path):
            return check_plugin(kind)
    except NoAnswer as error:
        return [str(error)]
