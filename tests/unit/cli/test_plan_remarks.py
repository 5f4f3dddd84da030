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
