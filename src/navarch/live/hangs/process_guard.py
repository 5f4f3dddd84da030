"""Ends the process when one call into C holds the interpreter for too long.

CPython runs one thread at a time. While a call into C holds the interpreter (a pattern that backtracks for ever, an extension that
waits), neither the watchdog nor /livez nor the lease gets a turn. A thread of this module sets two timers anew, once a second. Both
expire without the interpreter:

- CPU time, by the kernel (SIGPROF). It expires for a call that computes. A busy machine or a process that is stopped for a while does
  not let it expire.
- Wall time, by faulthandler's own thread. It expires for a call that waits. It is longer: a process may be stopped for a
  while.

When one expires, the tracebacks of all threads are written and the process ends at once. The lease runs out or is taken again, and
kubelet restarts the container. `crash_folder` keeps which job was at hand.
"""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import threading
from types import TracebackType
from typing import IO, Self

BEAT = 1.0
"""Seconds between two settings of the timer of CPU time."""
BEATS_OF_WALL_TIMER = 5
"""The timer of wall time is set anew after so many beats: it starts a thread each time, which takes 50 us."""
CPU_MARGIN, WALL_MARGIN = 2.0, 30.0
"""Seconds beyond the limit of a cycle. The watchdog comes first wherever it gets a turn."""


STANDARD_ERROR = 2


class ProcessGuard:
    """`limit`: seconds that a cycle may take; 0 or less: nothing is guarded. `tracebacks`: the file to which they are written;
    None: standard error. Those of a crash in an extension are written there, too."""

    def __init__(self, limit: float, tracebacks: IO[bytes] | None = None) -> None:
        self._limit = limit
        self._tracebacks = STANDARD_ERROR if tracebacks is None else tracebacks
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._limit > 0 and hasattr(faulthandler, "register"):
            faulthandler.enable(self._tracebacks)
            _exit_on(signal.SIGPROF)
            faulthandler.register(signal.SIGPROF, self._tracebacks, all_threads=True, chain=True)
            self._set_timers(0)
            self._thread = threading.Thread(target=self._run, name="process guard", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()
            faulthandler.unregister(signal.SIGPROF)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def _run(self) -> None:
        beats = 0
        while not self._ended.wait(BEAT):
            beats += 1
            self._set_timers(beats)

    def _set_timers(self, beats: int) -> None:
        signal.setitimer(signal.ITIMER_PROF, self._limit + CPU_MARGIN)
        if beats % BEATS_OF_WALL_TIMER == 0:
            faulthandler.dump_traceback_later(self._limit + WALL_MARGIN, exit=True, file=self._tracebacks)


def _exit_on(number: int) -> None:
    """Let a signal call `_exit` with its number as the status. The default action would not do: the kernel does not carry it out for
    the first process of a container."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    libc.signal(number, ctypes.cast(libc._exit, ctypes.c_void_p))
