"""`navarch replay` over one file, several, and a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.worlds.live_parts.cluster_cache import SETTINGS, node, pod, put

import navarch
from navarch.cli.main import main
from navarch.installed import installed
from navarch.live.core import LiveCore
from navarch.live.ops.recording import encoded
from navarch.offline.policies import read_policy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three cycles: two pods are placed, then one that waits comes."""
    registry = installed()
    policy = read_policy("navarch", registry)
    core = LiveCore(SETTINGS, lambda instruction: None)
    core.cache.put(node("n1"))
    for number, name in enumerate(("a", "b", "huge"), start=1):
        put(core.cache, pod(name, cpu="9" if name == "huge" else "1"))
        cycle = core.decide(policy, registry, 1000.0 + number)
        core.commit(cycle.record, 1000.0 + number)
        (tmp_path / f"cycle-{number:013d}-{number:06d}.json.gz").write_bytes(encoded(cycle))
    (tmp_path / "notes.txt").write_text("not a recording")
    return tmp_path


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def test_a_folder_is_summed_up_with_reasons(folder: Path) -> None:
    done = replay(folder)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "3 cycles: 3 the same, 0 differ"
    assert lines[1].split() == ["binds", "2", "then,", "2", "now"]
    assert "NeverStarts: cannot start: one pod needs 9 CPUs, the largest node has 4" in done.output


def test_under_another_policy_each_file_that_differs_is_shown(folder: Path, tmp_path: Path) -> None:
    policy = tmp_path / "nothing.yaml"
    policy.write_text("actions: backfill\ntiers:\n- plugins: [{name: gang}]\n")
    done = replay(folder, "--policy", policy)
    assert done.exit_code == 1
    assert "cycle-0000000000001-000001.json.gz (1970-01-01T00:16:41Z):\n  bind default/a: n1 -> nothing" in done.output
    assert "2 then, 0 now" in done.output


def test_the_json_is_that_of_plan(folder: Path) -> None:
    found = json.loads(replay(folder, "-o", "json").stdout)
    assert found["summary"]["same"] == 3 and found["summary"]["waiting"][0]["code"] == "NeverStarts"
    (planned,) = navarch.plan([]).to_dict()["cycles"]
    assert {*found["cycles"][0]["decisions"]} == {*planned}
    one = json.loads(replay(sorted(folder.glob("cycle-*"))[-1], "-o", "json").stdout)
    (job,) = [each for each in one["decisions"]["jobs"] if each["job"] == "default/huge"]
    assert job["minMember"] == 1 and job["reasons"][0]["undoneBy"]


def test_unusable_recordings_are_named_and_the_rest_is_replayed(folder: Path) -> None:
    (folder / "cycle-0000000000009-000009.json.gz").write_bytes(b"broken")
    done = replay(folder)
    assert done.exit_code == 2
    assert "expected a recording" in done.stderr and "3 the same, 0 differ, 1 cannot be used" in done.stdout
    empty = folder / "empty"
    empty.mkdir()
    none = replay(empty)
    assert none.exit_code == 2 and "expected recordings (cycle-*.json.gz)" in none.output
