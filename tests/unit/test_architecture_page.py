"""docs/architecture.md names only files that exist, and every room."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "src" / "navarch"


def test_every_file_that_the_page_names_exists() -> None:
    text = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", text))
    assert len(named) > 60
    assert not [name for name in sorted(named) if not (SOURCES / name).exists() and not (TOP / name).exists()]


def test_the_page_names_every_room() -> None:
    text = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.name for path in SOURCES.iterdir() if path.is_dir() and (path / "__init__.py").exists()} - {"manifests"}
    assert not [room for room in sorted(rooms) if f"| `{room}` |" not in text]
