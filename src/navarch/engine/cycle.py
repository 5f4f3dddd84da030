"""One cycle: `decide(snapshot, policy, registry, now)` opens a session, runs the actions, closes, returns the record.

A pure function of its arguments. The only clock here is a stopwatch for the timings that stand beside the record. What raises while it
works on a job or reads a node costs that one its place: the cycle starts again without it (`containment`). A plugin that fails without
a job or node at hand refuses what needs its consent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count
from time import perf_counter

from msgspec.structs import replace

from navarch.engine.close import close
from navarch.engine.containment.containment import Containment
from navarch.engine.kept_session import keep_session, open_session
from navarch.engine.points.conversation import Conversation, Exchange, Unanswered
from navarch.engine.policy.values import Policy
from navarch.engine.record import CycleRecord, JobFailure
from navarch.engine.registry import Registry
from navarch.engine.session import CycleSettings, CycleStopped
from navarch.engine.steps import StepsUsedUp
from navarch.model.snapshot import Snapshot


def decide(
    snapshot: Snapshot,
    policy: Policy,
    registry: Registry,
    now: float,
    uid: str = "",
    *,
    devices: str = "new",
    report_all: bool = True,
    report_queues: bool = True,
    report_pods: bool = True,
    set_aside: Collection[str] = (),
    left_out_nodes: Collection[str] = (),
    exchanges: Sequence[Exchange] | None = None,
    proceed: Callable[[], bool] | None = None,
    failed_before: Sequence[JobFailure] = (),
    note_job: Callable[[str], None] | None = None,
    steps: int | None = None,
) -> CycleRecord:
    """What to bind, evict and promise now, and why the other jobs wait. `uid` marks conditions set in this cycle; names of newly
    shared devices begin with `devices`.

    `report_all` False leaves out of the record every job that no action processed and whose status is up to date, so that an
    idle cycle over many running jobs costs almost nothing. `report_queues` False leaves out the figures of queues. `report_pods` False
    leaves out the refusals of pods that no node was promised to before. `set_aside`: keys of jobs that take no part because a rule
    failed on them in an earlier cycle; `left_out_nodes`: names of such nodes.

    `exchanges`: what servers outside answered so far. The record has a `question` and no decisions where a rule asks for more: ask it,
    and decide again over the same snapshot (`points/conversation.py`). None: there is no shell that would ask.

    `proceed` is asked before each attempt to place or evict. CycleStopped is raised where it says no: nothing is decided then.

    `failed_before`: failures of jobs in `set_aside` that no record has told yet; this one does. `note_job` gets the key of each
    job that a rule begins to work on, and an empty text when none is at hand.

    `steps`: after so much work (`engine/steps.py`) the record is what was decided so far, and is `cut`; None: no bound."""
    containment = Containment(snapshot, set_aside, left_out_nodes, failed_before)
    timings: dict[str, float] = {}
    settings = CycleSettings(
        uid,
        devices,
        report_all,
        report_queues,
        report_pods,
        perf_counter,
        timings,
        proceed=proceed,
        note_job=note_job,
        steps=steps,
    )
    try:
        for attempt in count():
            conversation = Conversation(exchanges, attempt)
            if note_job is not None:
                note_job("")
            try:
                record = _attempt(snapshot, policy, registry, now, replace(settings, conversation=conversation), containment)
                record.notices = list(conversation.notices)
                break
            except Unanswered as stopped:
                containment.opening.put_back()
                return CycleRecord(question=stopped.question, timings=timings, steps_allowed=steps)
            except CycleStopped:
                containment.opening.put_back()
                raise
            except (Exception, SystemExit) as error:
                # A rule that raises costs its job the place in this cycle. All other jobs are decided; the record reports the failure.
                # A plugin that calls sys.exit is no reason to end the process.
                if not containment.take(error):
                    record = CycleRecord(warnings=[containment.gave_up], steps_allowed=steps)
                    break
    finally:
        if note_job is not None:
            note_job("")
        containment.restore()
    containment.report(record)
    record.set_aside, record.left_out_nodes = sorted(set_aside), sorted(left_out_nodes)
    record.failed_before = list(failed_before)
    record.exchanges = list(exchanges or ())
    record.timings.update(timings)
    return record


def _attempt(
    snapshot: Snapshot, policy: Policy, registry: Registry, now: float, settings: CycleSettings, containment: Containment
) -> CycleRecord:
    """One run of the cycle. If it raises, it leaves nothing behind except columns that `containment.opening` restores."""
    timings = settings.timings
    with _Timed(timings, "open"):
        containment.opening.keep()
        without, guarded = containment.without_preferences, containment.guarded
        session = open_session(snapshot, policy, registry, now, settings, without_preferences=without, guarded=guarded)
    session.record.steps_allowed = settings.steps
    for action in registry.make_actions(session):
        with _Timed(timings, action.name):
            session.action = action.name
            session.start_turn(None)
            try:
                action.execute()
            except StepsUsedUp:
                session.beyond_shares, session.placing, session.record.cut = False, None, True
                break
    with _Timed(timings, "close"):
        session.start_turn(None)
        close(session, report_queues=settings.report_queues, report_pods=settings.report_pods)
    record = session.record
    record.steps = session.steps.spent
    keep_session(session)
    return record


class _Timed:
    """Adds the time of a part that does not raise. The parts of attempts that start again add up."""

    __slots__ = ("_part", "_started", "_timings")

    def __init__(self, timings: dict[str, float], part: str) -> None:
        self._timings, self._part = timings, part

    def __enter__(self) -> None:
        self._started = perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._timings[self._part] = self._timings.get(self._part, 0.0) + perf_counter() - self._started
