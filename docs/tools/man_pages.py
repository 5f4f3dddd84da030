"""Man pages of every command, made from its help: `python docs/tools/man_pages.py build/man` (`make man`)."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from navarch.cli.main import main
from navarch.version import version


def contexts(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    """The command and all below it."""
    context = click.Context(command, info_name=name, parent=parent, max_content_width=10_000, terminal_width=10_000)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None and not found.hidden:
                yield from contexts(found, below, context)


def page(context: click.Context) -> str:
    """One page in roff."""
    command, name = context.command, context.command_path.replace(" ", "-")
    help_text = inspect.cleandoc(command.help or "").replace("\b", "")
    first, _, rest = help_text.partition("\n\n")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f'.TH "{name.upper()}" "1" "" "navarch {version()}" "Navarch"', ".SH NAME", _escaped(f"{name} - {first}")]
    lines += [".SH SYNOPSIS", f".B {_escaped(context.command_path)}", _escaped(usage)]
    if rest:
        lines += [".SH DESCRIPTION", *_paragraphs(rest)]
    records = [record for each in command.get_params(context) if (record := each.get_help_record(context)) is not None and record[1]]
    if records:
        lines.append(".SH OPTIONS")
        for option, meaning in records:
            lines += [".TP", f".B {_escaped(option)}", _escaped(meaning)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                lines += [".TP", f".BR {_escaped(name)}-{_escaped(below)} (1)", _escaped(found.get_short_help_str(200))]
    if command.epilog:
        examples = inspect.cleandoc(command.epilog.replace("\b", "")).removeprefix("Examples:").strip("\n")
        lines += [".SH EXAMPLES", ".nf", *map(_escaped, inspect.cleandoc(examples).splitlines()), ".fi"]
    if context.parent is not None:
        lines += [".SH SEE ALSO", f".BR {_escaped(context.parent.command_path.replace(' ', '-'))} (1)"]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text)):
        if number:
            yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    """Text that roff prints as it is: hyphens can be copied, and no line begins a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def write(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    found = list(contexts(main, "navarch"))
    for context in found:
        (folder / f"{context.command_path.replace(' ', '-')}.1").write_text(page(context), encoding="utf-8")
    return len(found)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/man")
    print(f"{write(target)} pages in {target}")
