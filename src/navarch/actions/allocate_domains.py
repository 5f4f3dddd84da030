"""Allocation of a job with sub-groups or a topology demand: chooses a domain for the job, and one inside it for each part.

Plugins give the domains to try, in lists of equal quality, closest first. A domain is a solution if the job could start with what
is placed in it. Among the solutions of a list the one with the best sum of its parts' scores is used, and later lists are not
tried. Trials are statements that are rolled back. Most domains need no trial: the number of tasks of each class that a domain
can take is bounded by a sum over its nodes, and a domain with too little is skipped. A part tries its domains in order of score,
so the first one that fits is the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from navarch.engine.gangs.sub_jobs import SubJob, still_needed
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.points.protocols import Purpose, SubJobMissing
from navarch.engine.reasons import Event, Reason
from navarch.engine.session import Session
from navarch.engine.statement import Operation, Statement
from navarch.engine.topology.domains import NOWHERE
from navarch.model.resources import IntArray
from navarch.model.status import TaskStatus

_ENDLESS = 1 << 40
"""More tasks than any domain takes."""
_ROOM = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)
PlaceTasks = Callable[[Job, list[int], Statement, SubJob, int], object]
"""Places a part's tasks (from the end of the list) in a domain until the part is ready."""


@dataclass(slots=True)
class RemainingWork:
    """The remaining work of a job: its parts, and each part's tasks in reverse order."""

    session: Session
    parts: list[SubJob]
    tasks: dict[str, list[int]]
    needed: frozenset[str]
    """Parts that the job needs to start; they come first."""

    def copy(self) -> RemainingWork:
        return RemainingWork(self.session, list(self.parts), {name: list(rows) for name, rows in self.tasks.items()}, self.needed)

    def pop(self) -> SubJob:
        best = min(self.parts, key=lambda sub: (sub.name not in self.needed, self.session.sub_job_order(sub)))
        self.parts.remove(best)
        return best


@dataclass(slots=True)
class Solution:
    domain: int
    score: float
    work: RemainingWork
    placed: list[tuple[SubJob, int]]
    statement: Statement
    moves: list[Operation] = field(default_factory=list)


def remaining_work(job: Job, waiting: Sequence[int]) -> RemainingWork:
    session, wanted = job.session, set(waiting)
    tasks: dict[str, list[int]] = {}
    parts: list[SubJob] = []
    for sub in job.sub_jobs:
        rows = [task for task in sub.tasks if task in wanted]
        if rows:
            tasks[sub.name] = session.sorted_tasks(rows, reverse=True)
            parts.append(sub)
    needed = frozenset(sub.name for sub in still_needed(session, job))
    return RemainingWork(session, parts, tasks, needed)


class DomainSearch:
    prunes: ClassVar[bool] = True
    """Skip domains that a bound shows to fail, and rank domains without a trial where possible. False: try each of them, which must
    give the same result."""

    def __init__(self, session: Session, place: PlaceTasks) -> None:
        self.session = session
        self._place = place
        self._tree = session.domains.tree
        self._passed_over = False
        """The current attempt skipped a domain for a part without a trial."""

    def turn(self, job: Job, work: RemainingWork) -> RemainingWork | None:
        """One attempt at a job. Returns the remaining work if the job is ready and has tasks left, else None."""
        session = self.session
        unknown = session.domains.unknown_tier(job)
        if unknown:
            text = f'no HyperNode has the tier name "{unknown}"'
            job.refuse(Reason("TopologyLevelNotFound", text, undone_by=(Event.NODE_CHANGED, Event.JOB_CHANGED)))
            return None
        found = self._search(job, work)
        if found is None:
            return None
        if session.job_ready(job):
            found.statement.commit()
            session.domains.settle(job, found.domain, found.placed)
            return found.work if found.work.parts else None
        return None

    # the job

    def _search(self, job: Job, work: RemainingWork) -> Solution | None:
        """The best solution of the first list that has one. Its statement is applied but not committed."""
        session = self.session
        lists = session.gradient_for_job(job, self._tree.top, Purpose.ALLOCATE)
        missing = session.job_missing(job) - job.counts[TaskStatus.PIPELINED]
        room = self._room(task for rows in work.tasks.values() for task in rows)
        last, tried = NOWHERE, NOWHERE
        seen: set[int] = set()
        for domains in lists:
            solutions: list[Solution] = []
            seen.update(domains)
            last = domains[-1] if domains else last
            roomy = [domain for domain in domains if room[domain] >= missing]
            ranked = self._ranked(work, roomy, seen)
            for tried in roomy if ranked is None else ranked:
                found = self._attempt(job, work.copy(), tried, compared=len(domains) > 1)
                if found is None:
                    continue
                if ranked is not None or len(domains) == 1:
                    return found
                found.moves = list(found.statement.operations)
                found.statement.discard()
                solutions.append(found)
            if solutions:
                best = max(solutions, key=lambda s: s.score)  # the first of equals
                _replay(job, best)
                return best
        if last != NOWHERE and (last != tried or self._passed_over):
            self._explain(job, work, last)
        self._refuse(job, work)
        return None

    def _refuse(self, job: Job, work: RemainingWork) -> None:
        """Add the reason that no domain was found, for the job or for the first part with a bound."""
        where = self.session.domains
        demands = [(where.bound(job), "the job"), *((where.bound_of_part(s), f"the sub-group {s.name}") for s in work.parts)]
        for bound, part in demands:
            if bound is not None:
                text = f"no HyperNode of tier {bound} or lower has room for {part}"
                job.refuse(Reason("NoHyperNode", text, undone_by=_ROOM))
                return

    def _ranked(self, work: RemainingWork, domains: list[int], seen: set[int]) -> list[int] | None:
        """The domains best first, where the order is known without a trial: the job has one part, and every domain inside them was
        tried before without success. None: each domain must be tried."""
        if not self.prunes or len(work.parts) != 1 or len(domains) < 2:
            return None
        part, session = work.parts[0], self.session
        for domain in domains:
            lists = session.gradient_for_sub_job(part, domain, Purpose.ALLOCATE)
            if not seen.issuperset(each for found in lists for each in found):
                return None
        scores = {domain: session.hyper_node_scores(part, [domain])[0] for domain in domains}
        return sorted(domains, key=lambda domain: -scores[domain])

    def _explain(self, job: Job, work: RemainingWork, domain: int) -> None:
        """Record the fit errors of the tasks in a domain that was skipped."""
        found = self._attempt(job, work.copy(), domain, pruned=False)
        if found is not None:
            found.statement.discard()

    def _attempt(self, job: Job, work: RemainingWork, domain: int, *, compared: bool = False, pruned: bool = True) -> Solution | None:
        """Place as much of the job in the domain as it needs. None: it could not start there, and nothing is left behind."""
        session = self.session
        job.fit_errors.clear()
        self._passed_over = False
        statement = session.statement()
        score = 0.0
        placed: list[tuple[SubJob, int]] = []
        before: dict[str, tuple[SubJob, int]] = {}
        while work.parts:
            sub = work.pop()
            found = self._part(job, sub, work.tasks[sub.name], domain, statement, compared=compared, pruned=pruned)
            if found is None:
                if pruned and self._is_hopeless(job, work):
                    self._passed_over = True
                    break
                continue
            where, value, left = found
            score += value
            placed.append((sub, where))
            before.setdefault(sub.name, (sub, session.domains.widen(sub, where)))
            work.tasks[sub.name] = left
            if left:
                work.parts.append(sub)
            if session.job_ready(job):
                break
        for sub, was in before.values():
            session.domains.restore(sub, was)
        if statement.operations and (session.job_ready(job) or session.job_pipelined(job)):
            return Solution(domain, score, work, placed, statement)
        statement.discard()
        return None

    def _is_hopeless(self, job: Job, work: RemainingWork) -> bool:
        """Whether so many parts failed that the remaining parts cannot reach the minimum."""
        if not self.prunes or not self.session.implementing(SubJobMissing):
            return False
        left = {sub.name for sub in work.parts}
        for policy in job.spec.sub_groups:
            mine = [sub for sub in job.sub_jobs if sub.policy is policy]
            if sum(1 for sub in mine if sub.name in left or sub.is_pipelined) < policy.min_groups:
                return True
        return False

    # a part of it

    def _part(
        self, job: Job, sub: SubJob, tasks: list[int], root: int, statement: Statement, *, compared: bool, pruned: bool
    ) -> tuple[int, float, list[int]] | None:
        """Place a part somewhere inside `root`: the domain, its score, and the tasks that are left; None: nowhere."""
        session = self.session
        promised = self._promised(sub, tasks, root)
        if promised is not None:
            left = self._try(job, sub, tasks, promised, statement)
            if left is not None:
                return promised, 0.0, left
        lists = session.gradient_for_sub_job(sub, root, Purpose.ALLOCATE)
        if pruned and sum(map(len, lists)) > 1:
            lists = self._with_room(sub, tasks, lists)
        for domains in lists:
            if compared and self._scores_depend_on_rivals(sub):
                domains = [d for d in domains if self._fits(job, sub, tasks, d, statement)]
            if not domains:
                continue
            scores = session.hyper_node_scores(sub, domains)
            for i in sorted(range(len(domains)), key=lambda i: -scores[i]):
                left = self._try(job, sub, tasks, domains[i], statement)
                if left is not None:
                    return domains[i], scores[i], left
        return None

    def _scores_depend_on_rivals(self, sub: SubJob) -> bool:
        """Whether scores of domains depend on which of them fit: domains with equal scores are ranked by the tasks of the part that
        they hold. This matters where whole solutions are compared by score."""
        return not self.prunes or self.session.domains.of_part(sub) != NOWHERE

    def _fits(self, job: Job, sub: SubJob, tasks: list[int], domain: int, statement: Statement) -> bool:
        mark = statement.save_point()
        fits = self._try(job, sub, tasks, domain, statement) is not None
        statement.roll_back(mark)
        return fits

    def _try(self, job: Job, sub: SubJob, tasks: list[int], domain: int, statement: Statement) -> list[int] | None:
        """Place the part in just this domain. The tasks that are left, or None and nothing is placed."""
        session = self.session
        if job.fit_errors:
            members = set(sub.tasks)
            for task in [task for task in job.fit_errors if task in members]:
                del job.fit_errors[task]
        mark, left = statement.save_point(), list(tasks)
        self._place(job, left, statement, sub, domain)
        if len(statement) > mark and (session.sub_job_ready(sub) or session.sub_job_pipelined(sub)):
            return left
        statement.roll_back(mark)
        return None

    def _promised(self, sub: SubJob, tasks: list[int], root: int) -> int | None:
        """The domain in which an earlier cycle promised a node to each of the tasks, where that is still allowed."""
        session = self.session
        names = [session.task(task).nominated_node for task in tasks]
        if not all(names):
            return None
        rows = [session.snapshot.nodes.row(name) for name in names]
        if None in rows:
            return None
        domain = self._tree.common(self._tree.holding(row for row in rows if row is not None), session.domains.of_part(sub))
        bound = session.domains.bound_of_part(sub)
        allowed = self._tree.within(domain, root) and (bound is None or self._tree.tier[domain] <= bound)
        return domain if allowed else None

    # how much fits at most

    def _with_room(self, sub: SubJob, tasks: list[int], lists: list[list[int]]) -> list[list[int]]:
        room = self._room(tasks)
        missing = self.session.sub_job_missing(sub) - sub.count(TaskStatus.PIPELINED)
        kept = [[domain for domain in domains if room[domain] >= missing] for domains in lists]
        self._passed_over |= kept != lists
        return kept

    def _room(self, tasks: Iterable[int]) -> IntArray:
        """For each domain, an upper bound on how many of the tasks it can take."""
        session = self.session
        if not self.prunes:
            return np.full(len(self._tree), _ENDLESS)
        kinds: dict[int, TaskClass] = {}
        counts: Counter[int] = Counter()
        for task in tasks:  # classes of one shape compete for the same room
            kind = session.class_of(task)
            kinds.setdefault(kind.shape_number, kind)
            counts[kind.shape_number] += 1
        total = np.zeros(len(self._tree), dtype=np.int64)
        for number, count in counts.items():
            total += np.minimum(self._tree.sums(session.view(kinds[number]).slots(count)), count)
        return total


def _replay(job: Job, solution: Solution) -> None:
    """Apply the solution of a trial. Neighbouring operations of one kind and class are applied in one step."""
    solution.statement = statement = job.session.statement()
    moves = solution.moves
    start = 0
    for end in range(1, len(moves) + 1):
        first = moves[start]
        alike = end < len(moves) and (moves[end].kind, moves[end].task) == (first.kind, first.task)
        if alike and not first.groups:  # each task on shared devices has devices of its own
            continue
        tasks = [task for move in moves[start:end] for task in move.tasks]
        nodes = [node for move in moves[start:end] for node in move.nodes]
        if first.kind == TaskStatus.PIPELINED:
            statement.pipeline(job, tasks, nodes, first.task, first.groups)
        else:
            statement.allocate(job, tasks, nodes, first.task, first.groups)
        start = end
