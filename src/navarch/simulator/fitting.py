"""Which jobs of a trace a cluster could ever run: the others are left out and reported.

A job is left out if its queue has no nodes where queues have nodes of their own, if no node has the labels or the GPU type that its
pods ask for, or if the pods that it needs to start do not fit the nodes that they may use even when those are empty. A job without an
end is left out too, unless jobs are meant to stay: a simulation with it would not end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from navarch.model.spec import NodeSpec
from navarch.simulator.jobs import GPU, GPU_TYPE, PodSet, TraceJob

OTHER_CLUSTER = "no nodes for their queue"
NO_SUCH_NODE = "no node has the labels or the GPU type that they ask for"
TOO_LARGE = "larger than the cluster"
NO_END = "the trace does not say when they end"


class Fitting:
    """Passes jobs on that may run, with the node selector of their queue. `left_out` counts the rest by reason."""

    def __init__(self, nodes: Sequence[NodeSpec], partition: str = "", *, jobs_stay: bool = False) -> None:
        """`jobs_stay`: jobs need not end."""
        self._nodes = nodes
        self._jobs_stay = jobs_stay
        self._partition = partition
        self._queues = {node.labels.get(partition, "") for node in nodes} if partition else set()
        self._pods: dict[tuple[str, tuple[PodSet, ...]], tuple[PodSet, ...]] = {}
        self._known: dict[tuple[int, tuple[PodSet, ...]], str] = {}
        """(pods that a job needs to start, all its pods) -> why it is left out; empty: it fits."""
        self.left_out: Counter[str] = Counter()
        self.first_left_out: dict[str, str] = {}
        """Reason -> the first job left out for it."""

    def jobs(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        for job in jobs:
            if self._partition:
                if job.queue not in self._queues:
                    self._leave_out(job, OTHER_CLUSTER)
                    continue
                job = replace(job, pods=self._selecting(job))
            wrong = self._wrong_with(job)
            if wrong:
                self._leave_out(job, wrong)
            else:
                yield job

    def _leave_out(self, job: TraceJob, reason: str) -> None:
        self.left_out[reason] += 1
        self.first_left_out.setdefault(reason, job.name)

    def _selecting(self, job: TraceJob) -> tuple[PodSet, ...]:
        key = (job.queue, job.pods)
        found = self._pods.get(key)
        if found is None:
            selector = ((self._partition, job.queue),)
            found = self._pods[key] = tuple(replace(each, node_selector=(*each.node_selector, *selector)) for each in job.pods)
        return found

    def _wrong_with(self, job: TraceJob) -> str:
        """Why the job is left out; empty: it is not."""
        if job.duration == math.inf and job.walltime is None and not self._jobs_stay:
            return NO_END
        key = (job.needed, job.pods)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._misfit(*key)
        return found

    def _misfit(self, needed: int, pods: tuple[PodSet, ...]) -> str:
        if not all(any(_may_use(each, node) for node in self._nodes) for each in pods):
            return NO_SUCH_NODE
        if needed < sum(each.count for each in pods):  # an elastic job runs with fewer, in any mixture
            fits = sum(min(self._slots(each), each.count) for each in pods) >= needed
        else:
            fits = all(self._slots(each) >= each.count for each in pods)
        return "" if fits and self._sums_fit(needed, pods) else TOO_LARGE

    def _slots(self, pods: PodSet) -> int:
        """How many such pods the empty nodes take."""
        return sum(min(have // asked for have, asked in _amounts(pods, node)) for node in self._nodes if _may_use(pods, node))

    def _sums_fit(self, needed: int, pods: tuple[PodSet, ...]) -> bool:
        """Whether the nodes have together what the pods that ask for least ask for, each resource for itself."""
        usable = [dict(node.allocatable) for node in self._nodes if any(_may_use(each, node) for each in pods)]
        for name in ("cpu", "memory", GPU, "pods"):
            have, left = sum(each.get(name, 0) for each in usable), needed
            for amount, count in sorted((_asked(each)[name], each.count) for each in pods):
                have -= min(left, count) * amount
                left -= min(left, count)
            if have < 0:
                return False
        return True


def _may_use(pods: PodSet, node: NodeSpec) -> bool:
    if any(node.labels.get(name) != value for name, value in pods.node_selector):
        return False
    return not pods.gpu_types or node.labels.get(GPU_TYPE) in pods.gpu_types


def _asked(pods: PodSet) -> dict[str, int]:
    """What a pod asks for, and one pod."""
    return {"cpu": pods.cpu, "memory": pods.memory, GPU: 1000 * pods.gpus + pods.gpu_milli, "pods": 1}


def _amounts(pods: PodSet, node: NodeSpec) -> list[tuple[int, int]]:
    """(what the node has, what a pod asks) for each resource that it asks for."""
    have = dict(node.allocatable)
    return [(have.get(name, 0), amount) for name, amount in _asked(pods).items() if amount]
