"""A plugin that never returns ends `plan`, `explain` and `simulate` with its file and line, not the patience of the user."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from navarch.cli.main import main

LOOPS = """
from navarch.engine.plugin import Plugin


class Loops(Plugin):
    name = "loops"

    def job_order(self, job):
        while True:
            pass
"""
POLICY = """
actions: allocate
tiers:
- plugins: [{name: loops}, {name: gang}, {name: predicates}]
"""
OBJECTS = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {schedulerName: navarch, containers: [{name: main, image: x, resources: {requests: {cpu: "8"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec: {schedulerName: navarch, containers: [{name: main, image: x, resources: {requests: {cpu: "8"}}}]}
"""
TRACE = '{"name": "%s", "submit": 0, "duration": 60, "pods": [{"gpus": 8}]}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("plugins/loops.py", LOOPS), ("policy.yaml", POLICY), ("objects.yaml", OBJECTS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "trace.jsonl").write_text(TRACE % "a" + TRACE % "b")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "plan -f {0}/objects.yaml",
        "explain a -f {0}/objects.yaml",
        "simulate --trace jsonl:{0}/trace.jsonl --cluster h100=1x8gpu",
        "simulate --trace jsonl:{0}/trace.jsonl --cluster h100=1x8gpu --results {0}/out.jsonl",
        "simulate --trace jsonl:{0}/trace.jsonl --cluster h100=1x8gpu --processes 2 --seeds 1-2",
    ],
)
def test_the_command_ends_and_names_the_line(folder: Path, command: str) -> None:
    words = f"{command} --policy {{0}}/policy.yaml --plugin-dir {{0}}/plugins --cycle-timeout 0.5".format(folder).split()
    found = CliRunner().invoke(main, words)
    assert found.exit_code == 1
    assert "a cycle takes more than 0.5 s" in found.stderr
    assert f"{folder}/plugins/loops.py:" in found.stderr and "in job_order" in found.stderr


def test_a_plugin_that_returns_is_not_ended(folder: Path) -> None:
    (folder / "plugins" / "loops.py").write_text(LOOPS.replace("while True:\n            pass", "return 0"))
    words = f"plan -f {folder}/objects.yaml --policy {folder}/policy.yaml --plugin-dir {folder}/plugins --cycle-timeout 0.05".split()
    assert CliRunner().invoke(main, words).exit_code == 0
