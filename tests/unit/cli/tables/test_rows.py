"""`navarch jobs` on terminals of any width and in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from navarch.cli.tables.overview import jobs_table
from navarch.cli.tables.rows import print_rows, row_lines
from navarch.views.jobs import JobRow

WHY = "0/4 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu."
NAME = "a-name-that-must-be-found-with-grep"


def row(name: str, why: str = "") -> JobRow:
    said = f"{why}; and more" if why else ""
    return JobRow("default", name, "PodGroup", "default", "Inqueue", 6, 6, 0, 0, 0, 0, 0, 100.0, why, said)


def shown(width: int, *, terminal: bool = True, wide: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None, highlight=False)
    print_rows(console, [row(NAME, WHY), row("runs")], lambda some: jobs_table(some, 150.0, namespaces=False), wide=wide)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 80, 100])
def test_where_there_is_no_room_beside_the_job_the_reason_stands_below_it(width: int) -> None:
    head, first, why, second = shown(width)
    assert head.split()[-1] == "AGE" and first.startswith(NAME) and second.startswith("runs")
    assert why == f"    {WHY[: max(40, width - 4) - 1].rstrip()}…"


def test_where_there_is_room_the_reason_is_cut_at_the_end_of_the_line() -> None:
    head, first, _ = shown(180)
    assert head.split()[-1] == "WHY" and len(first) <= 180
    assert first.startswith(NAME) and first.endswith("…") and "0/4 nodes are available: 3 node(s)" in first


@pytest.mark.parametrize("terminal", [True, False])
def test_wide_has_all_that_was_said_on_one_line(terminal: bool) -> None:
    _, first, second = shown(80, terminal=terminal, wide=True)
    assert first.endswith(f"{WHY}; and more") and second == second.rstrip()


def test_in_a_pipe_nothing_is_cut_and_no_line_ends_in_blanks() -> None:
    lines = shown(80, terminal=False)
    assert len(lines) == 3 and lines[1].endswith(WHY)
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("width", [20, 80, 120, 200])
def test_the_live_view_shows_every_name_whatever_someone_is_told(width: int) -> None:
    """A long reason must not push the columns before it aside, nor fold a name letter by letter."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    lines = row_lines(console, [row(NAME, WHY), row("runs")], lambda some: jobs_table(some, 150.0, namespaces=True))
    text = [line.plain for line in lines]
    assert [line.split()[1] for line in text if line.startswith("default")] == [NAME, "runs"]
    assert sum(1 for line in text if "0/4 nodes are available" in line) == 1
