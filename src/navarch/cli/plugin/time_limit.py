"""A limit on the CPU time of code that may never return: it is interrupted where it is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


class NoAnswer(BaseException):
    """The code ran for too long. The message says in which line of the file it was. No `except Exception` inside can hold it up."""


@contextmanager
def cpu_limit(seconds: float, file: Path) -> Iterator[None]:
    """Raise `NoAnswer` in what runs inside, after this much CPU time of the process. Only for the main thread of a command: a signal
    can interrupt nothing else. Code that waits without using CPU is not interrupted."""

    def stop(number: int, frame: FrameType | None) -> None:
        at = frame
        while at is not None and Path(at.f_code.co_filename).resolve() != file.resolve():
            at = at.f_back
        where = f" in {at.f_code.co_name} ({file.name}:{at.f_lineno})" if at is not None else ""
        raise NoAnswer(f"it gives no answer within {seconds:g} s of CPU time{where}")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
