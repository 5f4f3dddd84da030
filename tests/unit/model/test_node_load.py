"""The load of nodes as objects of a cluster and as columns of a snapshot."""

from __future__ import annotations

from navarch.model.cluster import Cluster
from navarch.model.node_load import NEVER, NodeLoad, load_columns, put_loads
from navarch.model.spec import NodeSpec


def cluster(*names: str) -> Cluster:
    found = Cluster()
    for name in names:
        found.put_node(NodeSpec(name))
    return found


def test_columns_are_in_the_order_of_the_nodes() -> None:
    found = cluster("b", "a", "c")
    put_loads(found, {"a": NodeLoad({"10m": 5.0}, {"10m": 6.0}, 1.0), "b": NodeLoad({"5m": 7.0}, {"10m": 8.0}, 2.0)})
    columns = load_columns(found.snapshot(), "10m")
    assert columns.percent.tolist() == [[5.0, 0.0, 0.0], [6.0, 8.0, 0.0]]
    assert columns.at.tolist() == [1.0, 2.0, NEVER]


def test_columns_are_kept_until_a_figure_or_a_node_changes() -> None:
    found = cluster("a")
    put_loads(found, {"a": NodeLoad({"10m": 5.0}, {}, 1.0)})
    first = load_columns(found.snapshot(), "10m")
    assert load_columns(found.snapshot(), "10m") is first
    put_loads(found, {"a": NodeLoad({"10m": 6.0}, {}, 1.0)})
    second = load_columns(found.snapshot(), "10m")
    assert second.percent[0, 0] == 6.0
    found.put_node(NodeSpec("b"))
    assert load_columns(found.snapshot(), "10m").percent.shape == (2, 2)


def test_a_newer_moment_alone_is_no_change_of_load() -> None:
    found = cluster("a", "b")
    load = NodeLoad({"10m": 5.0}, {}, 1.0)
    assert put_loads(found, {"a": load, "b": load})
    assert not put_loads(found, {"a": NodeLoad({"10m": 5.0}, {}, 9.0), "b": load})
    assert load_columns(found.snapshot(), "10m").at.tolist() == [9.0, 1.0]
    assert put_loads(found, {"a": load})
    assert load_columns(found.snapshot(), "10m").at.tolist() == [1.0, NEVER]
