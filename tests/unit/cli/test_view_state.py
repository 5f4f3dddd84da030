"""The live view of `navarch up` under the hands of a user: keys move, filter, open and scroll."""

from __future__ import annotations

import pytest

from navarch.cli.up.keys import keys_in
from navarch.cli.up.view_state import PANES, ViewState, window

ROWS = [f"job-{number}" for number in range(30)]


def after(*keys: str, rows: list[str] = ROWS, page: int = 10) -> ViewState:
    state = ViewState()
    for key in keys:
        state.press(key, rows, page)
    return state


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (["down"], "job-1"),
        (["j", "j", "k"], "job-1"),
        (["up"], "job-0"),
        (["pagedown"], "job-10"),
        (["end"], "job-29"),
        (["G", "down"], "job-29"),
        (["end", "pageup"], "job-19"),
        (["end", "home"], "job-0"),
    ],
)
def test_keys_move_the_selection_and_stop_at_the_ends(keys: list[str], selected: str) -> None:
    assert after(*keys).selected == selected


def test_the_selection_follows_its_row() -> None:
    state = after("down", "down")
    assert state.place(["new", *ROWS]) == 3, "a row came before it"
    assert state.place([row for row in ROWS if row != "job-2"]) == 3 and state.selected == "job-4", "it is gone"
    assert state.place([]) == 0 and state.selected == ""


def test_a_filter_is_typed_kept_and_cleared() -> None:
    state = after("/", "w", "e", "x", "backspace", "b", " ", "r", "u", "n")
    assert state.typing and state.filter == "web run"
    assert state.passes("default web Deployment Running") and not state.passes("default web Pending")
    state.press("enter", ROWS, 10)
    assert not state.typing and state.filter == "web run"
    state.press("escape", ROWS, 10)
    assert state.filter == ""
    assert after("/", "a", "escape").filter == ""


def test_a_job_is_opened_scrolled_and_closed() -> None:
    state = after("down", "enter", "down", "pagedown", "up")
    assert (state.opened, state.scroll) == ("job-1", 10)
    state.press("escape", ROWS, 10)
    assert (state.opened, state.scroll, state.selected) == ("", 0, "job-1")
    assert after("enter", rows=[]).opened == ""


def test_tab_goes_through_the_panes() -> None:
    state = ViewState()
    for pane in [*PANES[1:], PANES[0]]:
        state.press("tab", ROWS, 10)
        assert state.pane == pane
    assert after("tab", "enter").opened == "", "only jobs are opened"


@pytest.mark.parametrize("selected", [0, 1, 40, 98, 99])
@pytest.mark.parametrize("room", [1, 3, 20, 200])
def test_the_selected_row_is_on_the_screen_and_the_screen_is_full(selected: int, room: int) -> None:
    heights = [1 + number % 2 for number in range(100)]
    first, last = window(heights, selected, room)
    assert first <= selected < last
    used = sum(heights[first:last])
    assert used <= max(room, heights[selected]) and (used >= min(room, sum(heights)) - 2)


def test_sequences_of_terminals_are_keys() -> None:
    assert list(keys_in("\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[Z\t\r\x7fé")) == [
        "up", "down", "pageup", "pagedown", "tab", "tab", "enter", "backspace", "é",
    ]  # fmt: skip
    assert list(keys_in("\x1b")) == ["escape"]


def test_a_question_mark_shows_the_keys_until_the_next_one_and_q_stops() -> None:
    state = after("?")
    assert state.helps and not state.quits
    state.press("q", ROWS, 10)
    assert not state.helps and not state.quits, "any key hides the keys, and does nothing else"
    state.press("q", ROWS, 10)
    assert state.quits
    assert not after("enter", "q").quits, "an opened job is left first"
    assert after("/", "q", "?").filter == "q?"
