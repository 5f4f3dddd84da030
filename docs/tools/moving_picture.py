"""The moving picture of README: `python docs/tools/moving_picture.py docs/images/up.svg` (`make picture`).

It runs `navarch up` in a terminal, keeps the screen at each step of the sample, asks `navarch explain` why the last job waits, and
writes the screens as one SVG that plays in a browser without scripts. A line of text that several screens share is stored once, so the
file is small. Another run differs in ages, ports and clock times only.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import pyte

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, LINES = 100, 25
CELL, LINE, SIZE, EDGE = 8, 17, 13, 12
"""Pixels: width of a character, height of a line, size of the font, margin."""
SECONDS = 3.0
LAST_SECONDS = 9.0
COLOURS = {"red": "#f7768e", "green": "#9ece6a", "brown": "#e0af68", "blue": "#7aa2f7", "magenta": "#bb9af7", "cyan": "#7dcfff"}
BACKGROUND, FOREGROUND, GREY = "#16181d", "#d5d8de", "#8b90a0"
STEPS = (
    ("research trains on every GPU", r"pretrain +\w+ +32 "),
    ("production wants its GPUs back: what was borrowed is reclaimed, for a whole gang", r"evicted \(gangreclaim for production/"),
    ("its gangs start whole", r"nightly +\w+ +8 "),
    ("an urgent gang preempts", r"evicted \(gangpreempt for production/hotfix\)"),
    ("it runs, and what it preempted waits", r"hotfix +\w+ +8 "),
    ("a gang that can never run says why", r"cannot start: needs 33 GPUs, the cluster has 32"),
)
"""What a step of the sample is, and what the screen shows then."""
JOB = "research/moonshot"


class Run(NamedTuple):
    """Characters of one look, and the column where they begin."""

    column: int
    text: str
    colour: str
    bold: bool


Row = tuple[Run, ...]


def rows_of(screen: pyte.Screen) -> list[Row]:
    return [_row(screen.buffer[number], screen.columns) for number in range(screen.lines)]


def _row(line: dict[int, pyte.screens.Char], columns: int) -> Row:
    def look(column: int) -> tuple[str, bool]:
        char = line[column]
        return (COLOURS.get(char.fg, FOREGROUND), char.bold)

    found = []
    for (colour, bold), group in groupby(range(columns), look):
        places = list(group)
        text = "".join(line[column].data for column in places)
        if text.strip():
            begin = len(text) - len(text.lstrip())
            found.append(Run(places[0] + begin, text.strip(), colour, bold))
    return tuple(found)


def plain(text: str, colour: str = FOREGROUND, bold: bool = False) -> Row:
    return (Run(0, text, colour, bold),)


def svg(screens: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """The screens one after the other, for ever. Each has a caption."""
    height = max(len(rows) for _, rows in screens) + 2
    stored: dict[Row, str] = {}
    frames = []
    seconds = [SECONDS] * (len(screens) - 1) + [LAST_SECONDS]
    total, begin = sum(seconds), 0.0
    for number, ((caption, rows), length) in enumerate(zip(screens, seconds, strict=True)):
        uses = []
        for line, row in enumerate([plain(f"{number + 1}/{len(screens)}  {caption}", GREY), (), *rows]):
            if row:
                name = stored.setdefault(row, f"r{len(stored)}")
                uses.append(f'<use href="#{name}" y="{line * LINE}"/>')
        times = f"0;{begin / total:.4f};{(begin + length) / total:.4f}"
        shown = f'<animate attributeName="visibility" values="hidden;visible;hidden" keyTimes="{times}" calcMode="discrete"'
        if number == 0:
            shown = shown.replace("hidden;visible;hidden", "visible;hidden").replace(times, times[2:].replace("0.0000;", "0;", 1))
        # A viewer that plays nothing shows the last screen.
        base = "visible" if number == len(screens) - 1 else "hidden"
        frames.append(f'<g visibility="{base}">{shown} dur="{total:g}s" repeatCount="indefinite"/>{"".join(uses)}</g>')
        begin += length
    wide, high = COLUMNS * CELL + 2 * EDGE, height * LINE + 2 * EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img">',
        "<title>navarch up: gangs, reclaim, preemption, and a job that is told why it waits</title>",
        f"<style>text{{font:{SIZE}px ui-monospace,Menlo,Consolas,monospace;white-space:pre}}.b{{font-weight:bold}}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        "<defs>",
        *(f'<g id="{name}">{"".join(map(_text, row))}</g>' for row, name in stored.items()),
        "</defs>",
        f'<g transform="translate({EDGE} {EDGE + SIZE})">',
        *frames,
        "</g></svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(run: Run) -> str:
    """Its width is fixed, so columns meet in every font."""
    bold = ' class="b"' if run.bold else ""
    length = f' textLength="{len(run.text) * CELL}"'
    return f'<text x="{run.column * CELL}"{length} fill="{run.colour}"{bold} xml:space="preserve">{escape(run.text)}</text>'


def record() -> Iterator[tuple[str, list[Row]]]:
    from tests.worlds.terminal import terminal

    navarch = str(Path(sys.executable).with_name("navarch"))
    with tempfile.TemporaryDirectory() as folder:
        config = f"{folder}/kubeconfig"
        command = [navarch, "up", "--speed", "5", "--no-web", "--kubeconfig", config]
        with terminal(command, columns=COLUMNS, lines=LINES) as up:
            for caption, shown in STEPS:
                up.until(partial(re.search, shown))
                yield caption, without(folder, rows_of(up.screen))
            up.until(
                partial(re.search, r"(?s)(Completed.*){4}")
            )  # the other jobs of the sample: nothing but its size keeps it waiting
            asking = [navarch, "explain", JOB]
            with terminal(asking, {"KUBECONFIG": config}, columns=COLUMNS, lines=LINES - 1) as explain:
                explain.ended()
                typed = plain("$ " + " ".join(["navarch", *asking[1:]]), COLOURS["green"], bold=True)
                yield "why it waits, and what would start it, each answer tried", [typed, *rows_of(explain.screen)]
            up.type("\x03")
            up.ended()


def without(folder: str, rows: list[Row]) -> list[Row]:
    return [tuple(run._replace(text=run.text.replace(folder, "/home/you")) for run in row) for row in rows]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    Path(sys.argv[1]).write_text(svg(list(record())), encoding="utf-8")
