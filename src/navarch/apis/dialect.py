"""What an API defines: its kinds, and the labels and annotations that its users write on pods. `registry` lists the dialects.

A reader turns one object into a spec of the model (`navarch.model.spec`), or raises `ObjectError`. It reads only the object and the
settings, so files and the live watch share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from navarch.apis.core.objects import KubeObject
from navarch.apis.core.pod_objects import Pod
from navarch.apis.operators.workload import PodMaker, WorkloadSpec
from navarch.model.spec import (
    DeviceRequest,
    DisruptionBudgetSpec,
    JobSpec,
    Labels,
    NamespaceSpec,
    NodeSpec,
    ObjectSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    Requests,
)

Spec = (
    JobSpec
    | QueueSpec
    | NodeSpec
    | PriorityClassSpec
    | DisruptionBudgetSpec
    | QuotaSpec
    | NamespaceSpec
    | ObjectSpec
    | WorkloadSpec
    | PodMaker
)


class Settings(Struct, frozen=True):
    """Choices that change what an object means. Defaults are Navarch's own; a policy's `compat` may change some."""

    scheduler_names: frozenset[str] | None = None
    """Pending pods that name another scheduler are not ours; None: all are."""
    namespace_as_queue: bool = False
    """A job that names no queue belongs to the queue of its namespace."""
    default_queue: str = "default"
    shadow_groups: bool = True
    """Make a group in memory for pods that have none. False: only where a disruption budget has their controller."""
    imply_queues: bool = True
    """The queue `default` exists even without an object (`root` exists wherever there are Volcano Queues)."""
    node_pool_key: str = ""
    """The label that divides nodes, groups and queues among schedulers; empty: they are not divided."""
    node_pool: str = ""
    """The value of that label on our objects; empty: our objects do not have the label."""
    node_labels: frozenset[tuple[str, str]] = frozenset()
    """Nodes with none of these labels are not ours; empty: all are."""
    composite_groups: bool = False
    """Groups of groups (CompositePodGroup) are started as their policy says."""
    queue_label: str = "kai.scheduler/queue"
    """The label of a pod, or of its owner, that names the queue of the group that is made for it."""

    def is_in_pool(self, labels: Labels) -> bool:
        """Whether a node, group or queue with these labels is ours."""
        return not self.node_pool_key or labels.get(self.node_pool_key, "") == self.node_pool

    def takes_node(self, labels: Labels) -> bool:
        """Whether a node with these labels is ours."""
        return self.is_in_pool(labels) and (not self.node_labels or any(each in self.node_labels for each in labels.items()))


class Kind(Struct, frozen=True):
    """A kind we understand: how to decode it, and what it means."""

    api_versions: tuple[str, ...]
    kind: str
    plural: str
    struct: type[KubeObject]
    read: Callable[[Any, Settings], Spec]
    namespaced: bool = True


class Dialect(Struct, frozen=True):
    """`group_of` returns the name of the pod's group in its namespace; empty if this dialect finds none. The other functions read
    labels and annotations of a pod. A dialect leaves out the functions that it does not need."""

    name: str
    kinds: tuple[Kind, ...] = ()
    kept: tuple[str, ...] = ()
    """Kinds that plugins read as decoded manifests."""
    group_of: Callable[[Pod], str] | None = None
    queue_of: Callable[[Pod], str] | None = None
    sub_group_of: Callable[[Pod], str] | None = None
    devices_of: Callable[[Pod, bool], DeviceRequest | None] | None = None
    gpu_groups_of: Callable[[Pod], tuple[str, ...]] | None = None
    holds_shared_gpu: Callable[[Pod], bool] | None = None
    """Whether the pod only reserves a GPU that other pods share. Those pods are counted on the GPU; the request of this one is not."""
    hints_of: Callable[[Pod], tuple[tuple[str, str], ...]] | None = None
    numa_placement_of: Callable[[Pod], tuple[tuple[str, Requests], ...]] | None = None
