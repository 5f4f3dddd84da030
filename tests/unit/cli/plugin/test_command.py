"""`navarch plugin`: the skeleton works as it is written, and check names what is wrong with a plugin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from navarch.cli.main import main

BROKEN = """
from navarch.engine.plugin import Plugin

class Broken(Plugin):
    name = "broken"

    def job_ordr(self, job):
        return 0
"""


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["plugin", *arguments])
    return result.exit_code, result.output


def test_the_skeleton_passes_its_own_test_and_the_check(tmp_path: Path) -> None:
    code, said = run("new", "oldest-first", "--directory", str(tmp_path))
    assert code == 0, said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["oldest-first.yaml", "oldest_first.py", "test_oldest_first.py"]
    code, said = run("check", str(tmp_path))
    assert (code, said) == (0, f"{tmp_path / 'oldest_first.py'}: oldest-first: ok\n")
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", str(tmp_path)]
    done = subprocess.run(tests, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    checked = CliRunner().invoke(main, ["policy", "check", str(tmp_path / "oldest-first.yaml"), "--plugin-dir", str(tmp_path)])
    assert checked.exit_code == 0, checked.output


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    assert run("new", "mine", "--directory", str(tmp_path))[0] == 0
    code, said = run("new", "mine", "--directory", str(tmp_path))
    assert code == 1
    assert "mine.py exists already; nothing was written" in said


def test_a_name_that_no_plugin_can_have(tmp_path: Path) -> None:
    code, said = run("new", "My_Plugin", "--directory", str(tmp_path))
    assert code == 2
    assert "found 'My_Plugin', expected lower-case letters, digits and dashes" in said


def test_check_names_every_mistake(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "crashes.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    code, said = run("check", str(tmp_path), "-o", "json")
    assert code == 1
    found = json.loads(said)
    assert found[str(tmp_path / "broken.py")] == {"broken": ["method 'job_ordr' is no extension point; did you mean 'job_order'?"]}
    assert found[str(tmp_path / "crashes.py")]["crashes.py"][0].endswith(
        "crashes.py:1 cannot be imported: ZeroDivisionError: division by zero"
    )
    assert found[str(tmp_path / "empty.py")]["empty.py"] == ["defines no subclass of navarch.engine.plugin.Plugin with a name"]


def test_a_directory_without_plugins(tmp_path: Path) -> None:
    code, said = run("check", str(tmp_path))
    assert (code, said) == (1, f"Error: {tmp_path} has no Python file with a plugin\n")


@pytest.mark.parametrize("place", ["import", "job_order"])
def test_a_plugin_that_never_answers_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr("navarch.cli.plugin.command.SECONDS", 0.2)
    loop = "while True:\n{indent}    pass\n"
    source = "from navarch.engine.plugin import Plugin\n\n"
    if place == "import":
        source += loop.format(indent="")
    else:
        source += "class Loops(Plugin):\n    name = 'loops'\n\n    def job_order(self, job):\n        " + loop.format(
            indent="        "
        )
    (tmp_path / "loops.py").write_text(source)
    (tmp_path / "well.py").write_text("from navarch.engine.plugin import Plugin\n\nclass Well(Plugin):\n    name = 'well'\n")
    result = CliRunner().invoke(main, ["plugin", "check", str(tmp_path)])
    assert result.exit_code == 1
    assert "it gives no answer within 0.2 s of CPU time in " in result.stdout and "(loops.py:" in result.stdout
    assert "well.py: well: ok" in result.stdout
