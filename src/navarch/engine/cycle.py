"""One cycle: `decide(snapshot, policy, registry, now)` opens a session, runs the actions, closes, returns the record.

A pure function of its arguments. The only clock here is a stopwatch for the timings that stand beside the record. What raises while it
works on a job or reads a node costs that one its place: the cycle starts again without it (`containment`). A plugin that fails without
a job or node at hand refuses what needs its consent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter

from navarch.engine.close import close
from navarch.engine.containment.containment import Containment
from navarch.engine.containment.set_aside import OpeningFigures
from navarch.engine.points.conversation import Conversation, Exchange, Unanswered
from navarch.engine.points.kept_session import keep_session, take_kept_session
from navarch.engine.policy.values import Policy
from navarch.engine.reasons import Reason
from navarch.engine.record import CycleRecord, JobFailure
from navarch.engine.registry import Registry
from navarch.engine.session import CycleStopped, Session
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
    job that a rule begins to work on, and an empty text when none is at hand."""
    containment = Containment(snapshot, set_aside, left_out_nodes, failed_before)
    timings: dict[str, float] = {}
    attempt = 0
    try:
        while True:
            try:
                opening, conversation = containment.opening, Conversation(exchanges, attempt)
                attempt += 1
                record = _attempt(
                    snapshot, policy, registry, now, uid, devices, report_all, report_queues, report_pods, opening, timings,
                    containment.without_preferences, containment.guarded, conversation, proceed, note_job,
                )  # fmt: skip
                record.notices = list(conversation.notices)
                break
            except Unanswered as stopped:
                containment.opening.put_back()
                return CycleRecord(question=stopped.question, timings=timings)
            except CycleStopped:
                containment.opening.put_back()
                raise
            except (Exception, SystemExit) as error:
                # A rule that raises costs its job the place in this cycle. All other jobs are decided; the record reports the failure.
                # A plugin that calls sys.exit is no reason to end the process.
                if not containment.take(error):
                    record = CycleRecord(warnings=[containment.gave_up])
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
    snapshot: Snapshot,
    policy: Policy,
    registry: Registry,
    now: float,
    uid: str,
    devices: str,
    report_all: bool,
    report_queues: bool,
    report_pods: bool,
    opening: OpeningFigures,
    timings: dict[str, float],
    without_preferences: Collection[str],
    guarded: Mapping[str, Reason | None],
    conversation: Conversation,
    proceed: Callable[[], bool] | None,
    note_job: Callable[[str], None] | None,
) -> CycleRecord:
    """One run of the cycle. If it raises, it leaves nothing behind except columns that `opening` restores."""
    started = perf_counter()
    if note_job is not None:
        note_job("")
    as_configured = not without_preferences and not guarded
    session = None
    if as_configured:
        session = take_kept_session(
            snapshot, policy, registry, now, uid, devices, report_all, timings, opening, conversation, proceed, note_job
        )
    if session is None:
        session = Session(
            snapshot,
            policy,
            registry,
            now,
            uid,
            devices=devices,
            report_all=report_all,
            stopwatch=perf_counter,
            timings=timings,
            opening=opening,
            without_preferences=without_preferences,
            guarded=guarded,
            conversation=conversation,
            proceed=proceed,
            note_job=note_job,
        )
    timings["open"] = timings.get("open", 0.0) + perf_counter() - started
    actions = registry.make_actions(session)
    for action in actions:
        started = perf_counter()
        session.action = action.name
        session.start_turn(None)
        action.execute()
        timings[action.name] = timings.get(action.name, 0.0) + perf_counter() - started
    started = perf_counter()
    session.start_turn(None)
    close(session, report_queues=report_queues, report_pods=report_pods)
    timings["close"] = timings.get("close", 0.0) + perf_counter() - started
    record = session.record
    if as_configured:
        keep_session(session)
    else:
        session.dissolve()
    return record
