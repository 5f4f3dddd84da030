"""Type pressure: which GPU types are wanted by pods that take no other, and should be left to them by pods that can choose.

    pressure of a type = GPUs of that type that typical pods would ask for, if they filled the cluster, over those there are; at most 1

A pod that takes any of several types asks for each by its share of the GPUs of these types. A node counts against a pod by how much
the pressure of its type is above the least pressure among the types that the pod may use, so that a pod without a choice sees no
difference. The pressure fades as the cluster fills: near the end, to leave no gap is worth more than to keep a choice open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.model.gpus import GPU_RESOURCES
from navarch.model.resources import FloatArray, IntArray
from navarch.model.spec import NodeSpec
from navarch.plugins.fragmentation.typical_pods import PodKind, TypicalPod

NO_TYPE = ""


class GpuTypes:
    """The GPU type of every node, and how many thousandths of GPUs each type has. Depends on the nodes alone."""

    def __init__(self, specs: Sequence[NodeSpec], label: str) -> None:
        texts = [spec.labels.get(label, NO_TYPE) for spec in specs]
        self.names: list[str] = sorted({NO_TYPE, *texts})
        number = {name: i for i, name in enumerate(self.names)}
        self.of_node: IntArray = np.array([number[text] for text in texts], dtype=np.int64)
        gpus = np.array([_gpus(spec) for spec in specs], dtype=np.int64)
        self.capacity: IntArray = np.bincount(self.of_node, weights=gpus, minlength=len(self.names)).astype(np.int64)

    def allowed(self, kinds: Sequence[PodKind]) -> FloatArray:
        """(types, K) of 0 and 1: which types each kind takes."""
        rows = [[not kind.types or name in kind.types for kind in kinds] for name in self.names]
        return np.array(rows, dtype=np.float64).reshape(len(self.names), len(kinds))

    def pressure(self, pods: Sequence[TypicalPod]) -> FloatArray:
        """(types,), 0 to 1; where a type has no GPUs, 0."""
        wanted = np.array([pod.weight * pod.kind.gpu_total for pod in pods])
        total = wanted.sum()
        capacity = self.capacity.astype(np.float64)
        if not total or not capacity.any():
            return np.zeros(len(self.names))
        typed = np.array([bool(pod.kind.types) for pod in pods])
        shares = self.allowed([pod.kind for pod in pods]) * capacity[:, None]
        sums = shares.sum(axis=0)
        shares /= np.where(sums > 0, sums, 1.0)
        demand = (shares * (wanted * typed)).sum(axis=1) * (capacity.sum() / total)
        out: FloatArray = np.minimum(np.divide(demand, capacity, out=np.zeros_like(demand), where=capacity > 0), 1.0)
        return out

    def above_least(self, pressure: FloatArray, types: tuple[str, ...]) -> FloatArray:
        """(types,): the pressure above the least one among types that have GPUs and that a pod with these types may use."""
        usable = (self.capacity > 0) & np.array([not types or name in types for name in self.names])
        least = float(pressure[usable].min()) if usable.any() else 0.0
        return pressure - least


def _gpus(spec: NodeSpec) -> int:
    amounts = dict(spec.allocatable)
    return sum(amounts.get(name, 0) for name in GPU_RESOURCES)
