"""Run a command on a machine that seems slow and uneven, to find tests that hold only where nothing is late.

    python -m tests.jitter --seed 7 -- .venv/bin/pytest -n 2 tests/live
    sudo python -m tests.jitter --busy 3 -- .venv/bin/pytest -n 2 tests/live

Test workers, API servers and schedulers are stopped and let go at random, as happens where others use the machine, but far more
often. With `--busy` threads get priorities of their own as well, beside processes that want every core: then the parts of one server
are late for each other. What goes wrong in CI once in months comes within minutes. A test that fails here waits for a time where it
should wait for an outcome, or asks one part of a system for what another one will do. (`test_fencing` stops processes itself, which
a pause may undo.)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LONGEST = 4.0
PRIORITIES = (0, 0, 5, 19, 19)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.3, help="how long a process stands still on average, in seconds")
    parser.add_argument("--between", type=float, default=0.3, help="time between two pauses on average, in seconds")
    parser.add_argument("--busy", type=int, default=0, help="processes that compete for the cores; threads get priorities (root)")
    parser.add_argument("command", nargs="+")
    chosen = parser.parse_args()
    draw = random.Random(chosen.seed)
    with busy(chosen.busy), subprocess.Popen(chosen.command) as process:
        while process.poll() is None:
            time.sleep(draw.expovariate(1 / chosen.between))
            below = descendants(process.pid)
            if chosen.busy:
                for each in below:
                    change_priorities(each, draw)
            if below:
                stand_still(draw.choice(below), min(draw.expovariate(1 / chosen.pause), LONGEST))
        return process.returncode


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that never rest."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def stand_still(process: int, seconds: float) -> None:
    with contextlib.suppress(OSError):  # it may have ended
        if _figures(process)[0] == "T":  # by a test that wants it so
            return
        os.kill(process, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(process, signal.SIGCONT)


def change_priorities(process: int, draw: random.Random) -> None:
    for thread in sorted(Path(f"/proc/{process}/task").glob("*")):
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), draw.choice(PRIORITIES))


def descendants(process: int) -> list[int]:
    """Of a process, itself excluded, in the order of their numbers."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int(_figures(int(folder.name))[1])
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {process})


def _figures(process: int) -> list[str]:
    """What the kernel tells of it after its name: state, parent and so on."""
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


if __name__ == "__main__":
    sys.exit(main())
