"""Recorded answers of the systems Navarch follows.

They live beside the project, not in it: `NAVARCH_SHARED` names the directory, `../shared` is looked at otherwise. A test
over recorded cases skips, saying so, where there are none.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

PROJECT = Path(__file__).resolve().parents[2]
Case = dict[str, Any]


def parity_root() -> Path:
    return Path(os.environ.get("NAVARCH_SHARED") or PROJECT.parent / "shared") / "parity"


ABSENT = f"no recorded cases at {parity_root()}; set NAVARCH_SHARED to the directory that holds parity/"


def skipped(*values: Any, id: str) -> Any:
    """The only parameter of a test whose recordings are absent."""
    return pytest.param(*values, id=id, marks=pytest.mark.skip(reason=ABSENT))


def cases_in(file: Path) -> list[Case]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def cases_of(system: str) -> list[tuple[str, int, Case]]:
    """(file, line, case) of everything recorded of one system, in the order of files and lines; nothing where it is absent."""
    files = sorted((parity_root() / system).glob("*.jsonl"))
    return [(file.stem, number, case) for file in files for number, case in enumerate(cases_in(file))]


def recorded_cases(path: str, keep: Callable[[Case], bool] = lambda case: True) -> list[Any]:
    """One parameter for each line of `path` (relative to the parity directory) that `keep` accepts."""
    file = parity_root() / path
    if not file.exists():
        return [skipped({}, id=path)]
    return [pytest.param(case, id=f"{case['suite']}-{case['name']}") for case in cases_in(file) if keep(case)]
