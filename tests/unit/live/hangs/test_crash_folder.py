"""What a process leaves in its crash folder, and what the next one makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from navarch.live.hangs.crash_folder import SIZE, Crash, CrashFolder, CrashFolderError
from navarch.live.hangs.hung_jobs import FILE, INITIAL_BACKOFF, MAX_BACKOFF, HungJobs

TRACEBACK = """Thread 0x00007f01 (most recent call first):
  File "/opt/navarch/lib/python3.13/site-packages/navarch/live/hangs/process_guard.py", line 10 in _run

Current thread 0x00007f02 (most recent call first):
  File "{library}/re/__init__.py", line 166 in match
  File "/plugins/trap.py", line 12 in job_order
  File "/opt/navarch/lib/python3.13/site-packages/navarch/engine/cycle.py", line 75 in decide
"""
Open = Callable[[Path], CrashFolder]
LEAVES = """
import os, sys
from pathlib import Path
from navarch.live.hangs.crash_folder import CrashFolder
folder = CrashFolder(Path(sys.argv[1]))
folder.write("identity", b"pod-a_1")
folder.note_job("ns/before")
folder.note_job(sys.argv[2])
folder.tracebacks.write(sys.argv[3].encode())
os._exit(1)
"""


def leave(folder: Path, job: str, traceback: str = TRACEBACK) -> None:
    """A process that was ended."""
    subprocess.run([sys.executable, "-c", LEAVES, str(folder), job, traceback], check=False, timeout=120)


@pytest.fixture
def opened() -> Iterator[Callable[[Path], CrashFolder]]:
    """Opens crash folders as the next process does; each is closed at the end."""
    folders: list[CrashFolder] = []

    def open_folder(path: Path) -> CrashFolder:
        folders.append(CrashFolder(path))
        return folders[-1]

    yield open_folder
    for folder in folders:
        folder.close()


def test_the_next_process_reads_the_job_and_the_traceback(tmp_path: Path, opened: Open) -> None:
    library = str(Path(subprocess.__file__).parent)
    leave(tmp_path / "c", "ns/j", TRACEBACK.replace("{library}", library))
    crash = opened(tmp_path / "c").crash
    assert crash is not None
    assert (crash.job, crash.identity, crash.where, crash.at_once) == ("ns/j", "pod-a_1", "trap.py:12", False)
    leave(tmp_path / "d", "", "Fatal Python error: Segmentation fault\n\n" + TRACEBACK)
    crash = opened(tmp_path / "d").crash
    assert crash is not None
    assert (crash.job, crash.at_once) == ("", True)


def test_a_process_that_was_killed_blames_no_job(tmp_path: Path, opened: Open) -> None:
    leave(tmp_path, "ns/j", "")
    assert opened(tmp_path).crash is None


def test_a_crash_is_read_once(tmp_path: Path, opened: Open) -> None:
    leave(tmp_path, "ns/j")
    leave(tmp_path, "", "")  # it read it and ended
    assert opened(tmp_path).crash is None


def test_a_traceback_without_a_cycle_names_the_process() -> None:
    assert Crash("", 'Thread 0x1 (most recent call first):\n  File "x.py", line 1 in f\n').where == "the process"


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, opened: Open) -> None:
    first = opened(tmp_path)
    with pytest.raises(CrashFolderError, match="another process uses"):
        opened(tmp_path)
    assert first.crash is None
    (tmp_path / "file").touch()
    with pytest.raises(CrashFolderError, match="expected a folder that can be written"):
        opened(tmp_path / "file" / "below")


def test_of_a_long_name_the_beginning_is_kept(tmp_path: Path, opened: Open) -> None:
    leave(tmp_path, "n" * 10_000)
    crash = opened(tmp_path).crash
    assert crash is not None and crash.job == "n" * (SIZE - 1)


def test_each_further_hang_doubles_the_back_off(tmp_path: Path, opened: Open) -> None:
    now, waits = 1e6, []
    for _ in range(10):
        leave(tmp_path, "ns/j")
        folder = opened(tmp_path)
        jobs = HungJobs(folder, now)
        ((until, failure),) = jobs.in_force(now).values()
        assert (failure.job, failure.took_too_long, jobs.lease_is_outdated) == ("ns/j", True, True)
        waits.append(until - now)
        now = until
        assert jobs.in_force(now) == {}
        folder.close()
    assert waits[:3] == [INITIAL_BACKOFF, 2 * INITIAL_BACKOFF, 4 * INITIAL_BACKOFF]
    assert waits[-1] == MAX_BACKOFF


def test_other_replicas_learn_from_the_annotation(tmp_path: Path, opened: Open) -> None:
    leave(tmp_path, "ns/j")
    text = HungJobs(opened(tmp_path), 1e6).annotation()
    other = HungJobs(None, 1e6)
    other.read_annotation(text, 1e6 + 1)
    assert [*other.in_force(1e6 + 1)] == ["ns/j"]
    assert other.forget() and not other.forget()
    assert other.annotation() == "[]"


@pytest.mark.parametrize("text", ["", "x", "{}", "[1]", '[{"job":"a/b","count":1,"until":1e300,"where":"w"}]'])
def test_an_annotation_that_is_none_of_ours_is_left_alone(text: str) -> None:
    jobs = HungJobs(None, 1e6)
    jobs.read_annotation(text, 1e6)
    assert jobs.in_force(1e6) == {}


def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, opened: Open) -> None:
    (tmp_path / FILE).write_bytes(b"\xff")
    assert HungJobs(opened(tmp_path), 1e6).in_force(1e6) == {}
