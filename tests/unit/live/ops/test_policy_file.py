"""A policy file that changes while it is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.live.ops import policy_file
from navarch.live.ops.policy_file import PolicyFile
from navarch.offline.plan import read_policy

GOOD = 'actions: "allocate"\ntiers: []\n'
BETTER = 'actions: "enqueue, allocate"\ntiers: []\n'


def test_a_file_that_is_written_twice_is_taken_as_it_is_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found whole, read while it is empty, and whole again with the same content: that is no refused policy."""
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD, encoding="utf-8")
    file = PolicyFile(str(path), installed())

    def read_while_written(name: Path, registry: Registry) -> Policy:
        path.write_text("", encoding="utf-8")
        return read_policy(name, registry)

    path.write_text(BETTER, encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(policy_file, "read_policy", read_while_written)
        assert not file.look() and file.refused
    path.write_text(BETTER, encoding="utf-8")
    assert file.look()
    assert (file.refused, file.policy.actions) == ("", ("enqueue", "allocate"))


def test_what_a_file_says_and_is_not_done_is_logged_when_it_comes_into_force(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "policy.yaml"
    unknown = 'compat: volcano\nactions: "allocate"\ntiers: [{plugins: [{name: gang, arguments: {%s: 1}}]}]\n'
    path.write_text(unknown % "one", encoding="utf-8")
    file = PolicyFile(str(path), installed())
    path.write_text(unknown % "two", encoding="utf-8")
    assert file.look()
    ours = (policy_file.__name__, "WARNING")
    said = [record.getMessage() for record in caplog.records if (record.name, record.levelname) == ours]
    assert ["'one'" in text for text in said] == [True, False] and "'two'" in said[1]
