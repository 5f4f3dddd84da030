"""One scenario, played through on a statement: does it hold?

Its victims leave, then every job concerned (the one that waits, and the victims, in the order of fairness) is placed again where
it still fits, all by promise. A victim that finds its old place stays; one that finds another is moved; the rest are lost. What
comes out must please the action's validator.

A trial that fails leaves nothing behind, with two exceptions that a `compat` asks for: a share of a GPU that moved inside its node
(`moved_share_leaves_ghost`), and the count of whole GPUs beside shared ones (`devices_are_counted`). `leaves_nothing`
says whether a scenario is free of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from navarch.actions.kai.placing import Placing
from navarch.actions.kai.queue_forest import JobForest
from navarch.actions.kai.solver.victim_queue import Batch, Victims
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.partial_job import JobCopy, whole_job
from navarch.engine.job import Job
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.points.gang_protocols import Scenario
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.model.resources import BoolArray
from navarch.model.status import TaskStatus

Validate = Callable[[Scenario], bool]
_RELEASING, _PIPELINED, _PENDING = int(TaskStatus.RELEASING), int(TaskStatus.PIPELINED), int(TaskStatus.PENDING)


@dataclass(slots=True)
class Found:
    """A scenario that holds: its statement, still open, what was evicted, and the batches of it that are gone or moved."""

    statement: Statement
    played: Victims
    victims: Victims
    came_from: dict[int, int]
    """Every task that was evicted and the node it stood on."""


@dataclass(slots=True)
class ScenarioTrial:
    session: Session
    validate: Validate
    _pending: list[Job] = field(default_factory=list)
    """Jobs that wait and have nothing to do with the scenario. Under a `compat` they take part in its order."""
    played: int = 0
    """How many scenarios were played."""

    def prepare(self) -> None:
        """Before the scenarios of a job, while nothing is evicted for it."""
        if not self.session.semantics.victims_are_minimal:
            self._pending = [each for each in self.session.jobs_with_pending() if each.tree.has_pending]

    def play(self, job: JobCopy, tasks: list[int], feasible: BoolArray, victims: Victims) -> Found | None:
        session = self.session
        if not victims:
            return None
        self.played += 1
        statement = session.statement()
        used = job.tree.used
        came_from: dict[int, int] = {}
        node, key, action = session.node, job.key, session.action
        for batch in victims:
            for task in batch.tasks:
                if task in came_from:
                    statement.evict_again(task)
                    continue
                came_from[task] = int(node[task])
                statement.evict(task, for_=key, reason=action)
        evicted = set(came_from)
        nodes = with_nodes(feasible, came_from.values())
        if not self._place_all(statement, job, nodes, victims, evicted):
            take_back(statement)
            return None
        status = session.status
        lost = {task for task in evicted if status[task] == _RELEASING}
        moved = {task for task in evicted if status[task] == _PIPELINED}
        if job.tree.used <= used or not job.tree.is_whole or not self._valid(job, tasks, victims, evicted - lost, came_from):
            take_back(statement)
            return None
        return Found(statement, victims, _affected(victims, lost | moved), came_from)

    def _place_all(self, statement: Statement, job: JobCopy, nodes: BoolArray, victims: Victims, evicted: set[int]) -> bool:
        """Place the job and what was evicted, once each, in the order of fairness. False if the job finds no place.

        Room only shrinks on the way, so once no class of task that is still to come finds a node the rest is left out."""
        session = self.session
        concerned = {batch.job.row: batch.job for batch in victims}
        others = [each for each in self._pending if each.row not in concerned and each.row != job.row]
        left = {*concerned, job.row}
        forest = JobForest(session, [job, *concerned.values(), *others], lambda each: next_to_place(session, each.tree, evicted))
        hopeless: set[int] = set()
        kinds = self._kinds(concerned.values())
        waits = True
        while left and (each := forest.pop()) is not None:
            if each.row not in left:
                continue
            left.discard(each.row)
            placing = Placing(session, statement, nodes, evicted, hopeless)
            placed = placing.place(whole_job(each), each.tree)
            if each.row == job.row:
                if not placed:
                    return False
                waits = False
            if not waits and not placed and kinds <= hopeless:
                break
        return True

    def _kinds(self, jobs: Iterable[Job]) -> set[int]:
        """Every class of task that a victim may bring back."""
        class_of = self.session.class_of
        return {class_of(task).number for job in jobs for task in job.tasks}

    def _valid(self, job: JobCopy, tasks: list[int], victims: Victims, stays: set[int], came_from: dict[int, int]) -> bool:
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


def take_back(statement: Statement) -> None:
    """Discard what was only a trial: nobody is told afterwards that it could have run."""
    jobs = [op.job for op in statement.operations if op.before == _PENDING and op.job is not None]
    kept = {job.row: (job, dict(job.last_undone)) for job in jobs}
    statement.discard()
    for job, undone in kept.values():
        job.last_undone.clear()
        job.last_undone.update(undone)


def leaves_nothing(session: Session, victims: Sequence[Batch]) -> bool:
    """Whether a trial with these victims is taken back to the last byte."""
    devices = session.devices
    traces = session.semantics.moved_share_leaves_ghost or session.semantics.devices_are_counted
    if not traces or devices is None or not devices.any_shared:
        return True
    return not any(shares_devices(session.class_of(task)) for batch in victims for task in batch.tasks)


def with_nodes(nodes: BoolArray, more: Iterable[int]) -> BoolArray:
    out = nodes.copy()
    rows = [row for row in more if row >= 0]
    out[rows] = True
    return out
