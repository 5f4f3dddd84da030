"""What a process leaves behind when it is ended in the midst of a cycle: the job at hand and the tracebacks.

The key of the job at hand is kept in a file that is mapped into memory. Writing it takes no system call, and the file has it however
the process ends. faulthandler writes tracebacks when the process guard ends the process, and when an extension crashes it. Where there
are none, the process was ended from outside (killed, out of memory), and the job at hand is not to blame.

The folder has to outlive the process: an emptyDir outlives a container. One process uses it at a time.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from msgspec import Struct

SIZE = 4096
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in \S+$', re.MULTILINE)
_FATAL = "Fatal Python error"
_CYCLE = "navarch/engine/cycle.py"
_OURS = "/navarch/"


class CrashFolderError(Exception):
    """The folder cannot be used; the message says which and why."""


class Crash(Struct, frozen=True):
    """How the last process ended. `job`: the job at hand; empty: none. `identity`: under which name the process held the lease."""

    job: str
    traceback: str
    identity: str = ""

    @property
    def at_once(self) -> bool:
        """An extension crashed the process. False: it had stood still for seconds when it was ended."""
        return self.traceback.startswith(_FATAL)

    @property
    def where(self) -> str:
        """File and line of the innermost call of the cycle, outside of Navarch and of Python's library if there is one."""
        threads = [_FRAME.findall(thread) for thread in self.traceback.split("\n\n")]
        frames = next((thread for thread in threads if any(file.endswith(_CYCLE) for file, _ in thread)), [])
        rules = [(file, line) for file, line in frames if _OURS not in file and not _is_library(file)]
        return "".join(f"{Path(file).name}:{line}" for file, line in (rules or frames)[:1]) or "the process"


class CrashFolder:
    """`crash`: what the last process left; None: it was not ended by the guard or by a crash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self.tracebacks = opened.enter_context(_open(folder / "tracebacks"))
                job_file = opened.enter_context(_open(folder / "job-at-hand"))
                fcntl.flock(job_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(job_file.fileno(), SIZE)
                self._map = opened.enter_context(mmap.mmap(job_file.fileno(), SIZE))
            except BlockingIOError:
                raise CrashFolderError(f"{folder}: expected a folder for this process alone, another process uses it") from None
            except OSError as error:
                raise CrashFolderError(f"{folder}: expected a folder that can be written: {error.strerror}") from None
            self._opened = opened.pop_all()
        self.crash = self._last_crash()
        self.note_job("")
        self.tracebacks.truncate(0)

    def _last_crash(self) -> Crash | None:
        traceback = self.tracebacks.read().decode(errors="replace")
        job = self._map[:].partition(b"\0")[0].decode(errors="replace")
        return Crash(job, traceback, self.read("identity").decode(errors="replace")) if traceback.strip() else None

    def note_job(self, key: str) -> None:
        """A rule begins to work on this job; empty: on none."""
        name = key.encode()[: SIZE - 1]
        self._map[: len(name) + 1] = name + b"\0"

    def close(self) -> None:
        self._opened.close()

    def read(self, name: str) -> bytes:
        """A file of the folder; empty: there is none."""
        try:
            return (self._folder / name).read_bytes()
        except OSError:
            return b""

    def write(self, name: str, content: bytes) -> None:
        part = self._folder / f"{name}.part"
        part.write_bytes(content)
        part.replace(self._folder / name)


def _is_library(file: str) -> bool:
    return file.startswith(str(Path(os.__file__).parent)) and "site-packages" not in file


def _open(path: Path) -> IO[bytes]:
    """For reading, and for writing at the end."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)
