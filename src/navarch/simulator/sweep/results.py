"""Results of a sweep as a table, one run a row: what is there is not run again. A file that ends in `.parquet` is a Parquet table
(`parquet`), any other is JSON Lines:

    {"key": "4f0c…", "policy": "navarch", "parameters": {"binpack.weight": "5"}, "seed": 42, "figures": {…}, "seconds": 12.5}

A line is written when its run ends. A last line that an interruption cut short is dropped. A file with anything else in it is not one
of ours: it is refused and left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from navarch.simulator.simulate import PolicyRun, mean_of
from navarch.simulator.sweep.parameters import SweepError
from navarch.simulator.sweep.parquet import read_table, write_table
from navarch.simulator.sweep.runs import RunSpec

BEGIN = b'{"figures": '
"""A line begins so: its keys are in order."""


class Results:
    """`path` None: kept in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self._is_parquet = path is not None and path.suffix == ".parquet"
        if path is not None and self._is_parquet:
            self.rows = {row["key"]: row for row in read_table(path)}
        elif path is not None:
            self.rows = {row["key"]: row for row in _read(path)}

    def has(self, spec: RunSpec) -> bool:
        return spec.key in self.rows

    def add(self, spec: RunSpec, run: PolicyRun) -> None:
        row = {
            "key": spec.key,
            "policy": spec.label.partition("[")[0],
            "parameters": dict(spec.parameters),
            "seed": spec.seed,
            "figures": run.measures.to_dict(),
            "leftOut": run.left_out,
            "neverStarted": len(run.waiting),
            "seconds": run.seconds,
        }
        self.rows[spec.key] = row
        if self._path is not None and self._is_parquet:
            write_table(self._path, self.rows.values())
        elif self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(row))

    def policies(self, specs: Iterable[RunSpec]) -> dict[str, Any]:
        """Label of policy and parameters -> figures, means over the seeds."""
        found: dict[str, list[Any]] = {}
        for spec in specs:
            if spec.key in self.rows:  # otherwise it failed
                found.setdefault(spec.label, []).append(self.rows[spec.key]["figures"])
        return {name: mean_of(figures) for name, figures in found.items()}


def _read(path: Path) -> list[dict[str, Any]]:
    """Runs of a file, which is made if it is not there. A part of a line that an interruption left at its end is cut off."""
    try:
        with path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            end = content.rfind(b"\n") + 1
            rows = [_row(path, number, line) for number, line in enumerate(content[:end].split(b"\n")[:-1], start=1)]
            if end < len(content):
                if not content[end:].startswith(BEGIN[: len(content) - end]):
                    raise _not_ours(path, len(rows) + 1)
                file.truncate(end)
    except OSError as error:
        raise SweepError(f"results {path}: expected a file that can be written, but: {error.strerror or error}") from None
    return rows


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or not isinstance(row.get("key"), str) or "figures" not in row:
        raise _not_ours(path, number)
    return row


def _not_ours(path: Path, number: int) -> SweepError:
    return SweepError(f"results {path}: found in line {number} something else than a run, expected a file that --results wrote")


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True) + "\n"
