"""The interpreters from Python 3.11 on that this machine has, one a version: `3.12 /usr/bin/python3.12`, a line each.

`make test-pythons` and CI run the tests on each. They are looked for in PATH and where pyenv and uv keep theirs. Left out is what does
not run (a shim of pyenv whose version is not chosen) or cannot make an environment (Debian's Python without python3-venv).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

OLDEST = (3, 11)
_NAME = re.compile(r"python3\.(\d+)")
_QUESTION = "import ensurepip, sqlite3, ssl, sys, venv; print('%d.%d' % sys.version_info[:2], sys.executable)"


def folders(home: Path, path: str) -> Iterator[Path]:
    yield from (Path(folder) for folder in path.split(os.pathsep) if folder)
    for root in (home / ".pyenv" / "versions", home / ".local" / "share" / "uv" / "python"):
        yield from sorted(root.glob("*/bin"))


def interpreters(places: Iterable[Path]) -> dict[tuple[int, int], str]:
    """The first that runs of each version."""
    found: dict[tuple[int, int], str] = {}
    for folder in places:
        for program in sorted(folder.glob("python3.*")):
            named = _NAME.fullmatch(program.name)
            version = (3, int(named[1])) if named else (0, 0)
            if version >= OLDEST and version not in found and (executable := _answer(program, version)):
                found[version] = executable
    return dict(sorted(found.items()))


def _answer(program: Path, version: tuple[int, int]) -> str:
    """Where it is, by its own word; empty if it does not run."""
    try:
        told = subprocess.run([program, "-c", _QUESTION], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said, _, executable = told.stdout.strip().partition(" ")
    return executable if told.returncode == 0 and said == f"{version[0]}.{version[1]}" else ""


if __name__ == "__main__":
    for (major, minor), executable in interpreters(folders(Path.home(), os.environ.get("PATH", ""))).items():
        print(f"{major}.{minor}", executable)
