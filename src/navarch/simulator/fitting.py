"""Which jobs of a trace a cluster could ever run: the others are left out and reported.

A job is left out if its queue has no nodes where queues have nodes of their own, or if its pods do not fit the nodes that they may
use even when those are empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from navarch.model.spec import NodeSpec
from navarch.simulator.jobs import GPU, GPU_TYPE, PodSet, TraceJob

OTHER_CLUSTER = "no nodes for their queue"
TOO_LARGE = "larger than the cluster"


class Fitting:
    """Passes jobs on that may run, with the node selector of their queue. `left_out` counts the rest by reason."""

    def __init__(self, nodes: Sequence[NodeSpec], partition: str = "") -> None:
        self._nodes = nodes
        self._partition = partition
        self._queues = {node.labels.get(partition, "") for node in nodes} if partition else set()
        self._pods: dict[tuple[str, tuple[PodSet, ...]], tuple[PodSet, ...]] = {}
        self._fits: dict[tuple[PodSet, ...], bool] = {}
        self.left_out: Counter[str] = Counter()

    def jobs(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        for job in jobs:
            if self._partition:
                if job.queue not in self._queues:
                    self.left_out[OTHER_CLUSTER] += 1
                    continue
                job = replace(job, pods=self._selecting(job))
            if self._fit(job.pods):
                yield job
            else:
                self.left_out[TOO_LARGE] += 1

    def _selecting(self, job: TraceJob) -> tuple[PodSet, ...]:
        key = (job.queue, job.pods)
        found = self._pods.get(key)
        if found is None:
            selector = ((self._partition, job.queue),)
            found = self._pods[key] = tuple(replace(each, node_selector=(*each.node_selector, *selector)) for each in job.pods)
        return found

    def _fit(self, pods: tuple[PodSet, ...]) -> bool:
        found = self._fits.get(pods)
        if found is None:
            found = self._fits[pods] = all(self._slots(each) >= each.count for each in pods) and self._sums_fit(pods)
        return found

    def _slots(self, pods: PodSet) -> int:
        """How many such pods the empty nodes take."""
        return sum(min(have // asked for have, asked in _amounts(pods, node)) for node in self._nodes if _may_use(pods, node))

    def _sums_fit(self, pods: tuple[PodSet, ...]) -> bool:
        usable = [node for node in self._nodes if any(_may_use(each, node) for each in pods)]
        gpus = sum(dict(node.allocatable).get(GPU, 0) for node in usable)
        return sum(each.count * each.gpu_amount for each in pods) * 1000 <= gpus


def _may_use(pods: PodSet, node: NodeSpec) -> bool:
    if any(node.labels.get(name) != value for name, value in pods.node_selector):
        return False
    return not pods.gpu_types or node.labels.get(GPU_TYPE) in pods.gpu_types


def _amounts(pods: PodSet, node: NodeSpec) -> list[tuple[int, int]]:
    """(what the node has, what a pod asks) for each resource that it asks for, and one pod."""
    have = dict(node.allocatable)
    asked = (("cpu", pods.cpu), ("memory", pods.memory), (GPU, 1000 * pods.gpus + pods.gpu_milli), ("pods", 1))
    return [(have.get(name, 0), amount) for name, amount in asked if amount]
