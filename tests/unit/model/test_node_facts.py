"""Facts about nodes are read once, and again as soon as any node is another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from navarch.model.cluster import Cluster
from navarch.model.node_facts import gpu_memories, node_column, node_fact, nodes_with_label, usable_nodes
from navarch.model.spec import NodeSpec


def cluster(count: int = 3) -> Cluster:
    made = Cluster()
    for i in range(count):
        made.put_node(NodeSpec(f"n{i}", allocatable=(("cpu", 1000),), labels={"kind": "a" if i else "b"}))
    return made


@pytest.mark.parametrize(
    "change",
    [
        NodeSpec("n0", allocatable=(("cpu", 2000),), labels={"kind": "b"}),
        NodeSpec("n0", allocatable=(("cpu", 1000),), labels={"kind": "c"}),
        NodeSpec("new"),
        None,
    ],
)
def test_a_fact_is_read_once_until_a_node_comes_goes_or_changes_in_anything(change: NodeSpec | None) -> None:
    made, asked = cluster(), []

    def read(specs: Sequence[NodeSpec]) -> list[NodeSpec]:
        asked.append(len(specs))
        return list(specs)

    for _ in range(3):
        node_fact(made.snapshot(), "all", read)
    assert asked == [3]
    if change is not None:
        made.put_node(change)
    else:
        made.remove_node("n0")
    snapshot = made.snapshot()
    assert node_fact(snapshot, "all", read) == snapshot.nodes.specs
    assert len(asked) == 2


def test_a_column_reads_only_the_nodes_that_changed() -> None:
    made, asked = cluster(), []

    def read(spec: NodeSpec) -> int:
        asked.append(spec.name)
        return len(spec.labels)

    before = node_column(made.snapshot(), "labels", read, np.int64)
    assert asked == ["n0", "n1", "n2"]
    made.put_node(NodeSpec("n1", labels={"a": "1", "b": "2", "c": "3"}))
    after = node_column(made.snapshot(), "labels", read, np.int64)
    assert asked == ["n0", "n1", "n2", "n1"]
    assert after.tolist() == [before[0], 3, before[2]]
    made.remove_node("n0")
    assert node_column(made.snapshot(), "labels", read, np.int64).tolist() == after[1:].tolist()


def test_an_older_snapshot_gets_what_holds_for_its_own_nodes() -> None:
    made = cluster()
    older = made.snapshot()
    made.put_node(NodeSpec("n0", unschedulable=True))
    newer = made.snapshot()
    assert [usable_nodes(each).tolist() for each in (newer, older, newer)] == [[False, True, True], [True] * 3, [False, True, True]]


def test_kept_columns_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        gpu_memories(cluster().snapshot())[0] = 1


def test_nodes_are_found_by_a_label_or_by_its_value() -> None:
    snapshot = cluster().snapshot()
    assert np.flatnonzero(nodes_with_label(snapshot, "kind", "a")).tolist() == [1, 2]
    assert nodes_with_label(snapshot, "kind").all() and not nodes_with_label(snapshot, "other").any()
