"""What `make` installs is pinned, for every Python that the package promises, the build backend included."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.pythons import interpreters

TOP = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
_PINNED = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def pins(file: str) -> dict[str, set[str]]:
    """The versions of each package; several where Pythons differ."""
    found: dict[str, set[str]] = {}
    for name, version in _PINNED.findall((TOP / file).read_text(encoding="utf-8")):
        found.setdefault(name, set()).add(version)
    return found


def test_every_requirement_has_its_version() -> None:
    project = PYPROJECT["project"]
    wanted = [*PYPROJECT["build-system"]["requires"], *project["dependencies"]]
    wanted += [each for extra in project["optional-dependencies"].values() for each in extra]
    names = {re.split(r"[^A-Za-z0-9._-]", each)[0].lower() for each in wanted}
    assert not names - pins("constraints.txt").keys(), "run `make lock`"


def test_the_image_has_versions_that_the_tests_ran_with() -> None:
    tested = pins("constraints.txt")
    assert {name: versions for name, versions in pins("deploy/requirements.lock").items() if not versions <= tested[name]} == {}


@pytest.mark.parametrize(("target", "extra"), [("up", "."), ("test", "'.[dev]'"), ("site", "'.[docs]'")])
def test_what_make_installs_is_constrained(target: str, extra: str) -> None:
    command = ["make", "--dry-run", target, "VENV=absent", "SITE=absent", f"PYTHON={sys.executable}"]
    said = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=60, check=True).stdout
    (installing,) = [line for line in said.splitlines() if "pip install" in line]
    assert "PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt" in installing
    assert f"--editable {extra}" in installing


def test_interpreters_are_found_that_run_and_are_new_enough(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, name, script in (
        (first, "python3.10", "echo 3.10 /old"),
        (first, "python3.12", "echo 'pyenv: version 3.12 is not chosen' >&2; exit 127"),
        (first, "python3.13", "echo 3.13 /one"),
        (first, "python3.13-config", "echo 3.13 /config"),
        (second, "python3.12", "echo 3.12 /two"),
        (second, "python3.13", "echo 3.13 /three"),
    ):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    assert interpreters([tmp_path / "absent", first, second]) == {(3, 12): "/two", (3, 13): "/one"}
