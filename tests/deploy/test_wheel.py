"""The wheel as PyPI would have it: installed into an empty environment, it starts a cluster and plans.

Slow: it builds the wheel and installs all dependencies. `make wheel-test` runs it alone."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from email.parser import Parser
from pathlib import Path
from types import MappingProxyType

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)])
    (found,) = folder.glob("navarch-*.whl")
    return found


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment with nothing but the wheel in it."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)])
    return folder / "bin"


def _run(command: list[str], environment: Mapping[str, str] = MappingProxyType({})) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_metadata_say_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
        assert any(name.endswith("navarch/py.typed") for name in archive.namelist()), "types are exported"
    assert metadata["Name"] == "navarch" and metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == "The Navarch authors" and "Typing :: Typed" in (metadata.get_all("Classifier") or [])
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_a_cluster_comes_up_and_settles(bin_folder: Path, tmp_path: Path) -> None:
    command = [str(bin_folder / "navarch"), "up", "--until-settled", "--speed", "20", "--kubeconfig", str(tmp_path / "k")]
    assert "settled after" in _run(command).splitlines()[-1]


@pytest.mark.parametrize("runner", ["uv", "pipx"])
def test_it_runs_without_being_installed(wheel: Path, tmp_path: Path, runner: str) -> None:
    """`uvx` and `pipx run`, as a user has them: installed from PyPI into an environment of their own."""
    venv.create(tmp_path / "runner", with_pip=True)
    programs = tmp_path / "runner" / "bin"
    _run([str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", runner])
    start = {
        "uv": [str(programs / "uvx"), "--python", sys.executable, "--from", str(wheel), "navarch"],
        "pipx": [str(programs / "pipx"), "run", "--python", sys.executable, "--spec", str(wheel), "navarch"],
    }[runner]
    folders = {"PIPX_HOME": str(tmp_path / "pipx"), "UV_CACHE_DIR": str(tmp_path / "uv")}
    told = _run([*start, "up", "--until-settled", "--speed", "20", "--kubeconfig", str(tmp_path / "k")], folders)
    assert "settled after" in told.splitlines()[-1]


def test_a_plan_is_made_from_a_file(bin_folder: Path) -> None:
    assert "Placed: 6" in _run([str(bin_folder / "navarch"), "plan", "-f", str(ROOT / "examples" / "two-queues.yaml")])
