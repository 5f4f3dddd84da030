from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing as closing_connection
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.live.usage.history import HistorySource
from navarch.live.usage.params import UsageParams, UsageWindow
from navarch.live.usage.source import UsageError

HOUR = 3600.0
START = 1_000_000 * HOUR
CAPACITY = {"gpu": 8.0, "cpu": 100.0, "memory": 1e12}


OPEN: list[HistorySource] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while OPEN:
        asyncio.run(OPEN.pop().close())


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    """What the file holds."""
    with closing_connection(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


def history(window: UsageWindow | None = None, path: str = ":memory:", resolution: float = 60.0) -> HistorySource:
    source = HistorySource(path, UsageParams(window=window or UsageWindow(), resolution=resolution))
    OPEN.append(source)
    return source


def hold(source: HistorySource, begin: float, finish: float, held: dict[str, dict[str, float]], step: float = 60.0) -> None:
    for moment in np.arange(begin, finish + step / 2, step):
        source.record(float(moment), held, CAPACITY)


def test_usage_is_the_part_of_the_cluster_that_was_held_over_the_window() -> None:
    source = history()
    hold(source, START, START + HOUR, {"a": {"gpu": 8.0}, "b": {"cpu": 50.0}})
    hold(source, START + HOUR, START + 2 * HOUR, {"b": {"cpu": 50.0, "gpu": 2.0}})
    usage = source.usage(START + 2 * HOUR)
    assert usage["a"]["gpu"] == pytest.approx(0.5)
    assert usage["b"] == pytest.approx({"cpu": 0.5, "gpu": 0.125, "memory": 0.0})


def test_only_what_lies_in_the_window_counts() -> None:
    source = history(UsageWindow("sliding", size=HOUR))
    hold(source, START, START + HOUR, {"a": {"gpu": 8.0}})
    hold(source, START + HOUR, START + 1.5 * HOUR, {"b": {"gpu": 4.0}})
    usage = source.usage(START + 1.5 * HOUR)
    assert usage["a"]["gpu"] == pytest.approx(0.5)
    assert usage["b"]["gpu"] == pytest.approx(0.25)


def test_a_half_life_makes_the_past_count_less() -> None:
    source = history(UsageWindow("sliding", size=100 * HOUR, half_life=HOUR))
    hold(source, START, START + HOUR, {"a": {"gpu": 8.0}})
    hold(source, START + HOUR, START + 2 * HOUR, {"b": {"gpu": 8.0}})
    usage = source.usage(START + 2 * HOUR)
    assert usage["b"]["gpu"] == pytest.approx(2 * usage["a"]["gpu"])
    assert usage["a"]["gpu"] + usage["b"]["gpu"] == pytest.approx(1.0)


def test_time_without_records_counts_for_no_queue() -> None:
    source = history()
    hold(source, START, START + HOUR, {"a": {"gpu": 4.0}})
    hold(source, START + 10 * HOUR, START + 11 * HOUR, {"a": {"gpu": 8.0}})
    assert source.usage(START + 11 * HOUR)["a"]["gpu"] == pytest.approx(0.75)


def test_a_busy_queue_costs_a_row_a_resolution(tmp_path: Path) -> None:
    path = tmp_path / "usage.db"
    source = history(path=str(path), resolution=60.0)
    for second in range(3600):
        source.record(START + second, {"a": {"gpu": float(second % 8)}}, CAPACITY)
    assert source.usage(START + 3599)["a"]["gpu"] == pytest.approx(3.5 / 8, abs=1e-3)
    assert len(rows(path, "SELECT begin FROM run WHERE queue = 'a'")) <= 61


def test_history_survives_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "usage.db")
    first = history(path=path)
    hold(first, START, START + HOUR, {"a": {"gpu": 4.0}})
    OPEN.remove(first)
    asyncio.run(first.close())
    assert history(path=path).usage(START + HOUR)["a"]["gpu"] == pytest.approx(0.5)


def test_old_runs_are_merged_without_changing_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "usage.db"
    source = history(UsageWindow("sliding", size=168 * HOUR), str(path))
    for hour in range(72):
        for minute in range(0, 60, 3):
            amount = float((hour * 7 + minute) % 9)
            source.record(START + hour * HOUR + minute * 60, {"a": {"gpu": amount}}, CAPACITY)
    now = START + 72 * HOUR
    source.record(now - 60, {}, CAPACITY)
    expected = float(np.mean([(hour * 7 + minute) % 9 for hour in range(72) for minute in range(0, 60, 3)])) / 8
    assert source.usage(now)["a"]["gpu"] == pytest.approx(expected, rel=1e-3)
    assert len(rows(path, f"SELECT begin FROM run WHERE queue = 'a' AND finish <= {now - 25 * HOUR}")) <= 48


def test_runs_that_no_window_reaches_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "usage.db"
    source = history(UsageWindow("sliding", size=HOUR), str(path))
    hold(source, START, START + HOUR, {"a": {"gpu": 4.0}})
    later = START + 1000 * HOUR
    hold(source, later, later + HOUR, {"b": {"gpu": 4.0}})
    source.usage(later + HOUR)
    assert rows(path, "SELECT DISTINCT queue FROM run ORDER BY queue") == [("",), ("b",)]


def test_a_file_that_is_no_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    broken = tmp_path / "usage.db"
    broken.write_text("this is not a database, whatever its name may be; it is just some text\n" * 20)
    with pytest.raises(UsageError, match=r"usage\.db"):
        history(path=str(broken))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 100), st.integers(0, 8)), min_size=1, max_size=30),
    st.sampled_from([None, 300.0, 3600.0]),
)
def test_usage_is_the_integral_of_what_was_held(steps: list[tuple[int, int]], half_life: float | None) -> None:
    """Against a plain sum over seconds; changes within a resolution are averaged, which fading hardly sees."""
    source = history(UsageWindow("sliding", size=100 * HOUR, half_life=half_life), resolution=10.0)
    now, seconds = START, []
    for length, amount in steps:
        for _ in range(length):
            source.record(now, {"a": {"gpu": float(amount)}}, CAPACITY)
            seconds.append(amount)
            now += 1
    source.record(now, {}, CAPACITY)
    ages = np.arange(len(seconds), 0, -1) - 0.5
    fading = np.ones(len(seconds)) if half_life is None else 0.5 ** (ages / half_life)
    expected = float((fading * seconds).sum() / (fading * 8).sum())
    assert source.usage(now).get("a", {}).get("gpu", 0.0) == pytest.approx(expected, abs=0.01)
