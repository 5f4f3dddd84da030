"""Commands of docs/simulate.md run as they are written there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from navarch.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "simulate.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```\n(navarch simulate .*?)```", PAGE, flags=re.DOTALL)
    for line in block.replace("\\\n", " ").strip().splitlines()
]
HERE = [command for command in COMMANDS if "examples/traces/" in command]


def test_the_page_has_commands() -> None:
    assert len(HERE) >= 2


@pytest.mark.parametrize("command", HERE)
def test_commands_with_examples_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, shlex.split(command.replace("--processes 2", ""))[1:])
    assert result.exit_code == 0, result.output


def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/simulate.md", "exec"), {})


def test_the_line_of_a_trace_is_one(tmp_path: Path) -> None:
    from navarch.simulator.traces import read_trace

    (line,) = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    file = tmp_path / "trace.jsonl"
    file.write_text(line)
    (job,) = read_trace(f"jsonl:{file}").jobs
    assert (job.name, job.needed, job.size) == ("bert", 2, 4)
