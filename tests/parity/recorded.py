"""Recorded answers of the systems Navarch follows.

They live beside the project, not in it: `NAVARCH_SHARED` names the directory, `../shared` is looked at otherwise. A test
over recorded cases skips, saying so, where there are none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]


def parity_root() -> Path:
    return Path(os.environ.get("NAVARCH_SHARED", PROJECT.parent / "shared")) / "parity"


def recorded_cases(path: str, keep: Callable[[dict[str, Any]], bool] = lambda case: True) -> list[Any]:
    """One parameter for each line of `path` (relative to the parity directory) that `keep` accepts."""
    file = parity_root() / path
    if not file.exists():
        word = f"no recorded cases at {file}; set NAVARCH_SHARED to the directory that holds parity/"
        return [pytest.param({}, id=path, marks=pytest.mark.skip(reason=word))]
    with file.open() as lines:
        cases = [json.loads(line) for line in lines]
    return [pytest.param(case, id=f"{case['suite']}-{case['name']}") for case in cases if keep(case)]
