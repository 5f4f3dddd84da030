"""Results of a sweep as a table, one run a row: what is there is not run again. A file that ends in `.parquet` is a Parquet table
(`parquet`), any other is JSON Lines:

    {"key": "4f0c…", "policy": "navarch", "parameters": {"binpack.weight": "5"}, "seed": 42, "figures": {…}, "seconds": 12.5}

A line is written when its run ends. A last line that an interruption cut short is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from navarch.simulator.simulate import PolicyRun, mean_of
from navarch.simulator.sweep.parquet import read_table, write_table
from navarch.simulator.sweep.runs import RunSpec


class Results:
    """`path` None: kept in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self._is_parquet = path is not None and path.suffix == ".parquet"
        if path is not None and self._is_parquet:
            self.rows = {row["key"]: row for row in read_table(path)}
        elif path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict) and "key" in row:
                    self.rows[row["key"]] = row
            # Written anew, so that what follows a line that was cut short starts on a line of its own.
            path.write_text("".join(_line(row) for row in self.rows.values()), encoding="utf-8")

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
            found.setdefault(spec.label, []).append(self.rows[spec.key]["figures"])
        return {name: mean_of(figures) for name, figures in found.items()}


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True) + "\n"
