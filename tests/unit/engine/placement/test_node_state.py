"""The columns of nodes that plugins see are read-only; the session's methods change what they show."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds.plugin_session import World

from navarch.engine.placement.node_state import NodeState

COLUMNS = ("allocatable", "used", "releasing", "pipelined", "requested", "scoring")


def state() -> NodeState:
    return NodeState(World().node("n", cpu=4).node("m", cpu=8).cluster.snapshot().nodes)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_cannot_be_written(name: str) -> None:
    column = getattr(state(), name)
    with pytest.raises(ValueError, match="read-only"):
        column[:, 0] += 1


def test_placements_show_in_the_columns() -> None:
    nodes = state()
    request, footprint = np.full(len(nodes.used), 3, dtype=np.int64), np.ones(2, dtype=np.int64)
    nodes.place(np.array([1], dtype=np.intp), np.array([2]), request, footprint, 1, pipelined=False)
    assert (nodes.used[0].tolist(), nodes.requested[0].tolist(), nodes.scoring[0].tolist()) == ([0, 6], [0, 6], [0, 2])
    nodes.release(1, request, footprint, 1)
    assert (nodes.releasing[0].tolist(), nodes.requested[0].tolist()) == ([0, 3], [0, 3])
    nodes.stop_releasing(1, request)
    nodes.count_devices(0, 1, used=1, releasing=2, pipelined=4)
    assert [column[0, 1] for column in (nodes.used, nodes.releasing, nodes.pipelined)] == [7, 2, 4]
