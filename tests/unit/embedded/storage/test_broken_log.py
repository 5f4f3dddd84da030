"""A store.db that cannot be used is kept aside and said; a good one is left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from navarch.embedded.storage.sqlite_log import DataDirInUse, SqliteLog, set_aside_if_broken


async def test_a_good_log_and_none_at_all_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    assert set_aside_if_broken(path) == ""
    log = SqliteLog(path)
    assert set_aside_if_broken(path) == "", "in use by another server: opening it says so"
    with pytest.raises(DataDirInUse, match="another server uses this data directory"):
        SqliteLog(path)
    await log.close()
    assert set_aside_if_broken(path) == "" and [each.name for each in tmp_path.iterdir()] == ["store.db"]


def test_garbage_is_kept_aside_each_time_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for number in (1, 2):
        path.write_bytes(b"garbage" * 1000)
        said = set_aside_if_broken(path)
        kept = tmp_path / f"store.db.broken-{number}"
        assert said == f"{path} cannot be used (file is not a database): it is kept as {kept}, and the cluster starts empty"
        assert kept.read_bytes().startswith(b"garbage") and not path.exists()


def test_pages_that_were_overwritten_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY, resource TEXT, key TEXT, value BLOB)")
        connection.executemany("INSERT INTO log VALUES (?, 'pods', 'a', ?)", [(n, b"x" * 3000) for n in range(1, 50)])
    raw = bytearray(path.read_bytes())
    raw[8192:12288] = b"\xff" * 4096
    path.write_bytes(raw)
    assert "is kept as" in set_aside_if_broken(path)


def test_an_emptied_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    assert set_aside_if_broken(path) == f"{path} is empty: the cluster starts without what it held"
