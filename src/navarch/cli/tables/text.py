"""Tables for terminals and pipes: names are never broken, sentences are below their rows and folded, lines have no trailing spaces.

A name that is broken over two lines cannot be copied or found with grep, and a sentence in a narrow column is hard to read. So columns
are as wide as their contents, and only sentences are folded to the width of the terminal.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

MOST_ROWS = 200
"""The most rows of a table; the rest is only counted."""
_INDENT = " " * 4
_NARROWEST = 40
"""The smallest width of a sentence, also on a narrower terminal."""


def output_console() -> Console:
    """Standard output. A pipe is no terminal even if colours are forced (CI systems set FORCE_COLOR): lines are not cut there."""
    return Console(highlight=False, force_terminal=None if sys.stdout.isatty() else False)


def print_table(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[Sequence[str]] = (),
) -> None:
    """Prints nothing if there are no rows. `notes` are sentences for each row."""
    if not rows:
        return
    shown = rows[:MOST_ROWS]
    widths = [max(cell_len(row[i]) for row in (columns, *shown)) for i in range(len(columns))]
    print_line(console, title, "bold")
    print_line(console, _line(columns, widths), "dim")
    for number, row in enumerate(shown):
        print_line(console, _line(row, widths))
        for note in notes[number] if notes else ():
            print_prose(console, note, _INDENT)
    if len(rows) > MOST_ROWS:
        print_line(console, f"... and {len(rows) - MOST_ROWS} more (-o json shows all)")
    print_line(console)


def print_line(console: Console, text: str = "", style: str = "") -> None:
    """A line that is not folded."""
    console.print(Text(text, style), soft_wrap=True)


def print_prose(console: Console, text: str, indent: str = "") -> None:
    """A sentence, folded between words; continuation lines are indented."""
    width = max(_NARROWEST, console.width)
    lines = textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
    )
    for line in lines:
        print_line(console, line)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths)).rstrip()
