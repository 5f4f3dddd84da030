"""Every command of docs/dashboard.md has options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from navarch.cli.main import main

PAGE = Path(__file__).resolve().parents[3] / "docs" / "dashboard.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
COMMANDS = [line.partition("#")[0].strip() for block in BLOCKS for line in block.splitlines() if line.startswith("navarch ")]


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) >= 5


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_typed_as_it_is_written(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("out", "records"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    _, name, *arguments = shlex.split(command)
    found = main.get_command(main.make_context("navarch", ["--help"], resilient_parsing=True), name)
    assert found is not None
    found.make_context(name, arguments)  # raises where an option does not exist or a value does not fit
