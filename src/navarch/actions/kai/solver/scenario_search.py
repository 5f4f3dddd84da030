"""The scenario search: tries one scenario after another, in the order of victims, until one holds.

A gang is probed with few of its tasks first: 1, 2, 4 ... and, after a failure, with numbers in between. A probe keeps the victims
of the last successful probe (`recorded`). The last probe places all tasks of the chunk and decides.

The result equals that of trying every scenario. Three shortcuts leave out work whose result is known:

- a scenario that resource sums prove to fail is not tried (`resource_bound`), nor is one that failed before; the search node by
  node ends where the sums prove failure for every node, and does not begin where no sequence of its probes can reach all tasks
  (`node_bound`);
- a probe ends if a rule says that no set of victims can be allowed (`rules_may_allow`): if the tasks need more than is free
  anywhere, victims must lose the difference, and rules bound what victims may lose;
- if the probe with all tasks held and all batches that it evicted are lost, the last probe would evict the same batches in the
  same order on the same nodes, so the statement of the probe is used.

`exhaustive` turns them off; tests/properties compare both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from navarch.actions.kai.solver.domain_capacity import DomainCapacity
from navarch.actions.kai.solver.node_bound import SingleNodeBound
from navarch.actions.kai.solver.probe_sizes import ProbeSizes, most_successes
from navarch.actions.kai.solver.resource_bound import ResourceBound
from navarch.actions.kai.solver.scenario_trial import ProvenScenario, ScenarioTrial, with_nodes
from navarch.actions.kai.solver.scenarios import GENERATORS, NODE_BY_NODE, Probe
from navarch.actions.kai.solver.search_budget import JobBudget
from navarch.actions.kai.solver.victim_queue import VictimPool, Victims, batches, without_repeats
from navarch.actions.kai.solver.victim_sequence import VictimSequence, stretches
from navarch.engine.gangs.partial_job import PartialJob
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import ScenarioGenerator
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.model.resources import BoolArray, FloatArray, IntArray

Named = frozenset[int] | tuple[int, ...]
RulesMayAllow = Callable[[Sequence[int], IntArray], bool]
"""Whether the rules may allow victims for these tasks that lose at least so much in every column."""


class Exhausted(Exception):
    """The budget of a scenario generator, or of the whole job, is used up."""


class ScenarioSearch:
    def __init__(
        self,
        session: Session,
        pool: VictimPool,
        trial: ScenarioTrial,
        budget: JobBudget,
        rules_may_allow: RulesMayAllow | None = None,
        *,
        all_return: bool = False,
        exhaustive: bool = False,
    ) -> None:
        """`all_return`: rules want every victim to be placed again."""
        self.session, self.pool, self.trial, self.budget = session, pool, trial, budget
        self.rules_may_allow = rules_may_allow
        self.all_return = all_return
        self.exhaustive = exhaustive
        self.ordered = VictimSequence(session, pool)
        self._failed: set[tuple[int, Named, Named]] = set()
        self._single_node_bound: SingleNodeBound | None = None
        self._free: FloatArray
        """GPUs on each node that are free or in release, before any eviction."""

    def solve(self, job: Job, chunk: list[int]) -> Statement | None:
        feasible = self._feasible(job)
        devices = self.session.devices
        assert devices is not None
        self._free = devices.idle_parts() + devices.releasing_parts()
        for plugin in self.session.implementing(ScenarioGenerator):
            generator = plugin.scenario_generator()
            self.budget.begin(generator)
            try:
                found = self._search(job, chunk, feasible, generator)
            except Exhausted:
                if self.budget.is_over():
                    return None
                self.budget.generator_was_cut()
                continue
            if found is not None:
                return found.statement
        return None

    def _feasible(self, job: Job) -> BoolArray:
        """Nodes that may be used: those with a free GPU or part of one, if every task of the job wants a GPU."""
        session = self.session
        devices = session.devices
        assert devices is not None
        if all(devices.wants_gpu(session.class_of(task)) for task in job.tasks):
            found: BoolArray = (devices.idle_parts() > 0) | (devices.releasing_parts() > 0)
            return found
        return np.ones(len(session.nodes), dtype=bool)

    # few tasks first

    def _search(self, job: Job, chunk: list[int], feasible: BoolArray, generator: str) -> ProvenScenario | None:
        if generator == NODE_BY_NODE and self._cannot_reach_all(chunk):
            return None
        recorded: Victims = []
        sizes = ProbeSizes(len(chunk))
        while sizes.goes_on:
            found = self._probe(job, chunk[: sizes.size], feasible, recorded, generator)
            if found is not None:
                if sizes.size == len(chunk) and self._is_final(job, found, chunk, feasible):
                    return found
                found.statement.discard()
                recorded = found.victims
            sizes.tell(holds=found is not None)
        return self._probe(job, chunk, feasible, recorded, generator) if sizes.held else None

    def _cannot_reach_all(self, chunk: list[int]) -> bool:
        """Whether no sequence of probes node by node can place the whole chunk. A chunk of few tasks is not examined: each probe
        would have to find room for one more task only."""
        probes = most_successes(len(chunk))
        if self.exhaustive or probes >= len(chunk):
            return False
        return self._node_bound.excludes_probes(ResourceBound(self.session, chunk, all_return=self.all_return), probes)

    def _is_final(self, job: Job, found: ProvenScenario, chunk: list[int], feasible: BoolArray) -> bool:
        """Whether the last probe would repeat exactly this one: it starts with its recorded victims if they pass the tests."""
        devices = self.session.devices
        assert devices is not None
        if self.exhaustive or len(found.victims) < len(found.played) or devices.any_shared:
            return False
        if sum(len(batch.tasks) for batch in found.played) > len(found.came_from):
            return False
        if (len(chunk), frozenset(found.came_from), frozenset[int]()) in self._failed:
            return False
        free = self._free.copy()
        for task, node in found.came_from.items():
            free[node] += devices.gpus_of(self.session.class_of(task), int(devices.memory[node]))
        nodes = with_nodes(feasible, found.came_from.values())
        domains = DomainCapacity(self.session, self._part_of(job, chunk).tree)
        probe = Probe(self.session, chunk, nodes, (), ResourceBound(self.session, ()), domains)
        return probe.could_fit(free, np.zeros(len(free), dtype=bool))

    def _with_nodes(self, feasible: BoolArray, victims: Victims) -> BoolArray:
        node = self.session.node
        return with_nodes(feasible, (int(node[task]) for batch in victims for task in batch.tasks))

    def _probe(self, job: Job, tasks: list[int], feasible: BoolArray, recorded: Victims, generator: str) -> ProvenScenario | None:
        session = self.session
        part = self._part_of(job, tasks)
        named = _named(recorded)
        settled = frozenset(named)
        bound = ResourceBound(session, () if self.exhaustive else tasks, without_repeats(recorded), all_return=self.all_return)
        nodes = self._with_nodes(feasible, recorded)
        domains = DomainCapacity(session, part.tree)
        probe = Probe(session, tasks, nodes, recorded, bound, domains, exhaustive=self.exhaustive, spend=self._spend)
        asked = self.exhaustive
        every = stretches(session, batches(session, self.pool, settled), size=1) if self.exhaustive else None
        ordered = self.ordered.without(recorded) if every is None else every
        for chosen in GENERATORS[generator](probe, ordered):
            self._spend(1)
            key = (len(tasks), named, _named(chosen))
            if key in self._failed:
                continue
            victims = [*recorded, *chosen]
            if bound.admits(without_repeats(victims)[len(without_repeats(recorded)) :]):
                self._spend(len(tasks) + sum(len(batch.tasks) for batch in victims))
                found = self.trial.play(part, tasks, probe.feasible, victims)
                if found is not None:
                    return found
            self._failed.add(key)
            if not asked:
                asked = True
                if not self._rules_may_allow(tasks) or (generator == NODE_BY_NODE and self._node_bound.excludes_all(bound)):
                    return None
        return None

    def _part_of(self, job: Job, tasks: list[int]) -> PartialJob:
        """The job with these tasks and those that have a node."""
        return PartialJob(job, job.tree.holding([*job.tree.active, *tasks]))

    @property
    def _node_bound(self) -> SingleNodeBound:
        if self._single_node_bound is None:
            self._single_node_bound = SingleNodeBound(self.session, self.pool.jobs())
        return self._single_node_bound

    def _spend(self, steps: int) -> None:
        if self.budget.generator_is_over():
            raise Exhausted
        self.budget.spend(steps)

    def _rules_may_allow(self, tasks: list[int]) -> bool:
        """Whether the rules may allow victims that lose what the tasks need and is not free.

        Sums of requests tell what victims must lose only if no device is shared and no node is over-committed."""
        session = self.session
        if self.rules_may_allow is None or session.devices is None or session.devices.any_shared:
            return True
        asked = session.snapshot.shape_request[:, session.shape[tasks]].sum(axis=1)
        lacking = asked - np.maximum(session.nodes.future_idle, 0).sum(axis=1)
        return self.rules_may_allow(tasks, lacking)


def _named(victims: Victims) -> Named:
    """The tasks that a scenario names; one that it names twice makes it another scenario."""
    tasks = [task for batch in victims for task in batch.tasks]
    known = frozenset(tasks)
    return known if len(known) == len(tasks) else tuple(sorted(tasks))
