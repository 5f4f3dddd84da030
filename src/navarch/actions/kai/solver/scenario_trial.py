"""A scenario trial: plays one scenario on a statement and checks whether it holds.

The trial evicts the victims. Then it places every job concerned (the pending job, and the victims, in fairness order) where it
still fits, by promise. A victim that gets its old place stays; one that gets another place is moved; the others are lost. The
action's validator decides on the result. A failed trial leaves nothing behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from navarch.actions.kai.placing import ChunkPlacement
from navarch.actions.kai.queue_forest import QueueForest
from navarch.actions.kai.solver.victim_queue import Batch, Victims
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.partial_job import PartialJob, whole_job
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import Scenario
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.model.resources import BoolArray
from navarch.model.status import TaskStatus

Validate = Callable[[Scenario], bool]
_RELEASING, _PIPELINED = int(TaskStatus.RELEASING), int(TaskStatus.PIPELINED)


@dataclass(slots=True)
class ProvenScenario:
    """A scenario that holds: its open statement, the evicted batches, and the batches with a task that is lost or moved."""

    statement: Statement
    played: Victims
    victims: Victims
    came_from: dict[int, int]
    """Every evicted task and its node before the eviction."""


@dataclass(slots=True)
class ScenarioTrial:
    session: Session
    validate: Validate
    _pending: list[Job] = field(default_factory=list)
    """Pending jobs that are not part of the scenario. Under a `compat` they take part in the order."""
    played: int = 0
    """How many scenarios were tried."""

    def prepare(self) -> None:
        """Called before the scenarios of a job, while nothing is evicted for it."""
        if not self.session.semantics.victims_are_minimal:
            self._pending = [each for each in self.session.jobs_with_pending() if each.tree.has_pending]

    def play(self, job: PartialJob, tasks: list[int], feasible: BoolArray, victims: Victims) -> ProvenScenario | None:
        session = self.session
        if not victims:
            return None
        self.played += 1
        statement = session.statement(trial=True)
        used = job.tree.used
        came_from: dict[int, int] = {}
        node, key, action = session.node, job.key, session.action
        for batch in victims:
            for task in batch.tasks:
                if task in came_from:
                    statement.evict_again(task)
                    continue
                came_from[task] = int(node[task])
                statement.evict(task, for_=key, reason=action, holds_node=True)
        evicted = set(came_from)
        nodes = with_nodes(feasible, came_from.values())
        if not self._place_all(statement, job, nodes, victims, evicted):
            statement.discard()
            return None
        status = session.status
        lost = {task for task in evicted if status[task] == _RELEASING}
        moved = {task for task in evicted if status[task] == _PIPELINED}
        if job.tree.used <= used or not job.tree.is_whole or not self._valid(job, tasks, victims, evicted - lost, came_from):
            statement.discard()
            return None
        return ProvenScenario(statement, victims, _affected(victims, lost | moved), came_from)

    def _place_all(self, statement: Statement, job: PartialJob, nodes: BoolArray, victims: Victims, evicted: set[int]) -> bool:
        """Place the job and the evicted tasks, once each, in fairness order. False if the job finds no place.

        Free resources only shrink on the way. Once every class that is still to come has failed, the rest is skipped.

        Within a queue jobs are served in job order, and jobs that are not concerned get nothing. So once all jobs that are left belong
        to one queue, the order of queues no longer matters, and the jobs of that queue are served directly."""
        session = self.session
        concerned = {batch.job.row: batch.job for batch in victims}
        left = {each.row: each.queue for each in (*concerned.values(), job)}
        queues = Counter(queue.name for queue in left.values())
        others = [each for each in self._pending if each.row not in left] if len(queues) > 1 else []
        forest = QueueForest(session, [job, *concerned.values(), *others], lambda each: next_to_place(session, each.tree, evicted))
        hopeless: set[int] = set()
        kinds = self._kinds(concerned.values())
        waits = True
        while left:
            each = forest.pop() if len(queues) > 1 else forest.pop_from(next(iter(left.values())))
            if each is None:
                break
            queue = left.pop(each.row, None)
            if queue is None:
                continue
            queues[queue.name] -= 1
            if not queues[queue.name]:
                del queues[queue.name]
            placed = ChunkPlacement(session, statement, nodes, evicted, hopeless).place(whole_job(each), each.tree)
            if each.row == job.row:
                if not placed:
                    return False
                waits = False
            if not waits and not placed and kinds <= hopeless:
                break
        return True

    def _kinds(self, jobs: Iterable[Job]) -> set[int]:
        """Every task class of the victims."""
        class_of = self.session.class_of
        return {class_of(task).number for job in jobs for task in job.tasks}

    def _valid(self, job: PartialJob, tasks: list[int], victims: Victims, stays: set[int], came_from: dict[int, int]) -> bool:
        by_job: dict[int, tuple[Job, list[int]]] = {}
        for batch in victims:
            by_job.setdefault(batch.job.row, (batch.job, []))[1].extend(batch.tasks)
        return self.validate(Scenario(job, tasks, list(by_job.values()), frozenset(stays), came_from))


def _affected(victims: Victims, gone: set[int]) -> Victims:
    """The first batch that names each task of `gone`, every task once. A batch comes with those of its tasks that stay."""
    out: Victims = []
    covered: set[int] = set()
    for batch in victims:
        if any(task in gone and task not in covered for task in batch.tasks):
            out.append(batch if len(set(batch.tasks)) == len(batch.tasks) else Batch(batch.job, tuple(dict.fromkeys(batch.tasks))))
            covered.update(batch.tasks)
    return out


def with_nodes(nodes: BoolArray, more: Iterable[int]) -> BoolArray:
    out = nodes.copy()
    rows = [row for row in more if row >= 0]
    out[rows] = True
    return out
