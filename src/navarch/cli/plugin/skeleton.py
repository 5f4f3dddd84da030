"""The files that `navarch plugin new` writes: a plugin with an order and a score, its test, and a policy that uses it."""

from __future__ import annotations

import re
from pathlib import Path

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PLUGIN = '''"""Plugin {name}. Change what it does, then run: navarch plugin check ."""

from __future__ import annotations

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.model.resources import PODS, FloatArray


class {title}(Plugin):
    """Starts older jobs first, and fills nodes that are busy already"""

    name = "{name}"
    arguments = (Argument("weight", "int", 1, "weight of the score", minimum=0),)

    def job_order(self, job: Job) -> float:
        """A sort key for the jobs of a queue: the smallest comes first."""
        return job.spec.created

    def node_scorers(self) -> list[NodeScorer]:
        return [Busiest(self.given.integer("weight"))]


class Busiest(NodeScorer):
    name = "{name}"
    scope = Scope.ROW  # the answer depends on the figures of each node alone

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        """One number for each node: how many percent of its pods are taken."""
        return np.asarray(100.0 * at.requested[PODS] / np.maximum(at.allocatable[PODS], 1))
'''
_TEST = '''"""Run it with: pytest"""

from __future__ import annotations

from pathlib import Path

import navarch
from navarch.testing import check_plugin
from navarch.testing.builders import node, pod

from {module} import {title}


def test_the_plugin_keeps_the_rules() -> None:
    assert check_plugin({title}) == []


def test_a_busy_node_is_filled_first() -> None:
    objects = [node("a").cpu("8"), node("b").cpu("8"), pod("running").cpu("1").on("b"), pod("new").cpu("1")]
    policy = {{"actions": "allocate", "tiers": [{{"plugins": [{{"name": "{name}"}}]}}]}}
    planned = navarch.plan(objects, policy, plugin_dirs=Path(__file__).parent)
    assert [bind.node for bind in planned.binds] == ["b"]
'''
_POLICY = """# A policy that uses the plugin. `navarch policy check {name}.yaml --plugin-dir .` shows what it does.
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: {name}
    arguments: {{weight: 1}}
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
"""


class SkeletonExists(Exception):
    """A file that would be overwritten."""


def write_skeleton(name: str, directory: Path) -> list[Path]:
    """The files written: the plugin, its test, the policy. Raises SkeletonExists before it writes anything."""
    module = name.replace("-", "_")
    words = {"name": name, "module": module, "title": "".join(part.capitalize() for part in name.split("-"))}
    texts = {
        directory / f"{module}.py": _PLUGIN.format(**words),
        directory / f"test_{module}.py": _TEST.format(**words),
        directory / f"{name}.yaml": _POLICY.format(**words),
    }
    for path in texts:
        if path.exists():
            raise SkeletonExists(str(path))
    directory.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return list(texts)
