"""What stands in examples/ does what it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import navarch
from navarch.installed import installed
from navarch.offline.manifests import read_paths
from navarch.testing import check_plugin
from navarch.testing.builders import node, pod

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OWN = EXAMPLES / "plugins"


def test_two_queues() -> None:
    documents, mistakes = read_paths([EXAMPLES / "two-queues.yaml"])
    (cycle,) = navarch.plan(documents).to_dict()["cycles"]
    assert not mistakes and len(cycle["binds"]) == 6
    assert [job["job"] for job in cycle["jobs"] if job["pods"].get("Pending")] == ["research/sweep"]


def test_a_plugin_of_ones_own() -> None:
    policy, switched_off = EXAMPLES / "power-saving.conf", {"example.com/switch-off": "tonight"}
    objects = [node("a").cpu("4"), node("b").cpu("4"), node("c").cpu("4"), pod("old").cpu("1").on("b"), pod("new").cpu("1")]
    objects[2]["metadata"]["labels"] = switched_off
    (cycle,) = navarch.plan(objects, policy, plugin_dirs=[OWN]).to_dict()["cycles"]
    assert cycle["binds"] == [{"node": "b", "pod": "default/new"}], "the busy node is preferred"
    (cycle,) = navarch.plan([objects[2], pod("new").cpu("1")], policy, plugin_dirs=[OWN]).to_dict()["cycles"]
    (job,) = cycle["jobs"]
    assert job["reasons"][0]["nodes"] == {"node(s) are to be switched off": 1}


def test_the_plugin_passes_its_own_check() -> None:
    plugin = installed((OWN,)).plugin("power-saving")
    assert plugin is not None and check_plugin(plugin) == []


def test_a_directory_of_plugins_may_hold_tests_and_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("raise SystemExit('a test is no plugin')")
    (tmp_path / "_shared.py").write_text("raise SystemExit('nor is this')")
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom navarch.engine.plugin import Plugin\n\n"
        "@dataclass\nclass Note:\n    text: str = ''\n\n"
        "class Mine(Plugin):\n    name = 'mine'\n"
    )
    assert installed((tmp_path,)).plugin("mine") is not None
    assert importlib.util.find_spec("mine") is None


def test_two_parts_of_a_gpu_fill_it() -> None:
    documents, _ = read_paths([EXAMPLES / "gpu-parts.yaml"])
    (cycle,) = navarch.plan(documents).to_dict()["cycles"]
    assert [bind["pod"] for bind in cycle["binds"]] == ["default/ana", "default/ben"]
