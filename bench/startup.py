"""CPU that a start costs: `navarch run` up to its first list, and the commands that people type.

    python -m bench.startup                 15 rounds
    python -m bench.startup --rounds 5

Each is a process of its own with warm byte-code caches, beside a bare Python that imports asyncio, ssl and numpy: what no program that
uses them can go below. Rounds take turns, so that a busy machine is busy for all of them; the fastest of each counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.report import Figure, show

TIMES_BARE = 3.0
"""`navarch run` may cost this many times the bare imports."""
BARE = "import asyncio, ssl, numpy"
COMMAND = """
import contextlib, io, sys
from navarch.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    main(sys.argv[1:], "navarch", standalone_mode=False)
"""
RUN = """
import sys
from navarch.cli.main import main
main.get_command(None, "run")
from navarch.live.scheduler import Scheduler
async def until_the_first_list(self):
    await self.health.start(self.options.listen)
    await self.health.stop()
Scheduler.run = until_the_first_list
main(sys.argv[1:], "navarch", standalone_mode=False)
"""
CPU = "\nimport time; print(time.process_time())"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
"""


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.startup")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args(argv).rounds
    with tempfile.TemporaryDirectory(prefix="navarch-bench-") as folder:
        kubeconfig = Path(folder, "config")
        kubeconfig.write_text(KUBECONFIG)
        options = ["--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0", "--log-level", "error"]
        programs = {
            "bare": [BARE + CPU],
            "navarch run": [RUN + CPU, "run", *options],
            "navarch --help": [COMMAND + CPU, "--help"],
            "navarch jobs --help": [COMMAND + CPU, "jobs", "--help"],
        }
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder, "caches")), "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        spent: dict[str, list[float]] = {name: [] for name in programs}
        for number in range(rounds + 1):
            for name, program in programs.items():
                seconds = _cpu(program, environment)
                if number:  # the first round fills the caches
                    spent[name].append(seconds)
    bare = min(spent.pop("bare")) * 1e3
    target = {"navarch run": TIMES_BARE * bare}
    figures = [
        Figure(name, min(times) * 1e3, "ms", target.get(name), bare, "asyncio, ssl, numpy", f"median {_median(times) * 1e3:.0f} ms")
        for name, times in spent.items()
    ]
    show("CPU of a start", figures)


def _cpu(program: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run([sys.executable, "-c", *program], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


def _median(times: list[float]) -> float:
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    main()
