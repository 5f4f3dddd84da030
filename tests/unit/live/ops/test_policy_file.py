"""A policy file that changes while it is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.installed import installed
from navarch.live.ops import policy_file
from navarch.live.ops.policy_file import PolicyFile
from navarch.offline.policies import read_policy

GOOD = 'actions: "allocate"\ntiers: []\n'
BETTER = 'actions: "enqueue, allocate"\ntiers: []\n'


def test_a_file_that_is_written_twice_is_taken_as_it_is_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found whole, read while it is empty, and whole again with the same content: that is no refused policy."""
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD, encoding="utf-8")
    file = PolicyFile(str(path), installed())

    def read_while_written(name: str, registry: Registry, shard: str) -> Policy:
        path.write_text("", encoding="utf-8")
        return read_policy(name, registry, shard)

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


PLUGIN = """
from navarch.engine.plugin import Plugin

class Mine(Plugin):
    name = "mine"
    version = {version}

    def job_order(self, job):
        return {version}
"""


def test_a_plugin_that_changes_is_read_again_and_a_broken_one_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    plugin, path = tmp_path / "mine.py", tmp_path / "policy.yaml"
    plugin.write_text(PLUGIN.format(version=1), encoding="utf-8")
    path.write_text('actions: "allocate"\ntiers: [{plugins: [{name: mine}]}]\n', encoding="utf-8")
    file = PolicyFile(str(path), installed((tmp_path,)), (tmp_path,))
    assert not file.look()
    plugin.write_text(PLUGIN.format(version=2), encoding="utf-8")
    assert file.look()
    assert vars(file.registry.plugin("mine"))["version"] == 2
    plugin.write_text("import no_such_module", encoding="utf-8")
    assert not file.look()
    assert f"{plugin}:1 cannot be imported: ModuleNotFoundError" in file.refused
    assert vars(file.registry.plugin("mine"))["version"] == 2, "the last good one stays"
    plugin.write_text(PLUGIN.format(version=3), encoding="utf-8")
    assert file.look() and not file.refused
    assert [f"plugins in {tmp_path}" in record.getMessage() for record in caplog.records if record.levelname == "INFO"] == [True, True]


def test_a_text_that_is_offered_comes_into_force_when_it_changes() -> None:
    file = PolicyFile("SchedulingShard/a", installed(), text=GOOD)
    assert not file.look()
    file.offer(BETTER)
    assert file.look() and file.policy.actions == ("enqueue", "allocate")
    file.offer("tiers: 3")
    assert not file.look() and file.refused
