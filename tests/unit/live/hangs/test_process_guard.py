"""A call into C that holds the interpreter ends the process, with the traceback; slow Python code does not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import ctypes, re, time
from navarch.live.hangs import process_guard
process_guard.BEAT, process_guard.CPU_MARGIN, process_guard.WALL_MARGIN = 0.05, 0.0, {wall}
def rule():
    {rule}
with process_guard.ProcessGuard(0.5, open({file!r}, "r+b")):
    rule()
print("survived")
"""


def run(tmp_path: Path, rule: str, *, wall: float = 600.0) -> tuple[int, str, str]:
    """Exit status, output, and the tracebacks."""
    file = tmp_path / "tracebacks"
    file.touch()
    code = START.format(wall=wall, rule=rule, file=str(file))
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    return ended.returncode, ended.stdout, file.read_text()


def test_a_call_that_computes(tmp_path: Path) -> None:
    status, output, tracebacks = run(tmp_path, 're.match("(a+)+$", "a" * 60 + "!")')
    assert (status, output) == (signal.SIGPROF, "")
    assert "in rule" in tracebacks


def test_a_call_that_waits(tmp_path: Path) -> None:
    status, output, tracebacks = run(tmp_path, "ctypes.PyDLL(None).sleep(600)", wall=0.5)
    assert (status, output) == (1, "")
    assert "in rule" in tracebacks


@pytest.mark.parametrize("rule", ["[None for _ in range(25_000_000)]", "pass"])
def test_python_code_that_is_only_slow(tmp_path: Path, rule: str) -> None:
    assert run(tmp_path, rule) == (0, "survived\n", "")


def test_an_extension_that_crashes(tmp_path: Path) -> None:
    status, _, tracebacks = run(tmp_path, "ctypes.string_at(0)")
    assert status == -signal.SIGSEGV
    assert tracebacks.startswith("Fatal Python error") and "in rule" in tracebacks
