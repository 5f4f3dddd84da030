"""`navarch jobs`, `queues` and `nodes` on terminals of any width and in a pipe."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from navarch.cli.tables.columns import Column, TableForm, cut, layout, plain, print_rows, rich_text, table_lines
from navarch.cli.tables.overview import jobs_form, nodes_form
from navarch.views.jobs import JobRow
from navarch.views.nodes import NodeRow
from navarch.views.prospects import Prospect

WHY = "0/4 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, 1 Insufficient nvidia.com/gpu."
NAME = "a-name-that-must-be-found-with-grep"


def row(name: str, why: str = "", namespace: str = "default") -> JobRow:
    said = f"{why}; and more" if why else ""
    place = Prospect(1, 12) if why else None
    return JobRow(namespace, name, "PodGroup", "research", "Inqueue", 6, 6, 0, 0, 0, 0, 1000, 100.0, why, said, place)


def shown(width: int, *, terminal: bool = True, wide: bool = False, name: str = NAME) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None, highlight=False)
    print_rows(console, jobs_form(150.0, namespaces=False), [row(name, WHY), row("runs")], wide=wide)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 80, 120])
def test_where_there_is_no_room_beside_the_job_the_reason_is_below_it(width: int) -> None:
    head, first, why, second = shown(width)
    assert head.startswith("JOB") and first.startswith(NAME) and second.startswith("runs")
    assert why == f"    {cut(WHY, max(40, width - 4))}" and why.rstrip("…").split()[-1] in WHY.split(), "no word is broken"


def test_eighty_columns_show_what_matters_most_and_no_line_is_longer() -> None:
    lines = shown(80, name="bert-large")
    assert lines[0].split() == ["JOB", "PHASE", "RUNNING", "PENDING", "MIN", "QUEUE", "PLACE", "AGE", "PRIORITY"]
    assert max(map(len, lines)) <= 80
    assert shown(120, name="bert-large", terminal=False)[0].split()[-4:] == ["KIND", "DONE", "FAILED", "WHY"]


def test_columns_in_which_no_row_says_anything_are_left_out_on_a_terminal() -> None:
    runs = replace(row("runs"), running=6, pending=0, gpus=12.0, nodes=3, started=90.0, limit=3600.0, user="ann", failed=1)
    text = [plain(line) for line in table_lines(jobs_form(150.0, namespaces=False), [row("bert"), runs], 200)]
    assert "DONE" not in text[0].split() and "FAILED" in text[0].split()
    cells = dict(zip(text[0].split(), text[2].split()))
    assert {name: cells[name] for name in ("GPUS", "TIME", "NODES", "USER")} == {
        "GPUS": "12",
        "TIME": "60s/1h0m",
        "NODES": "3",
        "USER": "ann",
    }


def test_a_column_that_has_no_room_makes_place_for_a_narrower_one_after_it() -> None:
    def of(heading: str, size: int) -> Column[str]:
        return Column(heading, lambda text: text * size)

    form = TableForm([of("A", 4), of("B", 4), of("C", 40), of("D", 3)])
    assert [plain(line).split()[0] for line in table_lines(form, ["x"], 20)] == ["A", "xxxx"]
    assert plain(table_lines(form, ["x"], 20)[0]).split() == ["A", "B", "D"]
    assert plain(table_lines(form, ["x"], 3)[0]).split() == ["A", "B"], "two columns are always there"


def test_where_there_is_room_the_reason_is_cut_between_words_at_the_end_of_the_line() -> None:
    head, first, _ = shown(180)
    assert head.split()[-1] == "WHY" and len(first) <= 180
    assert first.startswith(NAME) and first.endswith("…") and "0/4 nodes are available: 3 node(s)" in first


@pytest.mark.parametrize("terminal", [True, False])
def test_wide_has_all_that_was_said_on_one_line(terminal: bool) -> None:
    head, first, second = shown(80, terminal=terminal, wide=True)
    assert first.endswith(f"{WHY}; and more") and second == second.rstrip()
    assert "GROUP" in head.split()


def test_in_a_pipe_nothing_is_cut_and_no_line_ends_in_blanks() -> None:
    lines = shown(80, terminal=False)
    assert len(lines) == 3 and lines[1].endswith(WHY)
    assert all(line == line.rstrip() for line in lines)


def test_names_of_double_width_keep_the_columns_aligned() -> None:
    head, first, second = (plain(line) for line in table_lines(jobs_form(150.0, namespaces=False), [row("日本"), row("abcd")], None))
    assert first.index("Inqueue") + len("日本") == second.index("Inqueue") == head.index("PHASE")


def test_rows_that_come_later_keep_the_layout() -> None:
    made, _ = layout(jobs_form(150.0, namespaces=False), [row("bert-large"), row("b", WHY)], 80)
    (line,) = made.lines(row("runs"))
    assert plain(line).index("Inqueue") == plain(made.header()).index("PHASE")


def test_colours_are_codes_on_a_terminal_and_styles_in_the_live_view() -> None:
    out = io.StringIO()
    node = NodeRow("n", "NotReady", "", {"cpu": 4000}, {"cpu": 4000}, 0.0)
    print_rows(Console(file=out, width=80, force_terminal=True, color_system="standard", no_color=False), nodes_form(9.0), [node])
    assert "\x1b[31mNotReady\x1b[0m" in out.getvalue()
    (line,) = table_lines(nodes_form(9.0), [node], 80)[1:]
    assert any(span.style == "red" for span in rich_text(line).spans)


@pytest.mark.parametrize("width", [20, 80, 120, 200])
def test_the_live_view_shows_every_name_whatever_the_reason(width: int) -> None:
    text = [plain(line) for line in table_lines(jobs_form(150.0, namespaces=True), [row(NAME, WHY), row("runs")], width)]
    assert [line.split()[1] for line in text if line.startswith("default")] == [NAME, "runs"]
    assert sum(1 for line in text if "0/4 nodes are available" in line) == 1
