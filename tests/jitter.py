"""Run a command while its processes are stopped and let go at random, to find tests that hold only where nothing is late.

    python -m tests.jitter --seed 7 -- .venv/bin/pytest -n 2 tests/live

Test workers, API servers and schedulers each stand still for moments of their own, as they do on a machine that others use, but
far more often: what takes a second in CI once a month comes within minutes. A test that fails here waits for a time where it should
wait for an outcome, or asks one part of a system for what another part will do. (Tests of `test_fencing` stop processes themselves,
which this may undo.)
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
from pathlib import Path

LONGEST = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.3, help="how long a process stands still on average, in seconds")
    parser.add_argument("--between", type=float, default=0.3, help="time between two pauses on average, in seconds")
    parser.add_argument("command", nargs="+")
    chosen = parser.parse_args()
    draw = random.Random(chosen.seed)
    with subprocess.Popen(chosen.command) as process:
        while process.poll() is None:
            time.sleep(draw.expovariate(1 / chosen.between))
            if below := descendants(process.pid):
                stand_still(draw.choice(below), min(draw.expovariate(1 / chosen.pause), LONGEST))
        return process.returncode


def stand_still(process: int, seconds: float) -> None:
    with contextlib.suppress(OSError):  # it may have ended
        if _state(process) == "T":  # by a test that wants it so
            return
        os.kill(process, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(process, signal.SIGCONT)


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


def _state(process: int) -> str:
    return _figures(process)[0]


def _figures(process: int) -> list[str]:
    """What the kernel tells of it after its name: state, parent and so on."""
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


if __name__ == "__main__":
    sys.exit(main())
