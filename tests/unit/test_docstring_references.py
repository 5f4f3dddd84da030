"""Every file that a docstring or comment names exists: a reader follows the name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "navarch"
NAMED = re.compile(r"`([a-z_]+(?:/[a-z_]+)*\.py)`")


def exists(name: str, source: Path) -> bool:
    """A name is relative to the package, to the project, or to a folder around the file that has it."""
    folders = [ROOT, *(folder for folder in source.parents if folder == PACKAGE or PACKAGE in folder.parents)]
    return any((folder / name).exists() for folder in folders)


def test_files_that_the_code_names_exist() -> None:
    named = [(path, name) for path in sorted(PACKAGE.rglob("*.py")) for name in NAMED.findall(path.read_text(encoding="utf-8"))]
    assert named
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in named if not exists(name, path)] == []
