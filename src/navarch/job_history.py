"""What jobs came and how long they ran, in an SQLite file: the basis of start times.

The live scheduler writes the file (`navarch run --history FILE`). `navarch explain` and `navarch jobs --eta` read it. A row is a job,
or a pod of a workload whose pods start one by one. It is written when the job comes, when it starts and when its pods have finished.
The newest rows are kept, so the file stays small. The table may lie in the file of the usage history.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
from msgspec import Struct

from navarch.model.spec import JobSpec, Requests, TaskSpec

GPU = "nvidia.com/gpu"
MOST_ROWS = 50_000
"""Rows that a file keeps: about 10 MB."""
PodKind = tuple[int, Requests, tuple[tuple[str, str], ...]]
"""How many equal pods, what one of them asks for, and its node selector."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
    uid TEXT PRIMARY KEY, submitted REAL NOT NULL, started REAL, finished REAL,
    namespace TEXT NOT NULL, queue TEXT NOT NULL, owner TEXT NOT NULL, image TEXT NOT NULL,
    priority INTEGER NOT NULL, needed INTEGER NOT NULL, pods TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS job_submitted ON job (submitted);
"""
_COLUMNS = "uid, submitted, started, finished, namespace, queue, owner, image, priority, needed, pods"
_WRITE = f"""
INSERT INTO job ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (uid) DO UPDATE SET started = COALESCE(excluded.started, started), finished = COALESCE(excluded.finished, finished)
"""
_FORGET = "DELETE FROM job WHERE uid IN (SELECT uid FROM job ORDER BY submitted DESC, uid LIMIT -1 OFFSET ?)"


class JobRun(Struct, frozen=True):
    """A job that came. `started` and `finished` None: not yet. `needed`: pods without which it does not start."""

    uid: str
    submitted: float
    namespace: str
    queue: str
    owner: str = ""
    image: str = ""
    pods: tuple[PodKind, ...] = ()
    needed: int = 1
    priority: int = 0
    started: float | None = None
    finished: float | None = None

    @property
    def gpus(self) -> int:
        """Thousandths."""
        return sum(count * dict(requests).get(GPU, 0) for count, requests, _ in self.pods)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """Jobs that are expected to run alike, from the most alike on: the same owner and image, the same image, the same queue and
        size, the same queue."""
        gpus = self.gpus
        found: list[Hashable] = []
        if self.owner:
            found.append(("owner", self.namespace, self.owner, self.image, gpus))
        if self.image:
            found.append(("image", self.namespace, self.image, gpus))
        return (*found, ("size", self.queue, gpus), ("queue", self.queue))


class HistoryError(Exception):
    """The file cannot be used; names it and what was found."""


def is_gang(job: JobSpec) -> bool:
    """Whether the job is one row. The pods of others start and end one by one."""
    return job.min_member > 1


def run_of(job: JobSpec, tasks: Sequence[TaskSpec]) -> JobRun:
    """A gang and its pods, or one pod of another job, as a row."""
    kinds: dict[tuple[Requests, tuple[tuple[str, str], ...]], int] = {}
    for task in tasks:
        kind = (task.shape.requests, task.shape.node_selector)
        kinds[kind] = kinds.get(kind, 0) + 1
    first = min(tasks, key=lambda task: task.name)
    starts = [task.started for task in tasks if task.started is not None]
    owner, gang = job.owner or first.owner, is_gang(job)
    return JobRun(
        uid=(job.uid or job.key) if gang else first.uid,
        submitted=(job.created or first.created) if gang else first.created or job.created,
        namespace=job.namespace or first.namespace,
        queue=job.queue,
        owner=name_stem(owner[1] if owner else job.name or first.name),
        image=first.shape.images[0] if first.shape.images else "",
        pods=tuple((count, *kind) for kind, count in sorted(kinds.items())),
        needed=min(max(job.min_member, 1), len(tasks)),
        priority=job.priority,
        started=min(starts, default=None),
    )


def name_stem(name: str) -> str:
    """A name without the numbers and hashes that tell runs of one thing apart.

    >>> [name_stem(each) for each in ("sweep-17", "nightly-28499520", "train-7d4b9c-x2v", "bert", "a100-test", "2024-09")]
    ['sweep', 'nightly', 'train', 'bert', 'a100-test', '2024-09']
    """
    parts = name.split("-")
    while len(parts) > 1 and any(character.isdigit() for character in parts[-1]):
        parts.pop()
    return name if any(character.isdigit() for character in parts[0]) and len(parts) == 1 else "-".join(parts)


def open_file(path: str | Path, schema: str) -> sqlite3.Connection:
    """A history file with the tables of `schema`. It is closed again when they cannot be made."""
    with ExitStack() as opened:
        file = opened.enter_context(closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)))
        file.execute("PRAGMA journal_mode=WAL")
        file.executescript(schema)
        opened.pop_all()
    return file


class JobHistory:
    """A history file that is written. `path` is a file, or `:memory:`."""

    def __init__(self, path: str | Path, most_rows: int = MOST_ROWS) -> None:
        self.path = path
        self._most = most_rows
        try:
            self._file = open_file(path, _SCHEMA)
        except sqlite3.Error as error:
            raise HistoryError(f"history {path}: {error}") from error

    def write(self, runs: Iterable[JobRun]) -> None:
        """Add jobs, or what became of them. The oldest beyond the bound are forgotten."""
        try:
            self._file.execute("BEGIN")
            self._file.executemany(_WRITE, map(_row, runs))
            self._file.execute(_FORGET, (self._most,))
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise HistoryError(f"history {self.path}: {error}") from error

    def close(self) -> None:
        self._file.close()


def read_history(path: str | Path) -> list[JobRun]:
    """All jobs of a file, in order of submission. The file is not changed."""
    if not Path(path).is_file():
        raise HistoryError(f"history {path}: found no such file, expected the file of `navarch run --history`")
    try:
        with closing(sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)) as file:
            rows = file.execute(f"SELECT {_COLUMNS} FROM job ORDER BY submitted, uid").fetchall()
        return [_run(row) for row in rows]
    except (sqlite3.Error, msgspec.MsgspecError) as error:
        raise HistoryError(f"history {path}: {error}") from error


def _row(run: JobRun) -> tuple[object, ...]:
    times = (run.submitted, run.started, run.finished)
    pods = msgspec.json.encode(run.pods).decode()
    return run.uid, *times, run.namespace, run.queue, run.owner, run.image, run.priority, run.needed, pods


def _run(row: Sequence[object]) -> JobRun:
    uid, submitted, started, finished, namespace, queue, owner, image, priority, needed, pods = row
    fields = {
        "uid": uid,
        "submitted": submitted,
        "namespace": namespace,
        "queue": queue,
        "owner": owner,
        "image": image,
        "pods": msgspec.json.decode(str(pods)),
        "needed": needed,
        "priority": priority,
        "started": started,
        "finished": finished,
    }
    return msgspec.convert(fields, JobRun)
