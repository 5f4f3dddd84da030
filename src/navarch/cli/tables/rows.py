"""Print rows of jobs, queues and nodes on a terminal or into a pipe. Names are never broken; only reasons are cut to the width.

The reason of a job is a sentence. If the terminal is wide enough, it is in the last column, cut at the end of the line; otherwise it
is on its own line below the job. In a pipe and with `wide` it is on the line of the job in full, so that grep finds both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from navarch.views.jobs import JobRow

Row = Any
MakeTable = Callable[[Sequence[Row]], Table]
_ROOM = 40
"""The fewest columns for a reason in the line of its job."""
_INDENT = " " * 4


def print_rows(console: Console, rows: Sequence[Row], table_of: MakeTable, *, wide: bool) -> None:
    for line in row_lines(console, rows, table_of, wide=wide):
        console.print(line, soft_wrap=True)


def row_lines(console: Console, rows: Sequence[Row], table_of: MakeTable, *, wide: bool = False) -> list[Text]:
    """The header and the rows. Without `wide`, a table is wider than the terminal only if its names are."""
    if wide:
        rows = [replace(row, why=row.messages or row.why) if isinstance(row, JobRow) else row for row in rows]
    reasons = [row.why if isinstance(row, JobRow) else "" for row in rows]
    if wide or not console.is_terminal or not any(reasons):
        return _lines(console, table_of(rows))
    bare = table_of([replace(row, why="") for row in rows])
    left = console.width - _width(console, bare)
    if left >= _ROOM:
        left += len("WHY")
        return _lines(console, table_of([replace(row, why=_cut(row.why, left)) for row in rows]))
    bare.columns[-1].header = ""  # the reasons are below their jobs
    head, *lines = _lines(console, bare)
    found = [head]
    for line, reason in zip(lines, reasons):
        found.append(line)
        if reason:
            found.append(Text(_INDENT + _cut(reason, max(_ROOM, console.width - len(_INDENT)))))
    return found


def _width(console: Console, table: Table) -> int:
    """The width of the table if nothing is folded."""
    return Measurement.get(console, console.options.update(width=1 << 20), table).maximum


def _lines(console: Console, table: Table) -> list[Text]:
    """The lines of the table, not folded, without trailing spaces."""
    options = console.options.update(width=_width(console, table))
    return [_text(line) for line in console.render_lines(table, options, pad=False)]


def _text(segments: Sequence[Segment]) -> Text:
    text = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
    text.rstrip()
    return text


def _cut(text: str, width: int) -> str:
    """
    >>> _cut("no room", 7), _cut("no room at all", 8)
    ('no room', 'no room…')
    """
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"
