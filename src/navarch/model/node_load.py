"""The load of nodes as a metrics server reports it: objects of the cluster, and columns over the nodes of a snapshot.

The shell that fetches the figures puts one `NodeLoad` for each node into the cluster. So a snapshot holds them, and a recorded cycle
replays with them. Rules read `load_columns`, which is computed again only when a figure or a node changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from navarch.model.cluster import Cluster
from navarch.model.resources import FloatArray
from navarch.model.snapshot import Snapshot

NODE_LOAD: Final = "NodeLoad"
"""The kind of these objects. The name is that of the node."""
NEVER: Final = -math.inf


class NodeLoad(msgspec.Struct, frozen=True):
    """Average use of a node in percent of its capacity, by the period that it covers ("10m"). `at`: when it was measured, in seconds
    since the epoch."""

    cpu: Mapping[str, float]
    memory: Mapping[str, float]
    at: float


class LoadColumns(msgspec.Struct, frozen=True):
    percent: FloatArray
    """(2, nodes): cpu and memory in percent; 0 where there is no figure for the period."""
    at: FloatArray
    """(nodes,): when the figures of the node were measured; `NEVER` without figures."""


def load_columns(snapshot: Snapshot, period: str) -> LoadColumns:
    """The figures for one period, in the order of the nodes. Read only; kept until a figure or a node changes."""
    key = ("node load", period)
    names = snapshot.nodes.names
    held: tuple[int, list[str], LoadColumns] | None = snapshot.memo.get(key)
    version = snapshot.versions.get(NODE_LOAD, 0)
    if held is not None and held[0] == version and held[1] is names:
        return held[2]
    loads: Mapping[tuple[str, str], NodeLoad] = snapshot.objects.get(NODE_LOAD, {})
    percent: FloatArray = np.zeros((2, len(names)))
    at: FloatArray = np.full(len(names), NEVER)
    for row, name in enumerate(names):
        load = loads.get(("", name))
        if load is not None:
            percent[0, row], percent[1, row], at[row] = load.cpu.get(period, 0.0), load.memory.get(period, 0.0), load.at
    percent.flags.writeable = at.flags.writeable = False
    found = LoadColumns(percent, at)
    snapshot.memo[key] = (version, names, found)
    return found


def put_loads(cluster: Cluster, loads: Mapping[str, NodeLoad]) -> bool:
    """Make these the figures of the cluster. Returns whether any figure changed; the moment of a measurement alone is no change."""
    held: Mapping[tuple[str, str], NodeLoad] = cluster.objects.get(NODE_LOAD, {})
    changed = False
    for _, node in sorted(held):
        if node not in loads:
            cluster.remove_object(NODE_LOAD, "", node)
            changed = True
    for node, load in sorted(loads.items()):
        before = held.get(("", node))
        if before != load:
            cluster.put_object(NODE_LOAD, "", node, load)
            changed = changed or before is None or (before.cpu, before.memory) != (load.cpu, load.memory)
    return changed
