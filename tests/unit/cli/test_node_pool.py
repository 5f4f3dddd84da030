"""--node-pool-label-key means the same in `run`, `plan` and `explain`, and clients follow the scheduler that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import navarch
from navarch.cli.explain import explain
from navarch.cli.plan import plan
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.testing.builders import node, pod
from navarch.views.published_state import Parameters, PublishedState, published_policy
from navarch.views.running_policy import running_policy

POOL = ("--node-pool-label-key", "pool", "--partition-label-value", "a")


def objects() -> list[Any]:
    return [node("ours").cpu("1").label("pool", "a"), node("theirs").cpu("8").label("pool", "b"), pod("x").cpu("2")]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))
    return str(path)


def test_plan_decides_for_nodes_of_the_pool(file: str) -> None:
    binds = [
        json.loads(CliRunner().invoke(plan, ["-f", file, "-o", "json", *pool]).stdout)["cycles"][0]["binds"] for pool in ((), POOL)
    ]
    assert binds == [[{"node": "theirs", "pod": "default/x"}], []]


def test_explain_counts_nodes_of_the_pool(file: str) -> None:
    found = json.loads(CliRunner().invoke(explain, ["x", "-f", file, "-o", "json", *POOL]).stdout)
    assert (found["state"], found["nodes"]["total"]) == ("impossible", 1)
    report = json.loads(CliRunner().invoke(explain, ["node/theirs", "-f", file, "-o", "json"]).stdout)
    assert report["node"] == "theirs"
    gone = CliRunner().invoke(explain, ["node/theirs", "-f", file, *POOL])
    assert gone.exit_code == 1 and "there is no node 'theirs'" in gone.output


@pytest.mark.parametrize("command", [plan, explain])
def test_a_value_without_its_label_is_refused(command: Any, file: str) -> None:
    name = ["x"] if command is explain else []
    found = CliRunner().invoke(command, [*name, "-f", file, "--partition-label-value", "a"])
    assert found.exit_code == 2 and "expected --node-pool-label-key beside it" in found.output


def test_the_functions_take_it() -> None:
    assert not navarch.plan(objects(), node_pool_label_key="pool", partition_label_value="a").binds
    assert navarch.explain(objects(), "x", node_pool_label_key="pool", partition_label_value="b").cause.code == "Starts"
    with pytest.raises(ValueError, match="partition_label_value: expected node_pool_label_key beside it"):
        navarch.plan(objects(), partition_label_value="a")


def test_a_pool_that_the_user_names_goes_before_that_of_the_running_scheduler() -> None:
    policy = published_policy(read_policy("navarch", installed()))
    parameters = Parameters(node_pool_label_key="pool", partition_label_value="a")
    running = running_policy(None, PublishedState("1", ["navarch"], policy, parameters, [], "me", ""), installed())
    assert running.node_pool("", "") == ("pool", "a")
    assert running.node_pool("other", "") == ("other", "")
    assert (running.settings().node_pool_key, running.settings().node_pool) == ("pool", "a")
