"""Results of a sweep as a Parquet table (extra `navarch[parquet]`): one row a run, a column for each figure.

A figure inside a group is a column such as `jct.mean`. The column `row` holds the whole run as JSON, so that a sweep goes on where it
was. The file is written whole after each run and replaces the one before at once: readers never see half of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from navarch.simulator.sweep.parameters import SweepError


def read_table(path: Path) -> list[dict[str, Any]]:
    """The runs of a file, as they were added."""
    pyarrow, parquet = _library()
    if not path.exists():
        if not path.parent.is_dir():
            raise SweepError(f"results {path}: found no folder {path.parent}, expected one")
        return []
    try:
        table = parquet.read_table(path, columns=["row"])
    except (pyarrow.ArrowException, OSError, KeyError) as error:
        raise SweepError(f"results {path}: found {error}, expected a Parquet table that --results wrote") from None
    return [json.loads(text) for text in table.column("row").to_pylist()]


def write_table(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Put all runs into the file."""
    pyarrow, parquet = _library()
    flat = [{**dict(flattened(row)), "row": json.dumps(row, sort_keys=True)} for row in rows]
    names = sorted(dict.fromkeys(name for row in flat for name in row), key=_place)
    table = pyarrow.table({name: [row.get(name) for row in flat] for name in names})
    beside = path.with_name(f".{path.name}.new")
    try:
        parquet.write_table(table, beside)
        beside.replace(path)
    except OSError as error:
        raise SweepError(f"results {path}: expected a file that can be written, but: {error.strerror or error}") from None


def _place(name: str) -> tuple[int, str]:
    """What was run comes first, then figures."""
    first = ("policy", "parameters", "seed")
    group = name.partition(".")[0]
    return (first.index(group) if group in first else len(first)), name


def flattened(row: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """Scalar values by name; `figures` is left out of names.

    >>> dict(flattened({"seed": 1, "figures": {"jct": {"mean": 2.0}, "jobs": 3}, "parameters": {"binpack.weight": "5"}}))
    {'seed': 1, 'jct.mean': 2.0, 'jobs': 3.0, 'parameters.binpack.weight': '5'}
    """
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from flattened(value, before if name == "figures" else f"{before}{name}.")
        elif not isinstance(value, list):
            yield f"{before}{name}", float(value) if isinstance(value, int) and name != "seed" else value


def _library() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SweepError("results: pyarrow is not installed; pip install 'navarch[parquet]', or name a .jsonl file") from None
    return pyarrow, pyarrow.parquet
