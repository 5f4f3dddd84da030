"""Columns derived from node specs alone, computed for all nodes and cached until a node changes.

A snapshot's list of node specs is the same object while no node changes (`cluster.Cluster`), so its identity is the cache key.
Without the cache every cycle would loop over thousands of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from navarch.model.gpus import gpu_memory, node_is_fit
from navarch.model.resources import BoolArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeSpec

V = TypeVar("V")


def of_nodes(snapshot: Snapshot, name: Hashable, read: Callable[[Sequence[NodeSpec]], V]) -> V:
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


def gpu_memories(snapshot: Snapshot) -> IntArray:
    """MiB of each GPU, node by node."""
    return of_nodes(snapshot, "gpu memory", lambda specs: np.array([gpu_memory(spec) for spec in specs], dtype=np.int64))


GPU_COUNT_LABEL = "nvidia.com/gpu.count"


def labelled_gpu_counts(snapshot: Snapshot) -> IntArray:
    """GPUs of each node by its label, in thousandths; 0 where it says nothing."""

    def read(specs: Sequence[NodeSpec]) -> IntArray:
        texts = (spec.labels.get(GPU_COUNT_LABEL, "") for spec in specs)
        return np.array([1000 * int(text) if text.isdecimal() else 0 for text in texts], dtype=np.int64)

    return of_nodes(snapshot, GPU_COUNT_LABEL, read)


def fit_nodes(snapshot: Snapshot) -> BoolArray:
    """Nodes whose conditions say that they are ready for work."""
    return of_nodes(snapshot, "fit", lambda specs: np.array([node_is_fit(spec) for spec in specs], dtype=bool))


def labelled(snapshot: Snapshot, label: str, value: str | None = None) -> BoolArray:
    """Nodes with the label, or with just this value of it."""
    return of_nodes(
        snapshot,
        ("labelled", label, value),
        lambda specs: np.array(
            [label in spec.labels if value is None else spec.labels.get(label) == value for spec in specs], dtype=bool
        ),
    )
