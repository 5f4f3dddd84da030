"""The search of one explanation: cause, nodes, order, blocking jobs and changes, each proved by trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import islice

from navarch.engine.job_sentence import behind_others, why_it_waits
from navarch.engine.reasons import NEVER, Reason, dominant, takes_no_part
from navarch.explanation import cause
from navarch.explanation.blockers import BlockingSet, blocking_set
from navarch.explanation.changes import admin, user
from navarch.explanation.changes.attempts import Changes
from navarch.explanation.changes.clauses import clauses_of
from navarch.explanation.changes.cluster_edits import lifted, with_weight
from navarch.explanation.changes.job_edits import amounts_of, with_amount
from navarch.explanation.changes.moves import moves_for
from navarch.explanation.deciding import deciding
from navarch.explanation.likely_blockers import likely_blockers
from navarch.explanation.names import workload_names
from navarch.explanation.nodes import feasible_nodes, nodes_answer, opened
from navarch.explanation.order import order_of
from navarch.explanation.placements import placement_of
from navarch.explanation.result import (
    NOTHING_STARTS_IT,
    BlockersAnswer,
    Cause,
    Change,
    ClauseAnswer,
    EvictionAnswer,
    Explanation,
    MayTake,
    NodesAnswer,
    Price,
)
from navarch.explanation.subject import Census, Object, Subject, Unit
from navarch.explanation.trials import Outcome, Run, Spent, Trials
from navarch.explanation.victims import may_take
from navarch.ingest.groups import shown_key
from navarch.model.resources import format_amount
from navarch.model.status import IS_ALLOCATED, IS_TERMINAL
from navarch.views.pods import count_by_status

FIRST_ANSWERS = ("whether the dominant cause is the only one", "whether it starts alone", "nodes by clause")
"""The parts of the search that come first: with them cause, order and nodes are answered."""


class Search:
    """One explanation in the making. Sections come in the order of what they are worth."""

    def __init__(self, census: Census, key: str, trials: Trials, reached: Callable[[Search, str], None] | None = None) -> None:
        """`reached` is told each part of the search that has ended."""
        self._reached = reached
        self.census, self.key, self.trials = census, key, trials
        self.subject: Subject = census.subject(key)
        self.answer = Explanation(self.subject.name, "pending", Cause("", ""))
        self._tally = self.subject.tally()
        self._grows = trials.goal > 0
        """The job has started, and the question is what starts one more of its pods."""
        self._never = False
        self._reason: Reason | None = None
        """Why the job waits, as things stand before any action."""
        self._behind = ""
        self._other_units: list[Unit] | None = None
        self._running_units: list[Unit] | None = None
        self._guessed: list[BlockingSet] | None = None
        """At most one; None: nothing was guessed yet."""

    def explain(self) -> Explanation:
        answer, tasks = self.answer, self.subject.tasks
        answer.pods = count_by_status(tasks)
        if not tasks:
            answer.cause = self._why_empty()
            return answer
        if all(IS_TERMINAL[task.status] for task in tasks):
            answer.state = "gone"
            succeeded = self._tally.finished
            answer.cause = cause.finished(succeeded, len(tasks) - succeeded)
            return answer
        base = self.trials.run(keep=True)
        assert base is not None
        self.base = base
        answer.cause = self._cause(base)
        answer.nodes = self._nodes(base)
        answer.evictions = self._evictions(base)
        if self._tally.started:
            answer.state = "running"
            placed = [task for task in sorted(tasks, key=lambda task: task.key) if task.node and IS_ALLOCATED[task.status]]
            found = (placement_of(self.trials, task) for task in placed[:_FEW])
            answer.placements = [each for each in found if each is not None]
            if not self._grows:
                answer.cause = cause.runs(sorted({task.node for task in tasks if task.node}))
                return answer
        self._order()
        self.changes = Changes(self.trials, self.subject, base)
        self._blocking: list[Unit] = []
        clauses = (FIRST_ANSWERS[2], self._clauses)
        impossible = ("whether it starts on the empty cluster", self._impossible)
        for name, part in (
            (FIRST_ANSWERS[0], self._only),
            (FIRST_ANSWERS[1], self._alone),
            *((clauses, impossible) if len(self._running()) > _MANY else (impossible, clauses)),
            ("blocking jobs", self._blockers),
            ("what the user can change", self._user),
            ("what an administrator can change", self._admin),
        ):
            try:
                part()
            except Spent:
                answer.not_established.append(name)
            if self._reached is not None:
                self._reached(self, name)
        self._decide()
        answer.changes = _sorted(self.changes.found)
        answer.complete = not answer.not_established
        starts_anyway = base.cycles == 1 and answer.blockers.minimal
        helped = self._blocking or starts_anyway or any(each.starts for each in answer.changes)
        if answer.complete and not self._never and not helped:
            answer.complete = False
            answer.not_established.append(NOTHING_STARTS_IT)
        return answer

    # 1: cause

    def _why_empty(self) -> Cause:
        """Volcano's controller makes the pods of a group that is admitted. Without minimum resources it is admitted without a vote."""
        asks = self.subject.spec is not None and self.subject.spec.min_resources is not None
        base = self.trials.run(keep=True) if asks else None
        return cause.empty(base.decision.reasons if base is not None and base.decision is not None else ())

    def _cause(self, base: Outcome) -> Cause:
        record = base.records[0]
        if base.cycles == 1:
            return cause.starts(sorted({bind.node for bind in record.binds if bind.job == base.key}), grows=self._grows)
        return cause.refused(record, base.decision, base.key)

    def _decide(self) -> None:
        """The job's own sentence, and the rule that decides alone."""
        answer, reason = self.answer, self._reason
        if self.base.cycles is not None or self._never or self._grows:
            return
        reasons = self.base.decision.reasons if self.base.decision is not None else ()
        if reason is not None and not takes_no_part(dominant(reasons)):
            answer.sentence = reason.message
        elif reason is None and answer.order.starts_alone:
            answer.sentence = self._behind
        others = sorted(self._others(), key=lambda unit: not unit.holds_nodes)
        names = workload_names(self.census, [unit.name for unit in others])
        answer.deciding = deciding(self.changes, others, names, "" if reason is None else reason.code)

    def _only(self) -> None:
        told = self.answer.cause
        if told.only is not None:
            return
        for text, objects, remove in self._lifts():
            outcome = self.trials.run(objects, remove)
            if outcome is not None and outcome.sure:
                told.only, told.proof = outcome.starts, text
                if outcome.starts:
                    return

    def _lifts(self) -> Iterable[tuple[str, Sequence[Object], Sequence[str]]]:
        """Ways to lift the dominant cause and nothing else."""
        given, spec, code = self.trials.input, self.subject.spec, self.answer.cause.code
        if code in _BOUND_CODES and spec is not None:
            chain = admin.queues_above(given, spec.queue)
            free = [each for queue in chain if (each := lifted(queue, ("limit", "quota"))) is not None]
            if free:
                yield f"bounds of {spec.queue} lifted", free, ()
            heavy = [with_weight(queue, 1000) for queue in chain[:1]]
            if heavy:
                yield f"weight of {spec.queue} raised to 1000", heavy, ()

    # 8: evictions

    def _evictions(self, base: Outcome) -> list[EvictionAnswer]:
        """Pods of the job that the cycle evicts, and whether other jobs could have gone instead."""
        record = base.records[0]
        mine = [each for each in record.evictions if each.job == base.key]
        if not mine:
            return []
        session = opened(self.census.run)
        jobs = {job.key: job for job in session.all_jobs()}
        out = []
        for each in mine:
            gains = jobs.get(each.for_)
            others = [job for key, job in sorted(jobs.items()) if key not in (each.job, each.for_) and job.ready_count][:_MOST_OTHERS]
            instead = [] if gains is None else [may_take(session, gains, job) for job in others]
            out.append(EvictionAnswer(each.pod, each.node, each.action, shown_key(each.for_), each.reason, each.message, instead))
        session.dissolve()
        return out

    # 2: nodes

    def _nodes(self, base: Outcome) -> NodesAnswer:
        session = opened(self.census.run)
        self._order_answer = order_of(session, base.records[0], self.key)
        job = next((each for each in session.jobs_with_pending() if each.key == self.key), None)
        self._reason = None if job is None else why_it_waits(session, job)
        self._behind = "" if job is None else behind_others(session, job)
        found = nodes_answer(session, self.key, base.decision)
        session.dissolve()
        return found

    def _clauses(self) -> None:
        self._found_clauses = clauses_of(self.subject, self.trials.input.of_kind("Node"))
        for clause in self._found_clauses:
            self._clause(clause.text, self.subject.edited(clause.edit))
        for resource, amount in amounts_of(self.subject).items():
            self._clause(f"{resource} {format_amount(resource, amount)}", with_amount(self.subject, resource, Fraction(0)))

    def _clause(self, text: str, objects: Sequence[Object]) -> None:
        if not objects:
            return
        nodes: list[int] = []
        """How many would take a pod; empty: the trial was run before."""
        outcome = self.trials.run(objects, look=lambda run: nodes.append(self._feasible(run)))
        if outcome is None or not outcome.sure:
            return
        if not nodes:
            run = self.trials.changed(objects)
            assert run is not None
            nodes.append(self._feasible(run))
            run.close()
        self.answer.nodes.clauses.append(ClauseAnswer(text, nodes[0], outcome.starts))

    def _feasible(self, run: Run) -> int:
        session = opened(run)
        found = feasible_nodes(session, self.census.follow(self.key, run))
        session.dissolve()
        return found

    # 3: order

    def _order(self) -> None:
        self.answer.order = self._order_answer
        if not self.answer.order.queue and self.subject.spec is not None:
            self.answer.order.queue = self.subject.spec.queue

    def _alone(self) -> None:
        waiting = [each for unit in self._others() if not unit.holds_nodes for each in unit.references]
        self.answer.order.starts_alone = self.trials.starts((), waiting)

    # 4: blockers, and 7: never

    def _others(self) -> list[Unit]:
        """Every other unit, by name."""
        if self._other_units is None:
            self._other_units = [unit for name, unit in sorted(self.census.units.items()) if name != self.subject.name]
        return self._other_units

    def _impossible(self) -> None:
        """Not impossible as long as it starts in any reading of "empty": without other pods, or without what makes pods as well. A job
        that starts beside what runs, or when a few running jobs are gone, is not impossible either."""
        if self.answer.order.starts_alone or self._few_blockers() is not None:
            return
        if not self.trials.left:
            raise Spent
        pods = [each for unit in self._others() for each in (*unit.pods, *unit.claims)]
        workloads = [each for unit in self._others() for each in unit.workloads]
        makers = sorted({*workloads, *self._makers()})
        for remove in [pods] + ([[*pods, *makers]] if makers else []):
            outcome = self.trials.run((), remove)
            if outcome is None or not outcome.sure or outcome.starts:
                return
        self._never = True
        if self._grows:
            self.answer.notes.append("no more of its pods start without any other job either (proved)")
        else:
            self.answer.state = "impossible"

    def _makers(self) -> list[str]:
        return self.census.makers_beside(self.subject)

    def _blockers(self) -> None:
        if self._never:
            return
        if not self.trials.left:
            raise Spent
        found = self._few_blockers()
        running = self._running()
        if found is None:
            found = self._any_blockers(_by_cost(running), _by_cost(unit for unit in self._others() if not unit.holds_nodes))
        if found is None:
            return
        self._blocking = found.units
        told = self.answer.cause
        if told.only is None and told.code in _ROOM_CODES and running and found.units:
            told.only = all(unit.holds_nodes for unit in found.units)
            told.proof = "the blocking jobs taken away" if told.only else "all running jobs taken away"
        self.answer.blockers = BlockersAnswer([unit.name for unit in found.units], found.minimal, self._may_take(found.units))
        if not found.minimal:
            self.answer.not_established.append("whether each blocking job is needed")

    def _any_blockers(self, running: list[Unit], waiting: list[Unit]) -> BlockingSet | None:
        for candidates in (running, [*running, *waiting], waiting):
            found = blocking_set(candidates, self._starts_without, self._may_start_without)
            if found is not None:
                return found
        return None

    def _running(self) -> list[Unit]:
        """Other units with pods on nodes, by name."""
        if self._running_units is None:
            self._running_units = [unit for unit in self._others() if unit.holds_nodes]
        return self._running_units

    def _few_blockers(self) -> BlockingSet | None:
        """The blocking set that is guessed from room alone, where many jobs run; None: no guess is right."""
        if self._guessed is None and len(self._running()) > _MANY:
            self._guessed = []
            for candidates in self._guesses():
                found = blocking_set(candidates, self._starts_without, self._may_start_without)
                if found is not None:
                    self._guessed.append(found)
                    break
        return self._guessed[0] if self._guessed else None

    def _guesses(self) -> list[list[Unit]]:
        session = opened(self.census.run)
        job = next((each for each in session.jobs_with_pending() if each.key == self.key), None)
        found = [] if job is None else likely_blockers(session, job, self.census.units)
        session.dissolve()
        return found

    def _may_take(self, units: Sequence[Unit]) -> list[MayTake]:
        session = opened(self.census.run)
        jobs = {job.key: job for job in session.all_jobs()}
        found = []
        for unit in units if self.key in jobs else ():
            for key in unit.keys:
                if key in jobs:
                    found.append(may_take(session, jobs[self.key], jobs[key]))
                else:
                    found.append(MayTake(unit.name, False, "another scheduler decides for it"))
        session.dissolve()
        return found

    def _starts_without(self, units: Sequence[Unit]) -> bool:
        """Whether it starts in one cycle without these, whether or not what owns their pods makes new ones."""
        return all(self._one_cycle(remove) for remove in _readings(units))

    def _may_start_without(self, units: Sequence[Unit]) -> bool:
        return any(self._one_cycle(remove) for remove in _readings(units))

    def _one_cycle(self, remove: Sequence[str]) -> bool:
        outcome = self.trials.run((), remove, cycles=1)
        return outcome is not None and outcome.starts

    # 5: the user

    def _user(self) -> None:
        changes, base = self.changes, self.base
        if base.cycles is not None:
            gone = sorted(base.evicted - {self.subject.name})
            known = workload_names(self.census, gone)
            what = "more of its pods start by themselves" if self._grows else "it starts by itself"
            text = f"nothing: {what}{f', after {_listed([known.get(each, each) for each in gone])} went' if gone else ''}"
            changes.found.append(Change("user", "wait", text, [], [], True, base.cycles, Price(evicts=gone)))
            if base.cycles == 1:
                return
        user.missing_group(changes)
        user.drop_clauses(changes, self._found_clauses)
        if not self._grows:  # what follows belongs to the whole job, which runs
            user.relax_topology(changes)
            if not self._lacks_room_for_ever:
                user.other_queues(changes, self.trials.input.of_kind("Queue"))
                user.higher_priority(changes)
            user.smaller_gang(changes)
        user.smaller_pods(changes)

    @property
    def _lacks_room_for_ever(self) -> bool:
        """Empty nodes have no room for it either, so no queue, weight, bound or priority helps."""
        return self._never and self.answer.cause.code == NEVER

    # 6: the administrator

    def _defragment(self) -> None:
        session = opened(self.census.run)
        job = next((each for each in session.jobs_with_pending() if each.key == self.key), None)
        sets = [] if job is None else list(islice(moves_for(session, job, self.trials.input), _MOST_MOVES))
        session.dissolve()
        for moves in sets:
            text = f"move {' and '.join(move.text for move in moves)}"
            if self.changes.attempt("admin", "moves", text, [move.manifest for move in moves]):
                return

    def _admin(self) -> None:
        changes = self.changes
        if self.base.cycles == 1:
            return
        admin.missing_queue(changes)
        if not self._lacks_room_for_ever:
            admin.more_quota(changes, self.base.records[0])
            admin.more_namespace_quota(changes)
            admin.more_weight(changes)
        admin.more_nodes(changes)
        self._defragment()
        admin.end_blockers(changes, self._blocking, workload_names(self.census, [unit.name for unit in self._blocking]))


_MOST_MOVES = 3
"""Sets of moves that are tried."""
_FEW = 5
_MANY = 24
"""With at least this many running jobs, a guess at the blocking set comes first, and the empty cluster later."""
_MOST_OTHERS = 10
_BOUND_CODES = frozenset(
    {
        "NonPreemptibleOverQuota",
        "OverFairShare",
        "OverLimit",
        "QueueLimit",
        "QueueOverDeserved",
        "QueueOverused",
        "QueueQuotaInsufficient",
    }
)
_ROOM_CODES = frozenset({"ClusterFull", "Unschedulable", "PodSchedulingErrors", "Promised", "NotReached"})


def _by_cost(units: Iterable[Unit]) -> list[Unit]:
    """Less important and younger ones first."""
    return sorted(units, key=lambda unit: (max(task.pod_priority for task in unit.tasks), -max(t.created for t in unit.tasks)))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")


def _readings(units: Sequence[Unit]) -> list[list[str]]:
    """What leaves the input with these units: their pods, or with them the workloads that would make new ones."""
    pods = [each for unit in units for each in unit.references]
    owners = [each for unit in units for each in unit.owners]
    return [pods, [*pods, *dict.fromkeys(owners)]] if owners else [pods]


def _sorted(changes: Sequence[Change]) -> list[Change]:
    """What starts the job first; otherwise as they were found, which is by what they cost."""
    return sorted(changes, key=lambda change: not change.starts)
