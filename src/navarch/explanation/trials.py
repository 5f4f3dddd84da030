"""Trials: the scheduler itself, run on a changed input. An explanation accepts no other proof.

A trial takes the way of `navarch plan`: the same code reads the objects, and the same number of cycles is decided. A job has
started when pods of it, at least as many as its minMember, are bound or run at the end of a cycle. Where finished pods, or a
minMember of 0, make that a matter of reading, `sure` is False and the explanation claims nothing. Of a job that has started and has
pods that wait, a trial asks whether one more of them is bound (`goal`).

Trials and time are limited. When either is used up, `Spent` ends the search, and what was established until then remains. A trial that
takes a third of the time that is left is given up before its next attempt to place or evict, so that other questions get an answer.
Only the trial of the input as it is goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from navarch.apis.errors import ObjectError
from navarch.engine.record import CycleRecord, JobDecision
from navarch.engine.session import CycleStopped
from navarch.explanation.documents import Input
from navarch.explanation.result import HELD
from navarch.ingest.groups import shown_key
from navarch.model.cluster import Cluster
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, TaskSpec
from navarch.offline.cycles import Cycles, Rules

if TYPE_CHECKING:
    from navarch.explanation.shared_run import SharedRuns

MOST_CYCLES = 3
"""Cycles of a trial at most: one evicts, the next binds, and one more for what follows from that."""
_SHARE = 1 / 3
"""Of the time that is left, a trial may take so much."""


class Found(Protocol):
    """What objects say, by name."""

    @property
    def jobs(self) -> Mapping[str, JobSpec]: ...

    @property
    def tasks(self) -> Mapping[str, TaskSpec]: ...

    mistakes: list[ObjectError]


class Run(Protocol):
    """Objects in the model, and cycles over them."""

    rules: Rules
    now: float

    @property
    def cluster(self) -> Cluster: ...

    @property
    def inventory(self) -> Found: ...

    def snapshot(self) -> Snapshot: ...

    def decide(self, proceed: Callable[[], bool] | None = None) -> CycleRecord: ...

    def close(self) -> None: ...


RunOf = Callable[[Sequence[Mapping[str, Any]], Sequence[str], bool], Run | None]
"""Changed and added objects, removed ones, whether changed ones move to the end -> cycles; None: it cannot be tried."""


class Spent(Exception):
    """No trials or no time are left, or a trial takes too much of it."""


@dataclass(frozen=True, slots=True)
class PodTally:
    """How many pods of a job hold a node at the end of a cycle, and how many it needs."""

    min_member: int = 1
    bound: int = 0
    finished: int = 0
    pending: int = 0

    @property
    def started(self) -> bool:
        return self.bound >= max(1, self.min_member)

    @property
    def goal(self) -> int:
        """How many pods have to be bound before one that waits now has started with its job; 0: the minimum of the job."""
        return self.bound + 1 if self.started and self.pending else 0

    def reaches(self, goal: int) -> bool:
        return self.bound >= goal if goal else self.started

    def may_reach(self, goal: int) -> bool:
        """Whether some reading of "at least minMember pods are bound" holds. How many are bound is no matter of reading."""
        return self.reaches(goal) if goal else self.bound + self.finished >= max(1, self.min_member)


def tally_of(decision: JobDecision | None) -> PodTally:
    if decision is None:
        return PodTally()
    pods = decision.pods
    bound = sum(pods.get(each, 0) for each in HELD)
    return PodTally(decision.min_member, bound, pods.get("Succeeded", 0), pods.get("Pending", 0))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave. `cycles`: after how many the job has started; None: not within those that were run."""

    cycles: int | None
    sure: bool
    key: str
    started: Mapping[str, bool]
    """Jobs that the records tell of -> whether they hold their minimum at the end. Empty where the job did not start."""
    evicted: frozenset[str]
    """Jobs, or pods without one, that lost a pod."""
    records: Sequence[CycleRecord] = ()
    """Kept of the input as it is; those of trials would fill the memory."""

    @property
    def starts(self) -> bool:
        return self.cycles is not None

    @property
    def decision(self) -> JobDecision | None:
        """What the first cycle said of the job."""
        return next((each for each in self.records[0].jobs if each.job == self.key), None) if self.records else None


def started_after(records: Sequence[CycleRecord]) -> dict[str, bool]:
    """Jobs with pods that records tell of -> whether they hold their minimum in the end."""
    return {shown_key(each.job): tally_of(each).started for record in records for each in record.jobs if each.pods}


def evicted_in(records: Sequence[CycleRecord]) -> frozenset[str]:
    """Jobs, or pods without one, that lose a pod."""
    return frozenset(shown_key(each.job) or each.pod for record in records for each in record.evictions)


class Trials:
    def __init__(
        self,
        given: Input,
        rules: Rules,
        follow: Callable[[Run], str],
        trials: int,
        seconds: float,
        clock: Callable[[], float] = perf_counter,
        progress: Callable[[int, int], None] | None = None,
        run_of: RunOf | None = None,
        most_cycles: int = MOST_CYCLES,
        shared: SharedRuns | None = None,
        key: str = "",
        left_out: Iterable[ObjectError] = (),
        goal: int = 0,
    ) -> None:
        """`follow` finds the job in a changed input. `progress` is told the trials that were run, and the most there may be. `run_of`
        makes the cycles of a changed input; by default as `navarch plan` does, or from a reading that is `shared`. `left_out`:
        mistakes in objects that the input is read without; any other mistake makes a change invalid. `goal`: how many pods of the job
        have to be bound; 0: its minimum."""
        self._shared, self._key = shared, key
        self.input, self.rules = given, rules
        self._run_of = self._as_plan if run_of is None else run_of
        self.most_cycles = most_cycles
        self._follow = follow
        self._most, self._clock = trials, clock
        self._until = clock() + seconds
        self._progress = progress
        self.used = 0
        self.goal = goal
        self._known: dict[bytes, Outcome | None] = {}
        self._left_out = {_what(each) for each in left_out}

    @property
    def left(self) -> int:
        return 0 if self._clock() >= self._until else max(0, self._most - self.used)

    def _in_time(self) -> Callable[[], bool]:
        """Whether a trial that begins now may go on."""
        now = self._clock()
        until = now + (self._until - now) * _SHARE
        return lambda: self._clock() < until

    def starts(self, objects: Sequence[Mapping[str, Any]] = (), remove: Sequence[str] = (), *, cycles: int = MOST_CYCLES) -> bool:
        found = self.run(objects, remove, cycles=cycles)
        return found is not None and found.starts

    def run(
        self,
        objects: Sequence[Mapping[str, Any]] = (),
        remove: Sequence[str] = (),
        *,
        cycles: int = MOST_CYCLES,
        at_end: bool = False,
        keep: bool = False,
        look: Callable[[Run], None] | None = None,
    ) -> Outcome | None:
        """Decide for the changed input until the job has started, for this many cycles at most. None: the change is not valid. `look`
        is shown the changed input before the first cycle, if it is not one that was tried before."""
        key = msgspec.msgpack.encode((objects, sorted(remove), cycles, at_end))
        if key in self._known:
            return self._known[key]
        if not self.left and not keep:
            raise Spent
        self.used += 1
        if self._progress is not None:
            self._progress(self.used, self._most)
        run = self._run_of(objects, remove, at_end)
        outcome = None
        if run is not None:
            if all(_what(each) in self._left_out for each in run.inventory.mistakes):
                if look is not None:
                    look(run)
                try:
                    proceed = None if keep else self._in_time()
                    most = min(cycles, self.most_cycles)
                    outcome = outcome_of(run, self._follow(run), most, self.goal, keep=keep, proceed=proceed)
                except CycleStopped:
                    run.close()
                    raise Spent from None
            run.close()
        self._known[key] = outcome
        return outcome

    def changed(self, objects: Sequence[Mapping[str, Any]]) -> Run | None:
        """The changed input before any cycle, to be closed; None where it cannot be had."""
        return self._run_of(objects, (), False)

    def _as_plan(self, objects: Sequence[Mapping[str, Any]], remove: Sequence[str], at_end: bool) -> Run | None:
        if self._shared is not None and not at_end and self._shared.can(objects, remove):
            return self._shared.run(objects, remove, self._key)
        return Cycles(self.input.changed(objects, remove, at_end=at_end), self.rules)


def _what(mistake: ObjectError) -> tuple[str, str, str, str]:
    """The same in every reading of the object, wherever it stands in the input."""
    return mistake.kind, mistake.name, mistake.path, mistake.found


def outcome_of(
    run: Run, key: str, cycles: int, goal: int = 0, *, keep: bool = False, proceed: Callable[[], bool] | None = None
) -> Outcome:
    """Decide until the job has started, for this many cycles at most. `keep`: with all records."""
    records: list[CycleRecord] = []
    tally, ended = PodTally(), None
    for number in range(1, cycles + 1):
        record = run.decide(proceed)
        records.append(record)
        tally = tally_of(next((each for each in record.jobs if each.job == key), None))
        if tally.reaches(goal):
            ended = number
            break
        if is_settled(run, record):
            break
    return Outcome(
        cycles=ended,
        sure=ended is not None or (bool(key) and not tally.may_reach(goal)),
        key=key,
        started=started_after(records) if ended is not None else {},
        evicted=evicted_in(records),
        records=records if keep else (),
    )


def is_settled(run: Run, record: CycleRecord) -> bool:
    """Whether the next cycle would decide the same: this one moved no pod and changed no phase. Conditions are read by no rule but
    that of a job which is tried once (KAI's schedulingBackoff)."""
    if record.binds or record.evictions or record.nominations:
        return False
    jobs = run.cluster.jobs
    for decision in record.jobs:
        if decision.changed:
            spec = jobs.specs[jobs.rows.of[decision.job]]
            if spec is None or spec.tried_once or spec.phase != decision.phase:
                return False
            if (spec.last_started, spec.last_evicted, spec.stale_since) != (
                decision.last_started,
                decision.last_evicted,
                decision.stale_since,
            ):
                return False
    return True
