"""Warnings of cycles in the log: each once for as long as it lasts, whichever cycle gave it."""

from __future__ import annotations

import pytest

from navarch.live.ops.cycle_reports import LINES_A_MINUTE, REMEMBERED_FOR, CycleWarnings


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_warning_of_one_cycle_is_logged_although_the_next_cycle_does_not_give_it(caplog: pytest.LogCaptureFixture) -> None:
    warnings = CycleWarnings()
    for number, given in enumerate((["a"], [], ["a", "b"], [], ["a"])):
        warnings.take(given, float(number))
    assert logged(caplog) == ["a", "b"]


def test_a_warning_that_comes_back_after_a_long_time_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    warnings = CycleWarnings()
    for now in (0.0, REMEMBERED_FOR - 1, 2 * REMEMBERED_FOR - 2, 4 * REMEMBERED_FOR):
        warnings.take(["a"], now)
    assert logged(caplog) == ["a", "a"]


def test_a_flood_of_warnings_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    warnings = CycleWarnings()
    for number in range(100):
        warnings.take([f"group {number}"], 0.1 * number)
    assert len(logged(caplog)) == LINES_A_MINUTE + 1
    assert logged(caplog)[-1].startswith("more than 20 new warnings in a minute")
    warnings.take(["group 99"], 60.0)
    assert logged(caplog)[-1] == "group 99"
