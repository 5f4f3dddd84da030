"""docs/architecture.md names only files that exist, and folders stay small enough to be read at a glance."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "src" / "navarch"
MOST_ENTRIES = 24


def test_every_file_that_the_page_names_exists() -> None:
    text = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert len(named) > 60
    assert not [name for name in sorted(named) if not (SOURCES / name).exists() and not (TOP / name).exists()]


def test_the_page_names_every_room() -> None:
    text = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.name for path in SOURCES.iterdir() if path.is_dir() and (path / "__init__.py").exists()} - {"manifests"}
    assert not [room for room in sorted(rooms) if f"| `{room}` |" not in text]


def test_no_folder_is_crowded() -> None:
    def entries(folder: Path) -> int:
        return sum((path.is_dir() or path.suffix == ".py") and not path.name.startswith("__") for path in folder.iterdir())

    folders = [path for path in (SOURCES, *SOURCES.rglob("*")) if path.is_dir() and path.name != "__pycache__"]
    assert not [f"{folder.relative_to(TOP)}: {entries(folder)}" for folder in folders if entries(folder) > MOST_ENTRIES]
