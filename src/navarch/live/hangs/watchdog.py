"""Ends a cycle that takes too long, by wall time: the last resort where no step is counted.

A cycle runs in the event loop's thread. While one rule hangs, no other job is decided and nothing is written. The lease and /livez go
on in a loop of their own (`second_loop`). A thread waits for the limit and then raises CycleTimeout inside the cycle. The containment
finds the job at hand in the traceback, sets it aside with its back-off, and ends the cycle; the next one goes on without the job. A
cycle that was ended decides nothing else, so no recording depends on the clock. Each time-out in a row doubles the limit: a cluster
whose cycles are merely slow is decided in the end.

Python delivers such an exception between two instructions. A call into C that never returns is not ended by it: `hangs/process_guard`
ends the process.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from navarch.engine.containment.containment import CycleTimeout
from navarch.engine.cycle import decide

MOST_DOUBLINGS = 5


class Watchdog:
    def __init__(self, limit: float) -> None:
        """`limit` in seconds; 0 or less: none."""
        self._limit = limit
        self._changed = threading.Condition()
        self._watched: int | None = None
        """The thread that is in a cycle."""
        self._cycle = 0
        self._fired = False
        self._in_a_row = 0
        self._thread: threading.Thread | None = None

    @property
    def limit(self) -> float:
        """Seconds that a cycle may take at the moment."""
        return max(0.0, self._limit) * float(2**self._in_a_row)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """A cycle in the body is ended by CycleTimeout when the limit has passed, and again after each further limit."""
        if self._limit <= 0:
            yield
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
            self._thread.start()
        this = threading.get_ident()
        with self._changed:
            self._watched, self._fired = this, False
            self._cycle += 1
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._watched = None
                self._in_a_row = min(self._in_a_row + 1, MOST_DOUBLINGS) if self._fired else 0
                if self._fired:
                    with suppress(CycleTimeout):
                        _catch_late(this)
                self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._watched is not None)
                watched, cycle = self._watched, self._cycle
                assert watched is not None
                while self._watched is not None and self._cycle == cycle:
                    if not self._changed.wait(self.limit) and self._watched is not None:
                        if not _decides(watched):
                            self._watched = None
                            break
                        self._fired = True
                        _raise_in(watched, CycleTimeout)


def _decides(thread: int) -> bool:
    """Whether a cycle is really under way there: the exception must not strike anything else."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code is decide.__code__:
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _catch_late(this: int) -> None:
    """Catch a CycleTimeout that was not delivered yet: it would strike what comes after. Another one takes its place, which Python
    delivers to this thread at once. Withdrawing it would not do: Python 3.11 then looks for an exception at every call and every loop
    for ever, and never leaves a function that is traced."""
    try:
        _raise_in(this, CycleTimeout)
        while True:
            pass
    except CycleTimeout:
        pass
