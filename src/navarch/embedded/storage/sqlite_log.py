"""The durable log: every write of the store as one row of one SQLite table.

Writes of the same moment share one transaction (group commit): the event loop appends, a thread commits what has gathered, and
only then are the writers answered and the watchers told. So a kill -9, or a power cut, loses nothing that was acknowledged.

    log(revision INTEGER PRIMARY KEY, resource, key, value)     value: JSON, NULL for a deletion

Row 0 holds the revision up to which the log was compacted. Compaction drops versions that were replaced, and deletions, up to
a revision; what is alive stays.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

Row = tuple[int, str, str, bytes | None]
_PRIMARY_CODE = 0xFF
"""The part of an error code that does not tell its variants apart."""
_COMPACT = """
DELETE FROM log WHERE revision BETWEEN 1 AND :upto AND (
    value IS NULL OR revision NOT IN (SELECT MAX(revision) FROM log WHERE revision BETWEEN 1 AND :upto GROUP BY resource, key)
)
"""


class DataDirInUse(RuntimeError):
    """Another process holds the same data directory."""


def set_aside_if_broken(path: Path) -> str:
    """Move a file that is no log out of the way, with the files that SQLite keeps beside it. Returns a line about it; empty: the file
    is fine, or there is none."""
    if not path.exists():
        return ""
    if not path.stat().st_size:
        wal = path.with_name(f"{path.name}-wal")
        return "" if wal.exists() and wal.stat().st_size else f"{path} is empty: the cluster starts without what it held"
    problem = _problem(path)
    if not problem:
        return ""
    number = 1
    while (kept := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        found = path.with_name(path.name + suffix)
        if found.exists():
            found.rename(kept.with_name(kept.name + suffix))
    return f"{path} cannot be used ({problem}): it is kept as {kept}, and the cluster starts empty"


def _problem(path: Path) -> str:
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=1.0)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
            return "" if found == ("ok",) else str(found[0]).replace("\n", " ")
    except sqlite3.OperationalError as error:
        return "" if _is_locked(error) else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)


def _is_locked(error: sqlite3.OperationalError) -> bool:
    """Whether another connection has the file."""
    return error.sqlite_errorcode & _PRIMARY_CODE in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class SqliteLog:
    """An append-only log in one file; one writer at a time."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = path
        path.touch(mode=0o600)
        path.chmod(0o600)  # objects hold secrets; SQLite gives its other files the same mode
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=1.0)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            if isinstance(error, sqlite3.OperationalError) and _is_locked(error):
                raise DataDirInUse(f"{path}: another server uses this data directory") from None
            raise
        self._pending: list[Row] = []
        self._compact_to = 0
        self._wake = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_flushed: Callable[[int], None] = lambda revision: None
        self._on_failed: Callable[[BaseException], None] = lambda error: None

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("CREATE TABLE IF NOT EXISTS log (revision INTEGER PRIMARY KEY, resource TEXT, key TEXT, value BLOB)")
        found = run("SELECT value FROM log WHERE revision = 0").fetchone()
        self._compacted = int(found[0]) if found else 0

    @property
    def compacted(self) -> int:
        return self._compacted

    def replay(self) -> Iterator[Row]:
        yield from self._connection.execute("SELECT revision, resource, key, value FROM log WHERE revision > 0 ORDER BY revision")

    def start(self, on_flushed: Callable[[int], None], on_failed: Callable[[BaseException], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_flushed, self._on_failed = on_flushed, on_failed
        self._thread = threading.Thread(target=self._run, name="navarch-store-log", daemon=True)
        self._thread.start()

    def append(self, revision: int, resource: str, key: str, raw: bytes | None) -> None:
        with self._wake:
            self._pending.append((revision, resource, key, raw))
            self._wake.notify()

    def compact(self, revision: int) -> None:
        with self._wake:
            self._compact_to = max(self._compact_to, revision)
            self._wake.notify()

    async def close(self) -> None:
        """Commit what waits and close the file."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self._connection.close()

    def size(self) -> int:
        """Rows in the log; for tests and the compaction policy."""
        count: int = self._connection.execute("SELECT COUNT(*) FROM log WHERE revision > 0").fetchone()[0]
        return count

    def _run(self) -> None:
        try:
            while True:
                with self._wake:
                    while not (self._pending or self._compact_to or self._closing):
                        self._wake.wait()
                    rows, self._pending = self._pending, []
                    compact_to, self._compact_to = self._compact_to, 0
                    closing = self._closing
                if rows:
                    self.append_rows(rows)
                    self._tell(self._on_flushed, rows[-1][0])
                if compact_to:
                    self._compact(compact_to)
                if closing and not rows:
                    return
        except sqlite3.Error as error:
            log.exception("%s: the log cannot be written; the store takes no more writes", self._path)
            self._tell(self._on_failed, error)

    def _tell(self, what: Callable[[Any], None], value: Any) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, value)

    def append_rows(self, rows: list[Row]) -> None:
        """Write rows in one transaction. Called in the log's own thread."""
        run = self._connection
        run.execute("BEGIN")
        run.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)
        run.execute("COMMIT")

    def _compact(self, upto: int) -> None:
        run = self._connection
        run.execute("BEGIN")
        run.execute("INSERT OR REPLACE INTO log VALUES (0, '', '', ?)", (str(upto),))
        run.execute(_COMPACT, {"upto": upto})
        run.execute("COMMIT")
        run.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._compacted = upto
