"""What `navarch plan` says beside its answer, on standard error."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from navarch.cli.main import main
from navarch.testing import node, pod


@pytest.mark.parametrize(("objects", "said"), [([pod("a").cpu(1)], True), ([pod("a").cpu(1), node("n").cpu(8)], False)])
def test_a_plan_without_nodes_says_so(tmp_path: Path, objects: list[dict[str, object]], said: bool) -> None:
    (file := tmp_path / "input.yaml").write_text(yaml.safe_dump_all([dict(each) for each in objects]))
    result = CliRunner().invoke(main, ["plan", "-f", str(file)])
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["no Node is in the input: nothing can be placed"] * said


def test_a_plan_for_one_scheduler_counts_the_waiting_pods_of_others(tmp_path: Path) -> None:
    pods = [dict(pod(f"p{i}")) for i in range(3)]
    for each, name in zip(pods, ["navarch", "volcano", "volcano"], strict=True):
        each["spec"]["schedulerName"] = name
    (file := tmp_path / "input.yaml").write_text(yaml.safe_dump_all(pods))
    result = CliRunner().invoke(main, ["plan", "-f", str(file), "--scheduler-name", "navarch"])
    told = "2 pods without a node name the scheduler volcano, and are left out: --scheduler-name volcano decides for them"
    assert told in result.stderr
    policy = tmp_path / "policy.yaml"
    policy.write_text("actions: allocate\ntiers:\n- plugins:\n  - name: gang\nschedulerParams: {schedulerName: navarch}\n")
    assert told in CliRunner().invoke(main, ["plan", "-f", str(file), "--policy", str(policy)]).stderr
