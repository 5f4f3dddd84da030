"""The file of past run times: what is written is read, and it stays small."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from navarch.job_history import HistoryError, JobHistory, JobRun, read_history

RUN = JobRun("1", 100.0, "ml", "nlp", "sweep", "train:1", ((2, (("nvidia.com/gpu", 8000),), (("zone", "a"),)),), 2, 5)


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = JobHistory(tmp_path / "history.db")
    file.write([RUN])
    file.write([replace(RUN, started=200.0)])
    file.write([replace(RUN, finished=500.0)])
    file.close()
    assert read_history(tmp_path / "history.db") == [replace(RUN, started=200.0, finished=500.0)]


def test_the_oldest_rows_are_forgotten(tmp_path: Path) -> None:
    file = JobHistory(tmp_path / "history.db", most_rows=3)
    file.write(replace(RUN, uid=str(number), submitted=float(number)) for number in range(10))
    file.close()
    assert [run.uid for run in read_history(tmp_path / "history.db")] == ["7", "8", "9"]


def test_a_file_that_is_no_history_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="found no such file"):
        read_history(tmp_path / "absent.db")
    other = tmp_path / "other.db"
    other.write_text("not a database, and long enough to be looked at as one" * 20)
    with pytest.raises(HistoryError, match=r"other\.db"):
        read_history(other)
    with pytest.raises(HistoryError, match=r"other\.db"):
        JobHistory(other)


def test_classes_go_from_the_most_alike_to_the_queue() -> None:
    assert RUN.classes == (
        ("owner", "ml", "sweep", "train:1", 16000),
        ("image", "ml", "train:1", 16000),
        ("size", "nlp", 16000),
        ("queue", "nlp"),
    )
