"""What is free on nodes, GPU by GPU, as columns: cpu, whole GPUs, and the free thousandths of every GPU that pods share.

Free is what will be free: pods that leave are out, promised ones are in. A shared GPU that all its users leave counts as whole, as the
engine's own accounts have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.resources import CPU, IntArray
from navarch.plugins.fragmentation.typical_pods import WHOLE

if TYPE_CHECKING:
    from navarch.engine.session import Session


class FreeGpus(Struct, frozen=True):
    cpu: IntArray
    """(M,), thousandths of cores."""
    whole: IntArray
    """(M,), GPUs without a user."""
    shared: IntArray
    """(M, slots), free thousandths; 0 where a slot stands for no GPU."""

    @property
    def total(self) -> IntArray:
        """(M,): free thousandths of all GPUs."""
        out: IntArray = self.whole * WHOLE + self.shared.sum(axis=1)
        return out

    def columns(self) -> IntArray:
        """(2 + slots, M): all figures, to tell nodes apart whose answers may differ."""
        return np.vstack((self.cpu, self.whole, self.shared.T))


def free_gpus(session: Session, at: Figures) -> FreeGpus:
    """For every column of `at`, those that ladders imagine included."""
    names = session.snapshot.resource_names
    dims = [names.index(name) for name in GPU_RESOURCES if name in names]
    free = at.future_idle
    cpu, size = np.maximum(free[CPU], 0), free.shape[1]
    whole: IntArray = np.maximum(free[dims].sum(axis=0) // WHOLE, 0) if dims else np.zeros(size, dtype=np.int64)
    devices = session.devices
    if devices is None or not devices.any_shared:
        return FreeGpus(cpu, whole, np.zeros((size, 0), dtype=np.int64))
    _ = at.added  # equal figures need not mean equal GPUs: an engine that keeps answers by figures learns it from this
    used = devices.used[at.rows] - devices.releasing[at.rows]
    memory = devices.memory[at.rows][:, None]
    shared: IntArray = np.where(used > 0, np.clip((memory - used) * WHOLE // memory, 0, WHOLE), 0)
    return FreeGpus(cpu, whole, shared)
