"""A policy file that changes while it is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from navarch.cache import policy_file
from navarch.cache.policy_file import PolicyFile
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.plan import read_policy

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
