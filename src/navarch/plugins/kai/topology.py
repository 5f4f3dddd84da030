"""Topology: places parts of a job in one zone, block or rack, by levels of node labels.

A part may *require* a level (all of its pods in one domain of it) and *prefer* a finer one. The domains that could hold the pods
are offered as node sets: the finest level first, up to the required one (or the whole topology if none is required). Inside a
level the fullest domain comes first, so that emptier ones stay free for larger parts. The domains of a preferred level are
scored too, the emptiest highest: a part that spreads over several domains fills the large ones first.

Running pods bind a part to their domains. The number of pods that fit is counted for each node. Where pods differ too much for
that, the sum of their requests is compared with the sum of free resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from navarch.engine.gangs.gang_tree import Part
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.gang_protocols import NodeSet, NoNodeSet
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session
from navarch.engine.topology.domains import NOWHERE, DomainTree, kept_tree, tree_of_labels
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.objects.topologies import LevelSpec, TopologySpec
from navarch.model.resources import PODS, BoolArray, FloatArray, IntArray
from navarch.model.spec import TopologyDemand
from navarch.model.status import TaskStatus

SCORE: Final = 100_000.0
STEPS: Final = 10
NAMED: Final = 10
"""How many domains without room a refusal names."""
FULL: Final = 1000.0
"""What a domain is taken to be filled to that has nothing free of a resource that is asked for."""
_ROOM: Final = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)
_CHANGES: Final = (Event.NODE_ADDED, Event.NODE_CHANGED)
_HOLDING: Final = [
    int(s) for s in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
]


class Topology(Plugin):
    """Puts parts of a job into one domain of a topology, the fullest that can hold them"""

    name = "topology"

    def node_sets(self, job: Job, part: Part, tasks: Sequence[int], nodes: BoolArray) -> Sequence[NodeSet] | NoNodeSet:
        demand = part.topology
        if demand is None or demand.is_of_hyper_nodes:
            return [NodeSet(nodes)]
        snapshot = self.session.snapshot
        topology: TopologySpec | None = snapshot.objects.get("Topology", {}).get(("", demand.topology))
        if demand.label:  # Kubernetes' groups name the label itself
            topology = TopologySpec(demand.label, (LevelSpec(demand.label),))
            demand = TopologyDemand(topology=demand.label, required=demand.label)
        if topology is None:
            known = ", ".join(sorted(name for _, name in snapshot.objects.get("Topology", {}))) or "none"
            return _refusal("TopologyNotFound", f'the topology "{demand.topology}" does not exist (there are: {known})')
        levels = [level.label for level in topology.levels]
        wanted = _depths(topology, demand)
        if isinstance(wanted, NoNodeSet):
            return wanted
        version = snapshot.versions.get("Topology", 0)
        tree = kept_tree(snapshot, ("Topology", topology.name), version, lambda: tree_of_labels(levels, snapshot.nodes.specs))
        search = _Search(self.session, tree, len(levels), tasks, nodes, *wanted)
        tied = self._tied(part, tasks, tree, len(levels) - wanted[0]) if wanted[0] else None
        return search.sets(tied) or NoNodeSet(_no_room(search, job, demand, tied))

    def _tied(self, part: Part, tasks: Sequence[int], tree: DomainTree, tier: int) -> set[int] | None:
        """Domains of the required level that hold pods of the leaves which now get more; None: no pod ties them."""
        session, wanted = self.session, set(tasks)
        held: set[int] = set()
        for leaf in part.leaf_parts():
            if wanted.isdisjoint(leaf.tasks):
                continue
            there = [t for t in leaf.tasks if session.status[t] in _HOLDING and session.node[t] >= 0]
            held.update(tree.at_tier(tier)[session.node[there]].tolist())
        return held or None


def _depths(topology: TopologySpec, demand: TopologyDemand) -> tuple[int, int] | NoNodeSet:
    """How deep below the root the required and the preferred level lie; 0: none is named."""
    found = []
    for name in (demand.required, demand.preferred):
        depth = next((i for i, level in enumerate(topology.levels, start=1) if name in (level.label, level.alias)), 0)
        if name and not depth:
            has = ", ".join(level.label for level in topology.levels)
            return _refusal("TopologyLevelNotFound", f'the topology "{topology.name}" has no level "{name}" (it has: {has})')
        found.append(depth if name else 0)
    if not any(found):
        return _refusal("TopologyLevelNotFound", f'neither a required nor a preferred level of "{topology.name}" is named')
    return found[0], found[1]


def _refusal(code: str, text: str) -> NoNodeSet:
    return NoNodeSet((Reason(code, text, undone_by=(Event.JOB_CHANGED, Event.NODE_CHANGED)),))


def _no_room(search: _Search, job: Job, demand: TopologyDemand, tied: set[int] | None) -> tuple[Reason, ...]:
    """The whole, then what every domain that might have held the tasks lacks."""
    wanted, level = len(search.tasks), demand.required or demand.preferred
    figures: dict[str, int | float | str] = {"topology": demand.topology, "level": level, "pods": wanted}
    whole = f"topology {demand.topology}, requirement {level} couldn't be satisfied for job <{job.key}>"
    if not search.at_hand.any():
        labels = "no node at hand carries all labels of the topology"
        return (Reason("PodSchedulingErrors", f"{whole}: {labels}", figures=figures, undone_by=_CHANGES),)
    if not search.fits(search.start):
        if search.is_uniform:
            figures["room"] = int(search.room[search.start])
        text = f"{whole}: not enough resources in the cluster to allocate the job"
        return (Reason("PodSchedulingErrors", text, figures=figures, undone_by=_ROOM),)
    tight = [domain for domain in search.candidates() if not search.fits(domain)]
    said = [search.lacks(domain) for domain in tight[:NAMED]]
    if len(tight) > NAMED:
        said.append(f"{len(tight) - NAMED} more node-groups have no room for {wanted} pods either")
    elsewhere = len(search.candidates()) > len(tight) and tied is not None
    why = ": its running pods tie it to a node-group without room" if elsewhere else ""
    parts = (Reason("PodSchedulingErrors", text, undone_by=_ROOM) for text in said if text)
    return (Reason("PodSchedulingErrors", whole + why, figures=figures, undone_by=_ROOM), *parts)


@dataclass
class _Search:
    """One question: where in a tree can these tasks be put together?"""

    session: Session
    tree: DomainTree
    levels: int
    tasks: Sequence[int]
    nodes: BoolArray
    required: int
    preferred: int

    def tier(self, depth: int) -> int:
        return self.levels - depth

    @cached_property
    def at_hand(self) -> BoolArray:
        """Nodes that carry every label of the topology."""
        inside: BoolArray = self.nodes & (self.tree.at_tier(0) != NOWHERE)
        return inside

    @cached_property
    def start(self) -> int:
        """The deepest domain that holds all nodes at hand, not below the preferred level."""
        domain = self.tree.top
        for depth in range(1, (self.preferred or self.levels) + 1):
            here = np.unique(self.tree.at_tier(self.tier(depth))[self.at_hand])
            if len(here) != 1:
                break
            domain = int(here[0])
        return domain

    @cached_property
    def requests(self) -> IntArray:
        """(tasks, R)"""
        found: IntArray = self.session.snapshot.shape_request[:, self.session.shape[list(self.tasks)]].T
        return found

    @cached_property
    def shared(self) -> FloatArray:
        """(tasks,): parts of a GPU that each task asks for."""
        shapes = (self.session.snapshot.shapes[int(self.session.shape[task])].devices for task in self.tasks)
        return np.array([0.0 if d is None else d.count * d.fraction / 1000 for d in shapes])

    @cached_property
    def free(self) -> IntArray:
        """(R, N): what is idle or being released on the nodes that count."""
        return np.where(self.at_hand, self.session.nodes.future_idle, 0)

    @cached_property
    def gpu_dims(self) -> list[int]:
        names = self.session.snapshot.resource_names
        return [names.index(name) for name in GPU_RESOURCES if name in names]

    @cached_property
    def whole_gpus(self) -> FloatArray:
        """(N,): GPUs on the nodes that count, without those that pods share."""
        found: FloatArray = self.free[self.gpu_dims].sum(axis=0) / 1000
        return found

    @cached_property
    def free_gpus(self) -> FloatArray:
        """(N,): GPUs on the nodes that count; free parts of shared ones count where only parts are asked for."""
        devices = self.session.devices
        most = self.shared.max(initial=0.0)
        if devices is None or not 0 < most < 1 or self.requests[:, self.gpu_dims].any():
            return self.whole_gpus
        return np.where(self.at_hand, devices.idle_parts() + devices.releasing_parts(), 0.0)

    @cached_property
    def is_uniform(self) -> bool:
        """Whether each resource is asked for by all tasks or by none: then one task can be counted for the other."""
        asked = (self.requests > 0).copy()
        names = self.session.snapshot.resource_names
        gpus = np.array([name in GPU_RESOURCES for name in names])
        with_gpu = asked[:, gpus].any(axis=1) | (self.shared > 0)
        plain = np.array([name not in ("cpu", "memory") for name in names]) & ~gpus
        mixed = asked[:, plain].any(axis=0) & ~asked[:, plain].all(axis=0)
        return bool(with_gpu.all() or not with_gpu.any()) and not mixed.any()

    @cached_property
    def room(self) -> IntArray:
        """For each domain, how many of the tasks fit, if each were as large as the largest."""
        need = self.requests.max(axis=0)
        dims = np.flatnonzero(need)
        count = (self.free[dims] // need[dims, None]).min(axis=0)
        most = self.shared.max(initial=0.0)
        if most:
            count = np.minimum(count, np.floor(self.free_gpus / most + 1e-9).astype(np.int64))
        usable = self.at_hand
        return self.tree.sums(np.where(usable, np.maximum(count, 0), 0))

    @cached_property
    def filled(self) -> FloatArray:
        """For each domain, what the tasks ask for as a part of what is free: the scarcest resource."""
        total, out = self.requests.sum(axis=0), np.zeros(len(self.tree))
        sums = self.tree.sums(self.free)
        for dim in np.flatnonzero(total).tolist():
            if dim != PODS:
                out = np.maximum(out, _ratio(float(total[dim]), sums[dim]))
        if self.shared.any():
            gpus = float(self.shared.sum()) + float(total[self.gpu_dims].sum()) / 1000
            out = np.maximum(out, _ratio(gpus, self.tree.sums(np.round(self.free_gpus * 1000).astype(np.int64)) / 1000))
        return out

    @cached_property
    def inside(self) -> list[int]:
        """The start domain and all below it, in the order of the search: fuller before emptier, then by name."""
        found: list[int] = []
        waiting = [self.start]
        while waiting:
            domain = waiting.pop()
            found.append(domain)
            children = sorted(self.tree.children[domain], key=lambda d: (-self.filled[d], self.tree.names[d]))
            waiting.extend(reversed(children))
        return found

    def fits(self, domain: int) -> bool:
        return bool(self.room[domain] >= len(self.tasks) if self.is_uniform else self.filled[domain] <= 1)

    def sets(self, tied: set[int] | None) -> list[NodeSet]:
        if not self.at_hand.any() or not self.fits(self.start):
            return []
        scores = self._scores() if self.preferred else None
        return [
            NodeSet(self.at_hand & self.tree.mask(domain), scores)
            for domain in self.candidates()
            if self.fits(domain) and (tied is None or not tied.isdisjoint(self.tree.ancestors(domain)))
        ]

    def candidates(self) -> list[int]:
        """Domains in the order in which they are tried: the finest level first, up to the required one."""
        depths = range(self.preferred or self.required, self.required - 1, -1)
        return [domain for depth in depths for domain in self.inside if self.tree.tier[domain] == self.tier(depth)]

    def lacks(self, domain: int) -> str:
        """What a domain without room lacks."""
        name = self.tree.names[domain]
        if self.is_uniform:
            return f"node-group {name} can allocate only {int(self.room[domain])} of {len(self.tasks)} required pods"
        names, total = self.session.snapshot.resource_names, self.requests.sum(axis=0)
        free = self.tree.sums(self.free)[:, domain]
        short = [known(names[dim]) for dim in np.flatnonzero(total > free).tolist() if dim != PODS]
        return f"node-group {name} didn't have enough resources: {', '.join(short)}" if short else ""

    def _scores(self) -> FloatArray:
        """Domains of the preferred level in ten steps, the roomiest highest; nodes outside have none."""
        scores = np.full(self.tree.size, np.nan)
        domains = [domain for domain in self.inside if self.tree.tier[domain] == self.tier(self.preferred)]
        for i, domain in enumerate(domains, start=1):
            scores[self.tree.rows(domain)] = SCORE * (STEPS * i // len(domains))
        return scores


def known(name: str) -> str:
    """What users call a resource."""
    return "GPUs" if name in GPU_RESOURCES else {"cpu": "CPU cores"}.get(name, name)


def _ratio(asked: float, free: FloatArray | IntArray) -> FloatArray:
    return np.where(free > 0, asked / np.maximum(free, 1e-9), FULL)
