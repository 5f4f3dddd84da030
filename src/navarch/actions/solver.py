"""Who must go so that a job can be placed: a search that proves a whole scenario before anything is evicted.

A scenario is played through on a statement: its victims leave, then every job concerned (the one that waits, and the victims,
in the order of fairness) is placed again where it still fits, all by promise. A victim that finds its old place stays; one that
finds another is moved; the rest are lost. What comes out must please the action's validator. For a gang the search goes
from few tasks to all of them, keeping the victims that it has settled on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from navarch.actions.placing import Placing
from navarch.actions.scenarios import GENERATORS, Ground, Victims
from navarch.actions.strict_search import MOST_GIVEN_BACK_BY_TRIAL, Line, Outlook, Spare, admissible
from navarch.actions.victim_pool import Batch, VictimPool, batches
from navarch.engine.chunks import next_to_place
from navarch.engine.forest import JobForest
from navarch.engine.gang_points import Scenario
from navarch.engine.job import Job
from navarch.engine.job_copy import JobCopy, whole_job
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.model.resources import BoolArray
from navarch.model.status import TaskStatus

FIRST_VICTIMS = 4
_RELEASING, _PIPELINED = int(TaskStatus.RELEASING), int(TaskStatus.PIPELINED)


@dataclass(slots=True)
class Found:
    """A scenario that holds: its statement, still open, and the batches that it takes from."""

    statement: Statement
    victims: Victims


@dataclass(slots=True)
class Solver:
    session: Session
    pool: VictimPool
    validate: Callable[[Scenario], bool]
    moves_only: bool = False
    """Nobody may lose a place, so a victim that finds none spoils the scenario."""
    _failed: set[tuple[int, frozenset[int], frozenset[int]]] = field(default_factory=set)
    _pending: list[Job] = field(default_factory=list)

    def solve(self, job: Job) -> Statement | None:
        """A statement that places the next tasks of the job, ready to be committed; None if there is none."""
        session = self.session
        chunk = next_to_place(session, job.tree)
        if not chunk:
            return None
        for plugin in session.answering("search_started"):
            plugin.search_started(job)
        self._failed = set()
        if not session.semantics.victims_are_minimal:
            self._pending = [each for each in session.jobs_with_pending() if each.tree.has_pending]
        feasible = self._feasible(job)
        if session.semantics.victims_are_minimal:
            return self._least(job, chunk) if session.answering("scenario_generator") else None
        for plugin in session.answering("scenario_generator"):
            found = self._search(job, chunk, feasible, plugin.scenario_generator())
            if found is not None:
                return found.statement
        return None

    def holds(self, job: Job, victims: Victims) -> bool:
        """Whether the next tasks of the job find room, and every rule is kept, if just these go."""
        chunk = next_to_place(self.session, job.tree)
        part = JobCopy(job, job.tree.holding([*job.tree.active, *chunk]))
        found = self._play(part, chunk, np.ones(len(self.session.nodes), dtype=bool), victims)
        if found is not None:
            found.statement.discard()
        return found is not None

    def _feasible(self, job: Job) -> BoolArray:
        """Nodes that may be used: those with a free GPU, or part of one, if every task of the job wants one."""
        session = self.session
        devices = session.devices
        assert devices is not None
        if all(devices.wants_gpu(session.class_of(task)) for task in job.tasks):
            found: BoolArray = (devices.idle_parts() > 0) | (devices.releasing_parts() > 0)
            return found
        return np.ones(len(session.nodes), dtype=bool)

    # the fewest victims

    def _least(self, job: Job, chunk: list[int]) -> Statement | None:
        session = self.session
        outlook = Outlook(session, chunk)
        part = JobCopy(job, job.tree.holding([*job.tree.active, *chunk]))
        waiting = batches(session, self.pool)
        line = self._beginning(outlook, waiting)
        places = outlook.choose(line)
        found = self._offer(places, part, chunk, line, outlook)
        if found is not None:
            return found.statement
        line = Line(session, [*line.batches, *waiting])
        if not self.moves_only and not self._could_be_had(outlook, line, part, chunk):
            return None
        places = outlook.choose(line)
        for count in _wider(len(places), len(line.batches)):
            found = self._offer(sorted({*places, *range(count)}), part, chunk, line, outlook)
            if found is not None:
                return found.statement
        return None

    def _beginning(self, outlook: Outlook, waiting: Iterator[Batch]) -> Line:
        """As much of the line of victims as figures ask for, in steps that grow: most jobs need only its beginning."""
        taken = list(islice(waiting, max(FIRST_VICTIMS, outlook.size)))
        while True:
            line = Line(self.session, taken)
            more = [] if outlook.sees_room(line) else list(islice(waiting, 4 * len(taken)))
            if not more:
                return line
            taken += more

    def _offer(self, offered: list[int], part: JobCopy, chunk: list[int], line: Line, outlook: Outlook) -> Found | None:
        """Play one choice of victims, and keep as few of them as will do."""
        everywhere = np.ones(len(self.session.nodes), dtype=bool)
        found = self._play(part, chunk, everywhere, [line.batches[place] for place in offered])
        return None if found is None else self._without_spare(found, offered, part, chunk, line, outlook)

    def _could_be_had(self, outlook: Outlook, line: Line, part: JobCopy, chunk: list[int]) -> bool:
        """Whether as much as the job asks for is free or may be taken, wherever that is."""
        session = self.session
        allowed = Line(session, admissible(line, part, chunk, self.validate))
        room = allowed.sum_of(range(len(allowed.batches)), outlook.room)
        return all(
            bool((np.maximum(room, 0).sum(axis=1) >= count * outlook.need(kind)).all()) for kind, count in outlook.kinds
        )

    def _without_spare(
        self, found: Found, offered: list[int], part: JobCopy, chunk: list[int], line: Line, outlook: Outlook
    ) -> Found:
        """Give back, from those who would go last, every victim without whom the scenario still holds."""
        place_of = {id(batch): place for place, batch in enumerate(line.batches)}
        gone = sorted(place_of[id(batch)] for batch in found.victims)
        test = Spare(outlook, line, gone)
        spare = [place for place in gone[::-1] if test.could_stay(place)][:MOST_GIVEN_BACK_BY_TRIAL]
        if gone == offered and not spare:
            return found
        found.statement.discard()
        everywhere = np.ones(len(self.session.nodes), dtype=bool)
        trials = [set(offered) - set(gone), *({place} for place in spare)]
        for stay in trials:
            fewer = [place for place in offered if place not in stay]
            if len(fewer) == len(offered) or not fewer:
                continue
            held = self._play(part, chunk, everywhere, [line.batches[place] for place in fewer])
            if held is not None:
                offered = fewer
                held.statement.discard()
        again = self._play(part, chunk, everywhere, [line.batches[place] for place in offered])
        assert again is not None, "what held once holds again"
        return again

    # few tasks first

    def _search(self, job: Job, chunk: list[int], feasible: BoolArray, generator: str) -> Found | None:
        recorded: Victims = []
        done, too_many, size = 0, len(chunk) + 1, 1
        while done < size < too_many:
            found = self._probe(job, chunk[:size], feasible, recorded, generator)
            if found is None:
                too_many = size
            else:
                found.statement.discard()
                recorded, done = found.victims, size
            size = (done + too_many) // 2 if too_many <= len(chunk) else min(2 * size, len(chunk))
        return self._probe(job, chunk, feasible, recorded, generator) if done else None

    def _probe(
        self, job: Job, tasks: list[int], feasible: BoolArray, recorded: Victims, generator: str
    ) -> Found | None:
        session = self.session
        part = JobCopy(job, job.tree.holding([*job.tree.active, *tasks]))
        settled = frozenset(task for batch in recorded for task in batch.tasks)
        ground = Ground(session, tasks, _with_nodes(session, feasible, recorded), recorded)
        line = batches(session, self.pool, settled)
        for chosen in GENERATORS[generator](ground, line):
            added = frozenset(task for batch in chosen for task in batch.tasks)
            key = (len(tasks), settled, added)
            if key in self._failed:
                continue
            found = self._play(part, tasks, ground.feasible, _distinct([*recorded, *chosen]))
            if found is not None:
                return found
            self._failed.add(key)
        return None

    # one scenario

    def _play(self, job: JobCopy, tasks: list[int], feasible: BoolArray, victims: Victims) -> Found | None:
        session = self.session
        if not victims:
            return None
        statement = session.statement()
        used = job.tree.used
        came_from: dict[int, int] = {}
        for batch in victims:
            for task in batch.tasks:
                came_from[task] = int(session.node[task])
                statement.evict(task, for_=job.key, reason=session.action)
        evicted = set(came_from)
        nodes = _with_nodes(session, feasible, victims, came_from)
        if not self._place_all(statement, job, nodes, victims, evicted):
            statement.discard()
            return None
        status = session.status
        lost = {task for task in evicted if status[task] == _RELEASING}
        moved = {task for task in evicted if status[task] == _PIPELINED}
        if job.tree.used <= used or not job.tree.is_whole or not self._valid(job, tasks, victims, evicted - lost, came_from):
            statement.discard()
            return None
        gone = lost | moved
        return Found(statement, [batch for batch in victims if any(task in gone for task in batch.tasks)])

    def _place_all(
        self, statement: Statement, job: JobCopy, nodes: BoolArray, victims: Victims, evicted: set[int]
    ) -> bool:
        """Place the job and what was evicted, once each, in the order of fairness. False if the job finds no place."""
        session = self.session
        concerned = {batch.job.row: batch.job for batch in victims}
        unrelated = not session.semantics.victims_are_minimal
        others = [each for each in self._pending if unrelated and each.row not in concerned and each.row != job.row]
        left = {*concerned, job.row}
        forest = JobForest(
            session, [job, *concerned.values(), *others], lambda each: next_to_place(session, each.tree, evicted)
        )
        hopeless: set[int] = set()
        while left and (each := forest.pop()) is not None:
            if each.row not in left:
                continue
            left.discard(each.row)
            placing = Placing(session, statement, nodes, evicted, hopeless)
            placed = placing.place(whole_job(each), each.tree)
            if each.row == job.row and not placed:
                return False
        return True

    def _valid(
        self, job: JobCopy, tasks: list[int], victims: Victims, stays: set[int], came_from: dict[int, int]
    ) -> bool:
        by_job: dict[int, tuple[Job, list[int]]] = {}
        for batch in victims:
            by_job.setdefault(batch.job.row, (batch.job, []))[1].extend(batch.tasks)
        return self.validate(Scenario(job, tasks, list(by_job.values()), frozenset(stays), came_from))


def _wider(first: int, most: int) -> Iterator[int]:
    """Nothing beyond what was chosen, then more and more of the line."""
    yield 0
    size = max(1, first)
    while size < most:
        size = min(4 * size, most)
        yield size


def _distinct(victims: Victims) -> Victims:
    """Without batches that are there already."""
    seen: set[int] = set()
    out: list[Batch] = []
    for batch in victims:
        if not any(task in seen for task in batch.tasks):
            out.append(batch)
            seen.update(batch.tasks)
    return out


def _with_nodes(
    session: Session, nodes: BoolArray, victims: Sequence[Batch], came_from: dict[int, int] | None = None
) -> BoolArray:
    rows = [came_from[task] if came_from else int(session.node[task]) for batch in victims for task in batch.tasks]
    out = nodes.copy()
    out[[row for row in rows if row >= 0]] = True
    return out
