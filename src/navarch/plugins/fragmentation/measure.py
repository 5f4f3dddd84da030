"""How much of a node's free GPUs typical pods could not use, and what its remnants are worth.

    F = sum over typical pods of weight * (free thousandths that the pod could not use)

A pod without GPU uses none. A pod that does not fit (too few GPUs with enough free, too little cpu, wrong type) could use none.
For a pod that fits, the GPUs with less free than it asks for are lost. That is FGD ("Beware of fragmentation", ATC 2023). Two terms
are added, each with a weight that may be 0:

- `cpu_limit`: of what is left, the part counts for which cpu suffices if only pods of this kind came. FGD asks about one pod.
- `remnants`: the worth of what is free (`remnants`), subtracted, since it is good to have.

All of it is sums over devices of figures that depend on a device's free thousandths: a table of 1,001 rows, gathered and added up.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.plugins.fragmentation.remnants import remnant_worth
from navarch.plugins.fragmentation.typical_pods import WHOLE, TypicalPod

Sums = npt.NDArray[np.float64]
"""(..., 3K + 1): per typical pod with GPUs what it could use, its copies, GPUs with enough free; then the worth of remnants."""


class Measure:
    def __init__(self, pods: tuple[TypicalPod, ...], cpu_limit: float, remnants: float) -> None:
        self.pods = pods
        with_gpu = [pod for pod in pods if pod.kind.gpu_total]
        self.kinds = [pod.kind for pod in with_gpu]
        self.weight: FloatArray = np.array([pod.weight for pod in with_gpu])
        self.cpu_limit = cpu_limit
        self.remnants = remnants
        size = self._size = len(with_gpu)
        self._cpu: IntArray = np.array([kind.cpu for kind in self.kinds], dtype=np.int64)
        self._gpus: IntArray = np.array([kind.gpus for kind in self.kinds], dtype=np.int64)
        milli: IntArray = np.array([kind.gpu_milli for kind in self.kinds], dtype=np.int64)
        free = np.arange(WHOLE + 1)[:, None]
        enough = free >= milli
        self.table: FloatArray = np.zeros((WHOLE + 1, 3 * size + 1))
        self.table[:, :size] = np.where(enough, free, 0)
        self.table[:, size : 2 * size] = np.where(self._gpus == 1, free // np.maximum(milli, 1), enough)
        self.table[:, 2 * size : -1] = enough
        if remnants:
            self.table[:, -1] = remnant_worth(pods)

    def sums(self, whole: IntArray, shared: IntArray) -> Sums:
        """(M, 3K + 1) for nodes with so many whole GPUs free and (M, S) thousandths free on shared ones."""
        out: Sums = whole[:, None] * self.table[WHOLE]
        for slot in range(shared.shape[1]):
            out += self.table[shared[:, slot]]
        return out

    def loss(self, sums: Sums, cpu: IntArray, total: IntArray, allowed: BoolArray) -> FloatArray:
        """What is lost on nodes with these sums, in thousandths. `total`: free thousandths; `allowed`: (..., K), by type.

        Leading dimensions broadcast: options of a node are a further axis of `sums`."""
        size = self._size
        usable, copies, enough = sums[..., :size], sums[..., size : 2 * size], sums[..., 2 * size : -1]
        fits = (enough >= self._gpus) & (cpu[..., None] >= self._cpu) & allowed
        used = np.where(fits, usable, 0.0)
        if self.cpu_limit:
            by_cpu = cpu[..., None] // np.maximum(self._cpu, 1)
            by_gpu = copies // self._gpus
            part = np.minimum(by_cpu / np.maximum(by_gpu, 1), 1.0)
            used *= 1 - self.cpu_limit + self.cpu_limit * part
        used *= self.weight
        out: FloatArray = total - used.sum(axis=-1)  # not by BLAS: its rounding depends on how many nodes are asked about
        if self.remnants:
            out -= self.remnants * WHOLE * sums[..., -1]
        return out

    @cached_property
    def usual_loss(self) -> FloatArray:
        """(1001,): by how much the worth of remnants falls at least where a pod takes so many thousandths of one GPU."""
        worth = self.table[:, -1]
        least = [(worth[milli:] - worth[: WHOLE + 1 - milli]).min() for milli in range(WHOLE + 1)]
        return np.array(least) * (self.remnants * WHOLE)


@lru_cache(maxsize=16)
def measure_of(pods: tuple[TypicalPod, ...], cpu_limit: float, remnants: float) -> Measure:
    """One measure for equal typical pods, so that cycles share its tables."""
    return Measure(pods, cpu_limit, remnants)
