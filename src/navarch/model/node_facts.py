"""Columns derived from node specs alone, computed for all nodes and cached until a node changes.

A snapshot's list of node specs is the same object while no node changes (`cluster.Cluster`), so its identity is the cache key.
Without the cache every cycle would loop over thousands of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_not
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from navarch.model.gpus import gpu_memory
from navarch.model.label_syntax import parse_count
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeSpec

V = TypeVar("V")
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def node_fact(snapshot: Snapshot, name: Hashable, read: Callable[[Sequence[NodeSpec]], V]) -> V:
    """`read(specs)`, cached under `name`. The name must identify everything else that `read` depends on. Later cycles get the same
    value, so it is read only; arrays enforce that."""
    specs, key = snapshot.nodes.specs, ("node facts", name)
    held: tuple[list[NodeSpec], V] | None = snapshot.memo.pop(key, None)
    if held is None or held[0] is not specs:
        held = (specs, read(specs))
        if isinstance(held[1], np.ndarray):
            held[1].flags.writeable = False
    snapshot.memo[key] = held
    return held[1]


def node_column(snapshot: Snapshot, name: Hashable, read: Callable[[NodeSpec], object], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """`read(spec)` of every node as an array, cached as in `node_fact`. When nodes change, only changed specs are read again."""
    specs, key = snapshot.nodes.specs, ("node column", name)
    held: tuple[list[NodeSpec], npt.NDArray[Any]] | None = snapshot.memo.pop(key, None)
    if held is None or len(held[0]) != len(specs):
        held = specs, np.array([read(spec) for spec in specs], dtype=kind)
    elif held[0] is not specs:
        values = held[1].copy()
        changed = np.fromiter(map(is_not, held[0], specs), dtype=bool, count=len(specs))
        for row in np.flatnonzero(changed).tolist():
            values[row] = read(specs[row])
        held = specs, values
    held[1].flags.writeable = False
    snapshot.memo[key] = held
    return held[1]


def gpu_memories(snapshot: Snapshot) -> IntArray:
    """MiB of each GPU, node by node."""
    return node_column(snapshot, "gpu memory", gpu_memory, np.int64)


GPU_COUNT_LABEL = "nvidia.com/gpu.count"


def labelled_gpu_counts(snapshot: Snapshot) -> IntArray:
    """GPUs of each node by its label, in thousandths; 0 without the label."""

    def read(spec: NodeSpec) -> int:
        return 1000 * (parse_count(spec.labels.get(GPU_COUNT_LABEL, "")) or 0)

    return node_column(snapshot, GPU_COUNT_LABEL, read, np.int64)


def node_is_usable(node: NodeSpec) -> bool:
    """Whether the node's conditions let its resources count. An absent condition does."""
    conditions = dict(node.conditions)
    well = all(conditions.get(pressure, "False") == "False" for pressure in _PRESSURES)
    return not node.unschedulable and conditions.get("Ready", "True") == "True" and well


def usable_nodes(snapshot: Snapshot) -> BoolArray:
    """Nodes whose conditions say that they are ready for work."""
    return node_column(snapshot, "usable", node_is_usable, np.bool_)


def nodes_with_label(snapshot: Snapshot, label: str, value: str | None = None) -> BoolArray:
    """Nodes with the label, or with just this value of it."""

    def read(spec: NodeSpec) -> bool:
        return label in spec.labels if value is None else spec.labels.get(label) == value

    return node_column(snapshot, ("label", label, value), read, np.bool_)


def node_capacities(snapshot: Snapshot) -> FloatArray:
    """(2, nodes): millicores and bytes of memory that nodes have, what the system keeps for itself included. A node that reports no
    capacity (in a file) has what it can allocate."""

    def of(name: str) -> Callable[[NodeSpec], float]:
        return lambda spec: float(dict(spec.capacity or spec.allocatable).get(name, 0))

    return np.stack([node_column(snapshot, ("capacity", name), of(name), float) for name in ("cpu", "memory")])
