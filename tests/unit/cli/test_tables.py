"""Tables as they reach a terminal or a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from navarch.cli.tables.text import MOST_ROWS, output_console, print_table


def printed(*rows: tuple[str, str], notes: list[list[str]] | None = None, width: int = 80) -> list[str]:
    out = io.StringIO()
    print_table(Console(file=out, width=width), "Pods", ("POD", "NODE"), rows, notes or [])
    return out.getvalue().splitlines()


def test_columns_are_as_wide_as_their_cells_and_no_line_ends_in_blanks() -> None:
    assert printed(("a", "n1"), ("日本", "n2")) == ["Pods", "POD   NODE", "a     n1", "日本  n2", ""]


def test_a_name_is_never_broken() -> None:
    name = "team/" + "x" * 120
    assert any(line == f"{name}  n" for line in printed((name, "n"), width=40))


def test_sentences_stand_below_their_row_and_are_folded() -> None:
    lines = printed(("a", "n"), notes=[["word " * 30]], width=60)
    assert lines[3].startswith("    word") and lines[4].startswith("      word") and max(map(len, lines)) <= 60


def test_markup_in_a_name_is_text() -> None:
    assert printed(("[red]a[/red]", "n"))[2] == "[red]a[/red]  n"


def test_long_tables_are_counted_and_empty_ones_left_out() -> None:
    assert printed(*[("a", "n")] * (MOST_ROWS + 5))[-2] == "... and 5 more (-o json shows all)"
    assert printed() == []


def test_colours_that_are_forced_make_no_terminal_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not output_console().is_terminal
