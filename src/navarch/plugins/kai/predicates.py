"""KAI's filters: node conditions, kinds of GPU, and kube-scheduler's filters.

A pod with whole GPUs needs a node with unsliced GPUs, a pod with MIG slices a node with slices. A request for GPU memory needs a
node that reports its GPU memory. A pod that is larger than every node is refused before any node is filtered, and no eviction
helps it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.placement.shared_devices import ONE, shares_devices
from navarch.engine.plugin import Plugin
from navarch.engine.pod_conditions import obstacle
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session
from navarch.model.gpus import GPU_MEMORY_LABEL, GPU_RESOURCES, mig_gpus
from navarch.model.node_facts import nodes_with_label, usable_nodes
from navarch.model.resources import BoolArray, format_amount
from navarch.model.snapshot import Snapshot
from navarch.model.status import ON_NODE, TaskStatus
from navarch.plugins.kai.amounts import GPU, KaiAmounts, wants_gpu
from navarch.plugins.kai.config_maps import KIND, RULE, lacking
from navarch.plugins.kai.quota_messages import amount as short
from navarch.plugins.predicates.devices.unserved_cards import UnservedCards
from navarch.plugins.predicates.nodes.affinity import NodeAffinity
from navarch.plugins.predicates.nodes.ports import NodePorts
from navarch.plugins.predicates.nodes.taints import TaintToleration
from navarch.plugins.predicates.pods.affinity import InterPodAffinity
from navarch.plugins.predicates.unsupported import Unsupported
from navarch.plugins.predicates.volumes.binding import VolumeBinding

UNSCHEDULABLE: Final = "UnschedulableOnNodePool"
TOO_LARGE: Final = "MaxNodePoolResources"
"""What users know the rule by that a pod must fit some empty node."""
MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
_CHANGES: Final = (Event.NODE_ADDED, Event.NODE_CHANGED)


class KaiPredicates(Plugin):
    """Where pods may go: node conditions, kinds of GPU, and kube-scheduler's filters"""

    name = "predicates"
    dialect = "kai"

    def open(self) -> None:
        self._with_word: dict[int, list[NodeFilter]] = {}
        self._any_lacking = bool(self.session.snapshot.objects.get(KIND))
        self._largest: dict[int, tuple[str, int] | None] = {}

    def close(self) -> None:
        """Set a condition on jobs that wait as a whole, and remove it from placed jobs."""
        for job in self.session.touched_jobs:
            waits = bool(job.counts[TaskStatus.PENDING]) and not job.tree.active
            if waits and job.reasons and job.reasons[0].code != "NotReady":
                job.set_condition(UNSCHEDULABLE, "True", job.reasons[0].code, job.reasons[0].message)
            elif not waits and UNSCHEDULABLE in job.conditions:
                del job.conditions[UNSCHEDULABLE]

    def node_filters(self) -> list[NodeFilter]:
        session, snapshot = self.session, self.session.snapshot
        restricted = [WorkerKind(session)] if session.policy.param("restrictSchedulingNodes") else []
        self._filters: list[NodeFilter] = [
            Unsupported(),
            UnservedCards(session),
            *restricted,
            GpuKind(session),
            LegacySlices(session),
            MemoryKnown(session),
            NodeCondition(snapshot),
            NodePorts(session),
            TaintToleration(snapshot),
            NodeAffinity(snapshot),
            InterPodAffinity(session),
            VolumeBinding(session),
        ]
        return self._filters

    def chunk_refusal(self, job: Job, tasks: Sequence[int]) -> Reason | None:
        """Pods that lack a config map; they are told apart by name, not by class."""
        for task in tasks if self._any_lacking else ():
            found = lacking(self.session, task)
            if found is not None:
                pod = self.session.task(task).key
                text = f"Resources were not found for pod {pod} due to: {_conditions(pod, [(RULE, found.message)])}"
                return Reason(found.code, text, figures=found.figures, undone_by=found.undone_by, cause=found.cause)
        return None

    def pre_predicate(self, task: TaskClass) -> Reason | None:
        found = self._objections(task)
        if not found:
            return None
        text = _conditions(self.session.task(task.task).key, [(rule, reason.message) for rule, reason, _ in found])
        figures = {name: figure for _, reason, _ in found for name, figure in reason.figures.items()}
        undone = tuple(dict.fromkeys(event for _, reason, _ in found for event in reason.undone_by))
        lasting = obstacle(reason for _, reason, _ in found)
        return Reason(found[0][1].code, text, figures=figures, undone_by=undone, cause=lasting.origin if lasting else "")

    def unresolvable_reason(self, task: int) -> Reason | None:
        missing = lacking(self.session, task) if self._any_lacking else None
        found = self._objections(replace(self.session.class_of(task), task=task))
        return missing or next((reason for _, reason, unresolvable in found if unresolvable), None)

    def _objections(self, task: TaskClass) -> list[tuple[str, Reason, bool]]:
        """The rules that refuse the pod before any node is filtered: the rule, its reason, and whether no eviction helps."""
        rejected = [(rule, rule.reject(task)) for rule in self._rejecting(task)]
        found = [(rule.name, word.as_reason(rule.undone_by), word.unresolvable) for rule, word in rejected if word is not None]
        short = self._beyond(task)
        return found if short is None else [*found, (TOO_LARGE, self._too_large(task, *short), True)]

    def _rejecting(self, task: TaskClass) -> list[NodeFilter]:
        """Those of its own filters that have a word on the class before any node is looked at."""
        found = self._with_word.get(task.number)
        if found is None:
            rules = [f for f in self._filters if type(f).reject is not NodeFilter.reject and f.applies(task)]
            found = self._with_word[task.number] = rules
        return found

    def _beyond(self, task: TaskClass) -> tuple[str, int] | None:
        """A resource that the class requests more of than any empty node has, and the largest amount on a node."""
        if task.number not in self._largest:
            self._largest[task.number] = self._lacking_everywhere(task)
        return self._largest[task.number]

    def _lacking_everywhere(self, task: TaskClass) -> tuple[str, int] | None:
        nodes, names = self.session.nodes, self.session.snapshot.resource_names
        if not len(nodes):
            return None
        largest = nodes.allocatable.max(axis=1)
        for dim in np.flatnonzero(task.request > largest).tolist():
            if dim not in self.session.claimable_dims:
                return names[dim], int(largest[dim])
        amounts = self.session.shared(KaiAmounts)
        most = max(amounts.sliced_gpus().values(), default=0)
        claimed = sum(amounts.claimed_gpus(task.namespace, claim) for _, claim in task.shape.claims)
        if claimed > most:
            return GPU_RESOURCES[0], most * ONE
        whole = [names.index(name) for name in GPU_RESOURCES if name in names]
        most_gpus = max([most * ONE, *(int(largest[dim]) for dim in whole)])
        parts = task.shape.devices
        return (GPU_RESOURCES[0], most_gpus) if parts is not None and parts.count * parts.fraction > most_gpus else None

    def _too_large(self, task: TaskClass, name: str, most: int) -> Reason:
        pod, pool = self.session.task(task.task).key, str(self.session.policy.param("partitionLabelValue")) or "default"
        asked = ", ".join(f"{what}: {amount}" for what, amount in self._asked(task))
        text = f"The pod {pod} requires {asked}. "
        if most:
            amount = _figure(name, most)
            text += f"Max {_known(name)} resources available in a single node in the {pool} node-pool is topped at {amount}"
        else:
            text += f"No node in the {pool} node-pool has {_known(name)} resources"
        figures: dict[str, int | float | str] = {"resource": name, "most on a node": format_amount(name, most)}
        return Reason("PodSchedulingErrors", text, figures=figures, undone_by=_CHANGES)

    def _asked(self, task: TaskClass) -> list[tuple[str, str]]:
        """What the pod asks for, GPUs first, slices of them last."""
        names, request = self.session.snapshot.resource_names, task.request
        dims = [dim for dim in np.flatnonzero(request).tolist() if names[dim] not in GPU_RESOURCES]
        gpus = float(self.session.shared(KaiAmounts).asked(task.task)[GPU])
        out = [("GPU", f"{gpus:.15g}" if gpus < 1e15 else str(round(gpus)))] if gpus else []
        out += [(_known(names[dim]), _figure(names[dim], int(request[dim]))) for dim in dims if not mig_gpus(names[dim])]
        return out + [(f"mig {names[dim]}", _figure(names[dim], int(request[dim]))) for dim in dims if mig_gpus(names[dim])]


def _conditions(pod: str, words: Iterable[tuple[str, str]]) -> str:
    """All that stands against a pod before any node is looked at, rule by rule."""
    said = "".join(f"{rule}: {text}.\n" for rule, text in words)
    return f"Scheduling conditions were not met for pod {pod}:\n{said}"


def _known(name: str) -> str:
    return "GPU" if name in GPU_RESOURCES else "CPU" if name == "cpu" else name


def _figure(name: str, amount: int) -> str:
    if name == "cpu":
        return f"{short(amount, 1000)} (cores)"
    if name == "memory":
        return f"{short(amount, 1e9)} (GB)"
    return format_amount(name, amount)


class NodeCondition(NodeFilter):
    name = "NodeCondition"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.ready = usable_nodes(snapshot)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = self.ready[at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        return [Refusal("node(s) are not ready or under pressure", ~self.ready[at.rows], unresolvable=True, code="NodeCondition")]


class GpuKind(NodeFilter):
    """Whole GPUs, slices of them, and devices of dynamic claims do not stand in for each other."""

    name = "GpuKind"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, session: Session) -> None:
        nodes, snapshot = session.nodes, session.snapshot
        key = str(session.policy.param("migWorkerNodeLabelKey"))
        slices = [i for i, name in enumerate(snapshot.resource_names) if mig_gpus(name)]
        has_slices = nodes.allocatable[slices].sum(axis=0) != 0
        self.sliced: BoolArray = np.where(nodes_with_label(snapshot, key), nodes_with_label(snapshot, key, "true"), has_slices)
        self.single = nodes_with_label(snapshot, MIG_STRATEGY, "single")
        self.mixed = nodes_with_label(snapshot, MIG_STRATEGY, "mixed")
        self.dynamic: BoolArray = np.zeros(len(nodes), dtype=bool)
        for name, count in session.shared(KaiAmounts).sliced_gpus().items():
            if count and (row := snapshot.nodes.row(name)) is not None:
                self.dynamic[row] = True
        self.whole = frozenset(GPU_RESOURCES)
        self._identity = (super().identity(), self.sliced.tobytes(), self.dynamic.tobytes())

    def identity(self) -> Hashable:
        """Slices come and go with what a node has and what drivers announce, while its labels stay."""
        return self._identity

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        refused: BoolArray = self._refused(task)[at.rows]
        return ~refused

    def _refused(self, task: TaskClass) -> BoolArray:
        shape = task.shape
        slices = any(mig_gpus(name) for name, _ in shape.requests)
        whole = any(name in self.whole for name, amount in shape.requests if amount)
        shared = shares_devices(task)
        refused = np.zeros(len(self.sliced), dtype=bool)
        if any(mig_gpus(name) for name, _ in shape.hints):
            return ~refused
        if slices:
            refused |= ~self.sliced | self.single
        if shared:
            refused |= self.dynamic
        if whole or shared:
            refused |= self.sliced & self.mixed
        if shared:
            refused |= self.sliced & self.single
        return refused

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        refused = self._refused(task)[at.rows]
        legacy = any(mig_gpus(name) for name, _ in task.shape.hints)
        if legacy:
            return [Refusal("Legacy MIG jobs cannot be scheduled", refused, unresolvable=True, code="GpuKind")]
        slices = any(mig_gpus(name) for name, _ in task.shape.requests)
        said = (
            ("only whole gpu jobs can run on a node with MigStrategy='single'", self.single & self.sliced),
            ("only MIG jobs can run on a node with MigStrategy='mixed'", self.mixed & self.sliced & (not slices)),
            ("MIG job cannot be scheduled on non-MIG node", ~self.sliced & slices),
            ("fractional jobs cannot run on a node whose GPUs are given out by claims", self.dynamic & shares_devices(task)),
        )
        return [Refusal(text, refused & where[at.rows], unresolvable=True, code="GpuKind") for text, where in said]


class WorkerKind(NodeFilter):
    """GPU pods go to GPU workers and other pods to CPU workers, as their nodes are nodes_with_label."""

    name = "WorkerKind"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, session: Session) -> None:
        self.session = session
        keys = (str(session.policy.param("cpuWorkerNodeLabelKey")), str(session.policy.param("gpuWorkerNodeLabelKey")))
        self.workers = [nodes_with_label(session.snapshot, key) for key in keys]

    def identity(self) -> Hashable:
        params = self.session.policy
        return (WorkerKind, params.param("cpuWorkerNodeLabelKey"), params.param("gpuWorkerNodeLabelKey"))

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = self.workers[wants_gpu(self.session, task.task)][at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        gpu = wants_gpu(self.session, task.task)
        text = f"node(s) are not {'GPU' if gpu else 'CPU'} workers"
        return [Refusal(text, ~self.mask(task, at), unresolvable=True, code="WorkerKind")]


class LegacySlices(NodeFilter):
    """No account covers slices that a pod took by annotation, so its node gives out no other slice."""

    name = "LegacySlices"
    scope = Scope.ROW

    def __init__(self, session: Session) -> None:
        self.taken = np.zeros(len(session.nodes), dtype=bool)
        self.holders: dict[int, list[str]] = {}
        """Node row -> pods that took slices there by annotation."""
        tasks, shapes = session.snapshot.tasks, session.snapshot.shapes
        old = [i for i, shape in enumerate(shapes) if any(mig_gpus(name) for name, _ in shape.hints)]
        if old:
            there = tasks.alive & ON_NODE[session.status] & (session.node >= 0) & np.isin(session.shape, old)
            self.taken[session.node[there]] = True
            for task in np.flatnonzero(there).tolist():
                self.holders.setdefault(int(session.node[task]), []).append(session.task(task).key)

    def applies(self, task: TaskClass) -> bool:
        return bool(self.taken.any()) and any(mig_gpus(name) for name, _ in task.shape.requests)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = ~self.taken[at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        """A reason for each such node: there are few, and the reader must find the pods."""
        rows = np.arange(len(self.taken))[at.rows]
        said = "MIG job cannot be scheduled on node with legacy MIG jobs"
        for row, pods in sorted(self.holders.items()):
            yield Refusal(f"{said}: <[{' '.join(sorted(pods))}]>", rows == row, unresolvable=True, code="LegacySlices")


class MemoryKnown(NodeFilter):
    name = "GpuMemoryKnown"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, session: Session) -> None:
        self.known = nodes_with_label(session.snapshot, GPU_MEMORY_LABEL)

    def applies(self, task: TaskClass) -> bool:
        return task.shape.devices is not None and bool(task.shape.devices.memory)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        found: BoolArray = self.known[at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        text = f"node(s) do not have the label {GPU_MEMORY_LABEL}"
        return [Refusal(text, ~self.known[at.rows], unresolvable=True, code="GpuMemoryKnown")]
