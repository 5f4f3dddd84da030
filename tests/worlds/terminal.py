"""A terminal of 80 columns and 24 lines: a process in a pseudo-terminal, the keys a person types, and the screen that it shows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyte

UP, DOWN, ENTER, ESCAPE, TAB = "\x1b[A", "\x1b[B", "\r", "\x1b", "\t"


@dataclass
class Terminal:
    process: subprocess.Popen[bytes]
    fd: int
    screen: pyte.Screen
    stream: pyte.ByteStream
    printed: bytearray = field(default_factory=bytearray)
    """All that the process wrote."""

    @property
    def lines(self) -> list[str]:
        """What the screen shows, without trailing spaces."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def until(self, holds: Callable[[str], bool] | str, seconds: float = 120.0) -> str:
        """Read until the screen shows this text, or satisfies this test. Returns the screen."""
        end = time.monotonic() + seconds
        test = holds if callable(holds) else lambda text: holds in text
        while not test(self.text):
            assert time.monotonic() < end, f"the screen never showed it:\n{self.text}"
            assert self._read(0.2) or self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.text}"
        return self.text

    def ended(self, seconds: float = 120.0) -> int:
        """Read until the process ends; its exit code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None or self._read(0.0):
            assert time.monotonic() < end, f"it does not end:\n{self.text}"
            self._read(0.1)
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            return False
        self.printed += data
        self.stream.feed(data)
        return bool(data)


@contextmanager
def terminal(
    command: Sequence[str], environment: Mapping[str, str] | None = None, columns: int = 80, lines: int = 24
) -> Iterator[Terminal]:
    """Run a command in a terminal of its own. It is killed at the end if it still runs."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")}
    env = {**known, "TERM": "xterm-256color", **(environment or {})}

    def take_terminal() -> None:
        """So that Ctrl-C reaches the process as a signal."""
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True, preexec_fn=take_terminal
    )
    os.close(slave)
    screen = pyte.Screen(columns, lines)
    found = Terminal(process, master, screen, pyte.ByteStream(screen))
    try:
        yield found
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=60)
        os.close(master)
