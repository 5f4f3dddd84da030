"""The first hour of a policy author: a plugin from its skeleton to its first mistake, in a terminal of 80 columns and 24 lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.worlds.terminal import terminal
from tests.worlds.up_process import NAVARCH

pytestmark = pytest.mark.live
QUEUES = Path(__file__).parents[2] / "examples" / "two-queues.yaml"
FAILING = '''
from navarch.engine.plugin import Plugin


class Licences(Plugin):
    """Needs a licence server"""

    name = "licences"

    def open(self):
        raise OSError("no licence server")

    def job_valid(self, job):
        return None
'''
POLICY = "actions: allocate, backfill\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: licences}]\n"


def typed(*command: str, code: int = 0) -> str:
    """What the terminal shows after a command, as one line."""
    with terminal([*NAVARCH, *command]) as screen:
        assert screen.ended() == code, screen.text
        assert max(map(len, screen.text.splitlines()), default=0) <= 80
        return " ".join(screen.text.split())


def test_a_skeleton_works_at_once(tmp_path: Path) -> None:
    folder = str(tmp_path / "plugins")
    assert "oldest-first.yaml" in typed("plugin", "new", "oldest-first", "--directory", folder)
    typed("plugin", "check", folder)
    typed("policy", "check", f"{folder}/oldest-first.yaml", "--plugin-dir", folder)
    assert "Waiting: 1" in typed("plan", "-f", str(QUEUES), "--policy", f"{folder}/oldest-first.yaml", "--plugin-dir", folder)


def test_a_plugin_that_fails_refuses_by_its_name_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "licences.py").write_text(FAILING)
    (tmp_path / "licences.yaml").write_text(POLICY)
    assert "OSError: no licence server" in typed("plugin", "check", str(tmp_path), code=1)
    shown = typed("plan", "-f", str(QUEUES), "--policy", str(tmp_path / "licences.yaml"), "--plugin-dir", str(tmp_path))
    assert "plugin licences (licences.py:11) failed: OSError: no licence server" in shown
    assert "Traceback" not in shown


def test_a_misspelt_method_is_refused_with_the_nearest_point(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(FAILING.replace("job_valid", "job_vaild"))
    assert "job_valid" in typed("plugin", "check", str(tmp_path), code=1)
