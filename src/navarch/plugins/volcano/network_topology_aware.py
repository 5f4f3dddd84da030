"""Network-topology-aware: places gangs close together in the tree of HyperNodes, and other pods in the fullest HyperNodes.

- Domains that a job or a part of it may use (`hyper_node_gradient_*`): those up to its highest tier, lowest tier first, that could
  hold its requests. A running job stays below the highest ancestor that its bound allows. For evictions the widest domains come
  first, up to a limit.
- The best domain for a part (`hyper_node_order`): the one that it fills most; among equals the one that holds more of it.
- The best node: for a pod of such a part, the one closest to the last placement; for any other pod, one in full HyperNodes, with
  low tiers counting more, so that whole HyperNodes stay free for gangs.

        score = 100 * weight * closeness      closeness = (highest tier - tier of the common HyperNode) / (highest - lowest tier)
        score = 100 * weight * sum over tiers of fading^(tier-1) * filling / sum over tiers of fading^(tier-1)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change, Purpose
from navarch.engine.topology.domains import NOWHERE, DomainTree
from navarch.engine.topology.job_domains import JobDomains, demand_of
from navarch.model.resources import CPU, MEMORY, BoolArray, FloatArray, IntArray
from navarch.model.status import TaskStatus

MAX_SCORE = 100


class NetworkTopologyAware(Plugin):
    """Keeps gangs close together in the network, and whole HyperNodes free for them"""

    name = "network-topology-aware"
    arguments = (
        Argument("weight", "int", 1, "weight of the whole score", minimum=0),
        Argument("hypernode.binpack.cpu", "int", 1, "weight of cpu in how full a HyperNode is", minimum=0),
        Argument("hypernode.binpack.memory", "int", 1, "weight of memory", minimum=0),
        Argument("hypernode.binpack.resources", "str", "", "further resources that count, comma separated"),
        Argument("hypernode.binpack.resources.*", "int", 1, "weight of one of them", minimum=0),
        Argument("hypernode.binpack.normal-pod.enable", "bool", True, "whether pods without a topology fill HyperNodes"),
        Argument("hypernode.binpack.normal-pod.fading", "float", 0.8, "how much less each higher tier counts", minimum=0.0),
        Argument("hypernode.gradient.evict.max-hypernodes", "int", 8, "how many HyperNodes to try for an eviction", minimum=1),
    )

    def open(self) -> None:
        session = self.session
        self.where: JobDomains = session.domains
        self.tree: DomainTree = self.where.tree
        self.scale = float(MAX_SCORE * self.given.integer("weight"))
        self.weights = self._weights()
        nodes = session.nodes
        self.allocatable = self.tree.sums(nodes.allocatable)
        self.used = self.tree.sums(nodes.used)
        self.idle = self.allocatable - self.used
        self.future_idle = self.tree.sums(nodes.future_idle)
        session.distinguish_by(self._part_key)

    def _weights(self) -> list[int | None]:
        own = self.given.matching("hypernode.binpack.resources.*")
        listed = (name.strip() for name in self.given.text("hypernode.binpack.resources").split(","))
        weights = {name: int(str(own.get(name, 1))) for name in listed if name}
        weights["cpu"] = self.given.integer("hypernode.binpack.cpu")
        weights["memory"] = self.given.integer("hypernode.binpack.memory")
        return [weights.get(name) for name in self.session.snapshot.resource_names]

    def part_of(self, task: int) -> SubJob | None:
        """The part with a demand on closeness that the task belongs to."""
        job = self.session.job_of(task)
        if job is None or (job.spec.topology is None and not job.spec.sub_groups):
            return None
        sub = next((sub for sub in job.sub_jobs if task in sub.tasks), None)
        return sub if sub is not None and demand_of(sub) is not None else None

    def _part_key(self, task: int) -> tuple[str, str] | None:
        part = self.part_of(task)
        return None if part is None else (part.job.key, part.name)

    # which domains

    def hyper_node_gradient_for_job(self, job: Job, root: int, purpose: Purpose) -> list[list[int]]:
        bound = self.where.bound(job)
        if bound is None:
            return [[root]]
        least = self.session.snapshot.jobs.min_resources[:, job.row]
        return self._gradient(root, bound, self.where.of_job(job), least, purpose)

    def hyper_node_gradient_for_sub_job(self, sub_job: SubJob, root: int, purpose: Purpose) -> list[list[int]]:
        bound = self.where.bound_of_part(sub_job)
        if bound is None:
            return [[root]]
        session = self.session
        waiting = sub_job.rows[session.status[sub_job.rows] == int(TaskStatus.PENDING)]
        least: IntArray = session.snapshot.shape_request[:, session.shape[waiting]].sum(axis=1)
        return self._gradient(root, bound, self.where.of_part(sub_job), least, purpose)

    def _gradient(self, root: int, bound: int, at: int, least: IntArray, purpose: Purpose) -> list[list[int]]:
        tree = self.tree
        start = self._start(root, bound, at)
        if start == NOWHERE:
            return []
        inside = [domain for domain in tree.below(start) if tree.tier[domain] <= bound]
        if at == NOWHERE:
            large = self._could_hold(least, purpose)
            inside = [domain for domain in inside if large[domain]]
        lists = [[d for d in inside if tree.tier[d] == tier] for tier in sorted({int(tree.tier[d]) for d in inside})]
        return lists if purpose is Purpose.ALLOCATE else self._widest(lists)

    def _start(self, root: int, bound: int, at: int) -> int:
        """Where the search begins: at `root`, or below it at the highest domain around `at` that the bound allows."""
        if at == NOWHERE:
            return root
        tree, highest = self.tree, NOWHERE
        for domain in tree.ancestors(at):
            if tree.tier[domain] > bound:
                break
            highest = domain
        if highest == NOWHERE:
            return NOWHERE
        common = tree.common(root, highest)
        return root if common == highest else highest if common == root else NOWHERE

    def _could_hold(self, least: IntArray, purpose: Purpose) -> BoolArray:
        """Domains whose sum is enough: what they have for an eviction, else what was free, or would be, at the start."""
        dims = np.union1d(np.flatnonzero(least), (CPU, MEMORY))
        need = least[dims, None]
        figures = (self.allocatable,) if purpose is Purpose.EVICT else (self.idle, self.future_idle)
        found: BoolArray = np.any([np.all(need <= each[dims], axis=0) for each in figures], axis=0)
        return found

    def _widest(self, lists: list[list[int]]) -> list[list[int]]:
        """Widest first, and no more than the argument says."""
        left = self.given.integer("hypernode.gradient.evict.max-hypernodes")
        found = []
        for domains in reversed(lists):
            kept = domains[max(len(domains) - left, 0) :]
            if kept:
                found.append(kept)
            left -= len(kept)
        return found

    # which domain is best

    def hyper_node_order(self, sub_job: SubJob, domains: Sequence[int]) -> Sequence[float]:
        session = self.session
        total: IntArray = session.snapshot.shape_request[:, session.shape[sub_job.rows]].sum(axis=1)
        scores = self.filling(total)[list(domains)]
        if len(domains) > 1:
            best = scores == scores.max()
            if best.sum() > 1:
                held = [self._members_in(sub_job, domain) for domain in domains]
                scores = scores + best * np.array(held) / len(sub_job.tasks)
        return [float(score) for score in scores * self.scale]

    def _members_in(self, sub_job: SubJob, domain: int) -> int:
        nodes = self.session.node[sub_job.rows]
        return int(self.tree.mask(domain)[nodes[nodes >= 0]].sum())

    def filling(self, request: IntArray) -> FloatArray:
        """How full each domain would be with these requests, 0 to 1 over the weighted resources; 0 where they do not fit."""
        score: FloatArray = np.zeros(len(self.tree))
        over: BoolArray = np.zeros(len(self.tree), dtype=bool)
        weights = 0
        for dim in np.flatnonzero(request).tolist():
            weight = self.weights[dim]
            if weight is None:
                continue
            weights += weight
            after, capacity = self.used[dim] + request[dim], self.allocatable[dim]
            over |= after > capacity
            score += weight * np.divide(after, capacity, out=np.zeros(len(capacity)), where=capacity > 0)
        score[over] = 0.0
        return score / weights if weights else np.zeros(len(self.tree))

    # which node is best

    def node_scorers(self) -> list[NodeScorer]:
        if not self.scale:
            return []
        scorers: list[NodeScorer] = [ClosestNode(self)]
        if self.given.flag("hypernode.binpack.normal-pod.enable"):
            scorers.append(FullestHyperNode(self, self.given.number("hypernode.binpack.normal-pod.fading")))
        return scorers

    # figures

    def on_allocate(self, change: Change) -> None:
        self._move(change, 1)

    def on_deallocate(self, change: Change) -> None:
        self._move(change, -1)

    def _move(self, change: Change, sign: int) -> None:
        request = change.task.request * sign
        for row in change.nodes:
            self.used[:, self.tree.around(row)] += request[:, None]


class ClosestNode(NodeScorer):
    """For tasks of a part with a demand: the closer to what was placed before, the better. GLOBAL: the anchor moves."""

    name = "network-topology-aware"
    scope = Scope.GLOBAL

    def __init__(self, plugin: NetworkTopologyAware) -> None:
        self.plugin = plugin
        self.weight = plugin.scale
        self._closeness: dict[int, FloatArray] = {}
        self._feasible: BoolArray | None = None
        self._parts: dict[int, SubJob | None] = {}

    def applies(self, task: TaskClass) -> bool:
        return self.part(task) is not None

    def part(self, task: TaskClass) -> SubJob | None:
        if task.number not in self._parts:
            self._parts[task.number] = self.plugin.part_of(task.task)
        return self._parts[task.number]

    def is_level(self, task: TaskClass, nodes: BoolArray) -> bool:
        closest = self.plugin.where.closest[nodes]
        return bool(len(closest)) and bool((closest == closest[0]).all())

    def prepare(self, task: TaskClass, feasible: BoolArray) -> None:
        self._feasible = feasible

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        part, where = self.part(task), self.plugin.where
        assert part is not None
        anchor = where.anchor(part)
        if anchor == NOWHERE:
            return np.zeros(at.used.shape[1])
        close = self._close_to(anchor)
        if self._feasible is None or not isinstance(at.rows, slice):
            return close[at.rows]
        rows = np.flatnonzero(self._feasible)
        rows = rows[close[rows] == close[rows].max(initial=0.0)]
        if len(rows) < 2:
            return close
        nodes = self.plugin.session.node[part.rows]
        held = where.closest[nodes[nodes >= 0]]
        members = np.bincount(held[held >= 0], minlength=len(where.tree) + 1)  # the last entry: nodes in no domain
        close = close.copy()
        close[rows] += members[where.closest[rows]] / len(part.tasks)
        return close

    def _close_to(self, anchor: int) -> FloatArray:
        found = self._closeness.get(anchor)
        if found is None:
            tree = self.plugin.tree
            low, high = tree.tiers[0], tree.tiers[-1]
            meets = tree.common_with(anchor)
            of_domain = np.zeros(len(tree) + 1)  # the last entry: nodes in no domain
            of_domain[:-1] = 1.0 if low == high else (high - tree.tier[meets]) / (high - low)
            of_domain[anchor] = 1.0
            found = self._closeness[anchor] = of_domain[self.plugin.where.closest]
        return found


class FullestHyperNode(NodeScorer):
    """For all other tasks: nodes in full HyperNodes. GLOBAL: a placement fills the HyperNode for all its nodes."""

    name = "network-topology-aware"
    scope = Scope.GLOBAL

    def __init__(self, plugin: NetworkTopologyAware, fading: float) -> None:
        self.plugin = plugin
        self.weight = plugin.scale
        tiers = range(plugin.tree.tiers[0], plugin.tree.tiers[-1] + 1)
        self.tiers = [(plugin.tree.at_tier(tier), fading ** (tier - 1) if fading or tier > 0 else 0.0) for tier in tiers]
        self.total = sum(weight for _, weight in self.tiers)

    def applies(self, task: TaskClass) -> bool:
        return self.total > 0 and len(self.plugin.tree) > 1 and self.plugin.part_of(task.task) is None

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        filling = np.append(self.plugin.filling(task.request), 1.0)  # the last entry: no HyperNode of the tier
        score: FloatArray = np.zeros(at.used.shape[1])
        for domains, weight in self.tiers:
            score += weight * filling[domains[at.rows]]
        return score / self.total
