"""How much of what is free is of no use to the pods that come: free GPUs on nodes where the pod does not fit, averaged over pods.

The pods are those that arrived so far, by the GPUs that each asks for. One look at the cluster is a pass over its GPU nodes for each
distinct size; it is taken once an hour of virtual time.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from navarch.model.cluster import Cluster
from navarch.simulator.jobs import GPU, TraceJob

EVERY = 3600.0
"""Seconds between two looks."""


class FragmentationProbe:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods: Counter[int] = Counter()
        """Thousandths of a GPU -> pods that asked for so many."""
        self._next = -np.inf

    def arrived(self, job: TraceJob) -> None:
        for each in job.pods:
            milli = 1000 * each.gpus + each.gpu_milli
            if milli:
                self._pods[milli] += each.count

    def is_due(self, now: float) -> bool:
        return now >= self._next

    def look(self, now: float) -> float:
        """GPUs that are free and of no use."""
        self._next = now + EVERY
        cluster = self._cluster
        dim = cluster.space.names.index(GPU) if GPU in cluster.space.names else None
        if dim is None or not self._pods:
            return 0.0
        alive = cluster.nodes.alive
        free = np.where(alive, cluster.nodes.allocatable[dim] - cluster.nodes.used[dim], 0).clip(0)
        total = sum(self._pods.values())
        useless = sum(count * int(free[free < milli].sum()) for milli, count in self._pods.items())
        return useless / total / 1000
