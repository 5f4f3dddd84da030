"""Jobs as traces tell them: when a job came, what it asks for, and how long it runs.

A trace reader yields `TraceJob` values in order of submission. `manifests` turns one into the Kubernetes objects that a user would
have written, so that simulated jobs are read as any others are (`workload`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from navarch.ingest.expected_duration import EXPECTED_DURATION

GROUP_NAME = "scheduling.k8s.io/group-name"
VOLCANO = "scheduling.volcano.sh/v1beta1"
GPU = "nvidia.com/gpu"
GPU_FRACTION = "gpu-fraction"
GPU_TYPE = "nvidia.com/gpu.product"
SHARING_SCHEDULER = "kai-scheduler"
"""The scheduler in whose words pods ask for a part of a GPU: the annotation means nothing on pods that name another one."""


class PodSet(Struct, frozen=True):
    """Equal pods of one job."""

    count: int = 1
    cpu: int = 0
    """Thousandths of a core."""
    memory: int = 0
    """Bytes."""
    gpus: int = 0
    gpu_milli: int = 0
    """Thousandths of one GPU that the pod shares with others; `gpus` is 0 then."""
    gpu_types: tuple[str, ...] = ()
    """Values of the label nvidia.com/gpu.product that will do; empty: any."""
    node_selector: tuple[tuple[str, str], ...] = ()

    @property
    def gpu_amount(self) -> float:
        """GPUs of one pod, a shared one as its part."""
        return self.gpus + self.gpu_milli / 1000


class TraceJob(Struct, frozen=True, kw_only=True):
    """One job of a trace. Times in seconds; `submit` since the epoch."""

    name: str
    submit: float
    duration: float
    """How long it runs once all its pods run."""
    pods: tuple[PodSet, ...]
    queue: str = "default"
    min_pods: int | None = None
    """How many pods it needs to start. Fewer than it has: it is elastic. None: all."""
    priority: int = 0
    walltime: float | None = None
    """It is ended after running so long, done or not."""
    expected: float | None = None
    """How long its owner says that it runs, where nothing ends it then; None: as `walltime` says."""
    checkpoint: float | None = None
    """Seconds of work between checkpoints; None: as the simulation says."""
    user: str = ""
    line: int = 0
    """Where in the trace it was read."""

    @property
    def size(self) -> int:
        return sum(each.count for each in self.pods)

    @property
    def gpus(self) -> float:
        return sum(each.count * each.gpu_amount for each in self.pods)

    @property
    def needed(self) -> int:
        return self.size if self.min_pods is None else self.min_pods


def pod_names(job: TraceJob) -> Iterator[tuple[str, PodSet]]:
    """Its pods by name, in order."""
    number = 0
    for each in job.pods:
        for _ in range(each.count):
            yield f"{job.name}-{number}", each
            number += 1


def manifests(job: TraceJob, expected: float | None = None) -> list[dict[str, Any]]:
    """The job as Kubernetes objects: a PodGroup and its pods. `expected`: how long its owner says that it will run.

    >>> [each["kind"] for each in manifests(TraceJob(name="a", submit=0, duration=60, pods=(PodSet(2, gpus=8),)))]
    ['PodGroup', 'Pod', 'Pod']
    """
    annotations = {} if expected is None else {EXPECTED_DURATION: f"{expected:g}s"}
    group: dict[str, Any] = {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": job.name, "namespace": "default", "annotations": annotations},
        "spec": {"minMember": job.needed, "queue": job.queue},
    }
    if job.priority:
        group["spec"]["priorityClassName"] = priority_class(job.priority)["metadata"]["name"]
    return [group, *(_pod(job, name, each) for name, each in pod_names(job))]


def priority_class(value: int) -> dict[str, Any]:
    """The PriorityClass of jobs with this priority."""
    name = f"priority-{value}" if value >= 0 else f"priority-minus-{-value}"
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _pod(job: TraceJob, name: str, pods: PodSet) -> dict[str, Any]:
    amounts = {"cpu": f"{pods.cpu}m" if pods.cpu else 0, "memory": pods.memory, GPU: pods.gpus}
    requests = {resource: str(amount) for resource, amount in amounts.items() if amount}
    annotations = {GROUP_NAME: job.name}
    if pods.gpu_milli:
        annotations[GPU_FRACTION] = f"{pods.gpu_milli / 1000:g}"
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "job", "resources": {"requests": requests, "limits": requests}}]}
    if pods.gpu_milli:
        spec["schedulerName"] = SHARING_SCHEDULER
    if pods.node_selector:
        spec["nodeSelector"] = dict(pods.node_selector)
    if pods.gpu_types:
        term = {"matchExpressions": [{"key": GPU_TYPE, "operator": "In", "values": list(pods.gpu_types)}]}
        required = {"nodeSelectorTerms": [term]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if job.priority:
        spec["priorityClassName"] = priority_class(job.priority)["metadata"]["name"]
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
