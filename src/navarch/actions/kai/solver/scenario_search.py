"""Scenario after scenario along the line of victims until one holds: the search of those who expect just these victims.

Few tasks first: a gang is tried with 1, 2, 4 ... of its tasks and, after a failure, with numbers between, keeping the victims
that it has settled on (`recorded`). The last word has a probe with all of its tasks.

What comes out is what playing every scenario would give; three shortcuts leave out work whose end is known:

- a scenario that figures prove to fail is not played (`room_bound`), nor is one that failed before, and a walk node by node ends
  where they prove it of every node (`local_bound`);
- a probe of which a rule says that no choice of victims could please it is given up (`could_take`): if the tasks lack more than
  is free anywhere, the difference is lost by somebody, and rules say how much at most may be lost;
- if the probe with all tasks has held and every batch that it evicted is gone, the last probe would evict the same batches in the
  same order on the same nodes, so its statement is that of the one before.

`plain` turns them off; tests/properties compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from navarch.actions.kai.solver.node_bound import LocalBound
from navarch.actions.kai.solver.resource_bound import RoomBound
from navarch.actions.kai.solver.scenario_trial import Found, ScenarioTrial, with_nodes
from navarch.actions.kai.solver.scenarios import GENERATORS, NODE_BY_NODE, Ground
from navarch.actions.kai.solver.search_budget import JobBudget
from navarch.actions.kai.solver.victim_queue import VictimLine, VictimPool, Victims, batches, without_repeats
from navarch.engine.gangs.partial_job import JobCopy
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import ScenarioGenerator
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.model.resources import BoolArray, FloatArray, IntArray

Named = frozenset[int] | tuple[int, ...]
CouldTake = Callable[[Sequence[int], IntArray], bool]
"""Could victims be found for these tasks who lose at least so much, column by column, without breaking a rule?"""


class Exhausted(Exception):
    """The budget of a way of choosing victims, or of the whole job, is used up."""


class Walk:
    def __init__(
        self,
        session: Session,
        pool: VictimPool,
        trial: ScenarioTrial,
        budget: JobBudget,
        could_take: CouldTake | None = None,
        *,
        all_return: bool = False,
        plain: bool = False,
    ) -> None:
        """`all_return`: rules want every victim to be placed again."""
        self.session, self.pool, self.trial, self.budget = session, pool, trial, budget
        self.could_take = could_take
        self.all_return = all_return
        self.plain = plain
        self.line = VictimLine(session, pool)
        self._failed: set[tuple[int, Named, Named]] = set()
        self._known_local: LocalBound | None = None
        self._free: FloatArray
        """GPUs that are or will be free on each node, before anyone is evicted."""

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
                self.budget.way_is_cut()
                continue
            if found is not None:
                return found.statement
        return None

    def _feasible(self, job: Job) -> BoolArray:
        """Nodes that may be used: those with a free GPU, or part of one, if every task of the job wants one."""
        session = self.session
        devices = session.devices
        assert devices is not None
        if all(devices.wants_gpu(session.class_of(task)) for task in job.tasks):
            found: BoolArray = (devices.idle_parts() > 0) | (devices.releasing_parts() > 0)
            return found
        return np.ones(len(session.nodes), dtype=bool)

    # few tasks first

    def _search(self, job: Job, chunk: list[int], feasible: BoolArray, generator: str) -> Found | None:
        recorded: Victims = []
        done, too_many, size = 0, len(chunk) + 1, 1
        while done < size < too_many:
            found = self._probe(job, chunk[:size], feasible, recorded, generator)
            if found is None:
                too_many = size
            else:
                if size == len(chunk) and self._is_last_word(found, chunk, feasible):
                    return found
                found.statement.discard()
                recorded, done = found.victims, size
            size = (done + too_many) // 2 if too_many <= len(chunk) else min(2 * size, len(chunk))
        return self._probe(job, chunk, feasible, recorded, generator) if done else None

    def _is_last_word(self, found: Found, chunk: list[int], feasible: BoolArray) -> bool:
        """Whether the last probe would play just this again: it begins with its recorded victims if they pass the tests."""
        devices = self.session.devices
        assert devices is not None
        if self.plain or len(found.victims) < len(found.played) or devices.any_shared:
            return False
        if sum(len(batch.tasks) for batch in found.played) > len(found.came_from):
            return False
        if (len(chunk), frozenset(found.came_from), frozenset[int]()) in self._failed:
            return False
        free = self._free.copy()
        for task, node in found.came_from.items():
            free[node] += devices.gpus_of(self.session.class_of(task), int(devices.memory[node]))
        ground = Ground(self.session, chunk, with_nodes(feasible, found.came_from.values()), ())
        return ground.could_fit(free, np.zeros(len(free), dtype=bool))

    def _with_nodes(self, feasible: BoolArray, victims: Victims) -> BoolArray:
        node = self.session.node
        return with_nodes(feasible, (int(node[task]) for batch in victims for task in batch.tasks))

    def _probe(self, job: Job, tasks: list[int], feasible: BoolArray, recorded: Victims, generator: str) -> Found | None:
        session = self.session
        part = JobCopy(job, job.tree.holding([*job.tree.active, *tasks]))
        named = _named(recorded)
        settled = frozenset(named)
        bound = RoomBound(session, () if self.plain else tasks, without_repeats(recorded), all_return=self.all_return)
        nodes = self._with_nodes(feasible, recorded)
        ground = Ground(session, tasks, nodes, recorded, plain=self.plain, all_return=self.all_return, spend=self._spend)
        asked = self.plain
        line = batches(session, self.pool, settled) if self.plain else self.line.without(recorded)
        for chosen in GENERATORS[generator](ground, line):
            self._spend(1)
            key = (len(tasks), named, _named(chosen))
            if key in self._failed:
                continue
            victims = [*recorded, *chosen]
            if bound.admits(without_repeats(victims)[len(without_repeats(recorded)) :]):
                self._spend(len(tasks) + sum(len(batch.tasks) for batch in victims))
                found = self.trial.play(part, tasks, ground.feasible, victims)
                if found is not None:
                    return found
            self._failed.add(key)
            if not asked:
                asked = True
                if not self._could_be_taken(tasks) or (generator == NODE_BY_NODE and self._local.rules_out(bound)):
                    return None
        return None

    @property
    def _local(self) -> LocalBound:
        if self._known_local is None:
            self._known_local = LocalBound(self.session, self.pool.jobs())
        return self._known_local

    def _spend(self, steps: int) -> None:
        if self.budget.generator_is_over():
            raise Exhausted
        self.budget.spend(steps)

    def _could_be_taken(self, tasks: list[int]) -> bool:
        """Whether rules let go of as much as the tasks need and nobody has free.

        Figures of requests say what must be lost only if nothing is shared and nothing is placed beyond what there is."""
        session = self.session
        if self.could_take is None or session.devices is None or session.devices.any_shared or session.slack.any():
            return True
        asked = session.snapshot.shape_request[:, session.shape[tasks]].sum(axis=1)
        lacking = asked - np.maximum(session.nodes.future_idle, 0).sum(axis=1)
        return self.could_take(tasks, lacking)


def _named(victims: Victims) -> Named:
    """The tasks that a scenario names; one that it names twice makes it another scenario."""
    tasks = [task for batch in victims for task in batch.tasks]
    known = frozenset(tasks)
    return known if len(known) == len(tasks) else tuple(sorted(tasks))
