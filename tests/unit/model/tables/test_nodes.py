"""The node table: figures by change, rows that wait for their node, versions that tell static answers apart."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from navarch.model.resources import BOUND, ResourceSpace, requests_from
from navarch.model.spec import NodeSpec, Taint
from navarch.model.tables.nodes import NodeTable

NODE = NodeSpec("n", allocatable=requests_from({"cpu": 4, "memory": "8Gi", "pods": 10}))
REQUEST = np.array([1000, 1 << 30, 1])


def table() -> NodeTable:
    return NodeTable(ResourceSpace())


def test_pods_may_arrive_before_their_node() -> None:
    nodes = table()
    row = nodes.row_for("n")
    nodes.occupy(row, REQUEST, (1000, 1 << 30), 1, releasing=False)
    assert not nodes.alive[row]
    assert nodes.put(NODE) == row
    assert nodes.alive[row]
    assert nodes.used[:, row].tolist() == REQUEST.tolist()


def test_a_node_that_goes_keeps_its_row_until_its_last_pod_has_gone() -> None:
    nodes = table()
    row = nodes.put(NODE)
    nodes.occupy(row, REQUEST, (1000, 1 << 30), 1, releasing=False)
    nodes.remove("n")
    assert nodes.put(replace(NODE, name="other")) != row
    nodes.occupy(row, REQUEST, (1000, 1 << 30), -1, releasing=False)
    assert nodes.put(replace(NODE, name="third")) == row
    assert not nodes.used[:, row].any()


def test_a_node_that_comes_back_finds_the_pods_that_stayed() -> None:
    nodes = table()
    row = nodes.put(NODE)
    nodes.occupy(row, REQUEST, (0, 0), 1, releasing=True)
    nodes.remove("n")
    assert nodes.put(replace(NODE, allocatable=requests_from({"cpu": 1}))) == row
    assert nodes.releasing[:, row].tolist() == REQUEST.tolist()
    assert nodes.allocatable[:, row].tolist() == [1000, 0, 0], "nothing of what it had before"


def test_removing_an_unknown_node_or_one_that_is_only_awaited_changes_nothing() -> None:
    nodes = table()
    row = nodes.row_for("awaited")
    nodes.occupy(row, REQUEST, (0, 0), 1, releasing=False)
    version = nodes.version
    nodes.remove("awaited")
    nodes.remove("unknown")
    assert nodes.version == version
    assert nodes.used[:, row].tolist() == REQUEST.tolist()


@pytest.mark.parametrize(
    ("changed", "moves"),
    [
        ({"labels": {"a": "b"}}, True),
        ({"taints": (Taint("t"),)}, True),
        ({"unschedulable": True}, True),
        ({"ready": False}, True),
        ({"annotations": {"a": "b"}}, True),
        ({"conditions": (("Ready", "False"),)}, True),
        ({"images": ((("i",), 1),)}, True),
        ({"allocatable": requests_from({"cpu": 1})}, False),
        ({"created": 5.0}, False),
    ],
)
def test_the_version_changes_with_whatever_static_answers_read(changed: dict[str, object], moves: bool) -> None:
    nodes = table()
    nodes.put(NODE)
    version = nodes.version
    nodes.put(replace(NODE, **changed))
    assert (nodes.version != version) == moves


def test_an_equal_node_put_again_changes_nothing() -> None:
    nodes = table()
    nodes.put(NODE)
    version = nodes.version
    nodes.put(replace(NODE))
    assert nodes.version == version


def test_a_resource_learned_late_has_a_column_for_all() -> None:
    nodes = table()
    row = nodes.put(NODE)
    nodes.put(NodeSpec("gpu", allocatable=requests_from({"nvidia.com/gpu": 8})))
    assert nodes.allocatable[3].tolist()[:2] == [0, 8000]
    nodes.occupy(row, np.array([0, 0, 1, 1000]), (0, 0), 1, releasing=False)
    assert nodes.used[3, row] == 1000


def test_a_node_that_claims_everything_still_has_less_than_the_most_that_can_be_asked_for() -> None:
    nodes = table()
    row = nodes.put(NodeSpec("n", allocatable=(("cpu", (1 << 63) - 1),)))
    assert 0 < nodes.allocatable[0, row] < BOUND


def test_many_nodes_keep_their_figures_while_the_table_grows() -> None:
    nodes = table()
    for i in range(50):
        row = nodes.put(NodeSpec(f"n{i}", allocatable=(("cpu", i),)))
        nodes.occupy(row, np.array([i, 0, 1]), (i, i), 1, releasing=bool(i % 2))
    assert nodes.allocatable[0, :50].tolist() == list(range(50))
    assert nodes.used[0, :50].tolist() == list(range(50))
    assert nodes.releasing[2, :50].tolist() == [i % 2 for i in range(50)]
    assert nodes.scoring[1, :50].tolist() == list(range(50))
