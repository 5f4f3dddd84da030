"""A limit on the time of one cycle in a command, where a plugin of the user may never return.

`navarch run` ends such a cycle from a thread and goes on without the job at hand (`live/hangs/watchdog`). A command has nothing to go
on with, so it ends, and its message names the line that was running. A timer looks at the stack several times within the limit. What
takes too long is one call of `decide`, or one call into a plugin outside of it, that has been on the stack since. Time that Navarch's
own code takes ends nothing: a large plan may take minutes.
"""

from __future__ import annotations

import signal
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType

import numpy as np

from navarch.engine.cycle import decide

DEFAULT_SECONDS = 8.0
LOOKS = 8
"""Looks at the stack within the limit."""
_OURS = (str(Path(__file__).parents[1]), str(Path(np.__file__).parent))
_STANDARD = sysconfig.get_path("stdlib")


class CycleTooLong(BaseException):
    """No `except Exception` in a plugin or in the containment of a cycle can hold it up."""


@contextmanager
def cycle_limit(seconds: float, plugin_dirs: Sequence[Path] = ()) -> Iterator[None]:
    """Raise `CycleTooLong` in what runs inside; 0 seconds: never. Only in the main thread: a signal interrupts nothing else."""
    if seconds <= 0 or threading.current_thread() is not threading.main_thread():
        yield
        return
    folders = tuple(str(each.resolve()) for each in plugin_dirs)
    call: FrameType | None = None
    since = 0.0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal call, since
        inside: list[FrameType] = []
        stack = []
        while frame is not None:
            stack.append(frame)
            if frame.f_code is decide.__code__ or _is_in(frame, folders):
                inside = stack.copy()
            frame = frame.f_back
        if not inside or inside[-1] is not call:
            call, since = inside[-1] if inside else None, time.monotonic()
        elif time.monotonic() - since > seconds:
            running = [each for each in inside if _is_in(each, folders)] or [each for each in inside if _is_foreign(each)]
            if running:
                call, at = None, running[0]
                where = f"{at.f_code.co_filename}:{at.f_lineno}, in {at.f_code.co_name}"
                raise CycleTooLong(f"a cycle takes more than {seconds:g} s, and a plugin is at {where}")

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds / LOOKS, seconds / LOOKS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        call = None


@lru_cache(maxsize=4096)
def _file(name: str) -> str:
    return str(Path(name).resolve())


def _is_in(frame: FrameType, folders: tuple[str, ...]) -> bool:
    return bool(folders) and _file(frame.f_code.co_filename).startswith(folders)


def _is_foreign(frame: FrameType) -> bool:
    """Whether the code is neither Navarch's nor a library's that it uses: an installed plugin's."""
    name = frame.f_code.co_filename
    return not name.startswith(("<", *_OURS)) and ("site-packages" in name or not name.startswith(_STANDARD))
