"""Closing a session: phases, conditions and refusals of the jobs, promises, and the queues' figures.

A job's phase is a function of its tasks' statuses and of whether this cycle set the Unschedulable condition:

    tasks running, and Unschedulable set now           -> Unknown
    enough scheduled (one at least), all finished      -> Completed
    enough scheduled (one at least)                    -> Running
    admitted                                           -> stays Inqueue
    otherwise                                          -> Pending
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.gangs.job_times import JobTimes
from navarch.engine.hard_limits import beyond_limits
from navarch.engine.job import Job
from navarch.engine.never_starts import never_starts
from navarch.engine.placement.shards import NO_NODE_IN_SHARD
from navarch.engine.pod_conditions import GATED, UNSCHEDULABLE, WaitingPods, pod_reason
from navarch.engine.points.protocols import QueueReport
from navarch.engine.queue import Queue
from navarch.engine.reasons import NEVER, Event, Reason, comes_first, dominant, with_next_step
from navarch.engine.record import JobDecision, Nomination, QueueFigures, TaskRefusal
from navarch.engine.semantics import Semantics
from navarch.engine.victims.evicted_again import note_evictions
from navarch.model.objects.typed import set_aside
from navarch.model.resources import IntArray
from navarch.model.status import STATUS_NAMES, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.session import Session

S = TaskStatus
PENDING, PIPELINED = int(S.PENDING), int(S.PIPELINED)


def close(session: Session, *, report_queues: bool = True, report_pods: bool = True) -> None:
    for plugin in session.plugins:
        started = session.stopwatch()
        plugin.close()
        session.timings[f"{plugin.name} (close)"] = session.stopwatch() - started
    _promises(session)
    session.record.tried = list(session.tried)
    session.record.warnings += set_aside(session.snapshot)
    session.record.warnings += session.shard_problems
    _forget_undone(session)
    note_evictions(session)
    concluded = session.jobs_to_conclude()
    untried = session.snapshot.jobs.sitting_out
    if session.record.cut or untried:  # of these nothing was decided, and what they were told before stands
        concluded = [job for job in concluded if (not session.record.cut and job.row not in untried) or _was_decided(session, job)]
    session.steps.spend(len(concluded))
    beyond = beyond_limits(session, concluded) if report_pods else {}
    session.record.jobs = [_decision(session, job, beyond, report_pods=report_pods) for job in concluded]
    if report_queues:
        session.record.queues = queue_figures(session)


def _was_decided(session: Session, job: Job) -> bool:
    """Whether a pod of the job was moved, or its phase."""
    return job.phase != job.spec.phase or list(job.counts) != session.snapshot.jobs.counts[job.row].tolist()


def queue_figures(session: Session) -> list[QueueFigures]:
    """What each queue is owed, has and asks for, by name: by the plugin that accounts for queues, where the policy has one."""
    queues = [queue for _, queue in sorted(session.queues.items())]
    reporting = session.implementing(QueueReport)
    return [reporting[0].queue_figures(queue) for queue in queues] if reporting else _figures(session, queues)


def phase_of(session: Session, job: Job) -> str:
    counts = job.counts
    leaving = sum(1 for t in job.tasks if session.status[t] == S.RELEASING and session.node[t] >= 0) if counts[S.RELEASING] else 0
    return phase_for(counts, leaving, job.min_member, job.phase, session.semantics, unschedulable=job.unschedulable)


def phase_for(
    counts: Sequence[int], leaving: int, min_member: int, before: str, semantics: Semantics, *, unschedulable: bool = False
) -> str:
    """`counts`: its pods by TaskStatus. `leaving`: pods that are being deleted and still have a node. `before`: its phase so far."""
    if counts[S.RUNNING] and unschedulable:
        return "Unknown"
    if semantics.placed_gang_is_running:
        held = counts[S.ALLOCATED] + counts[S.BINDING] + counts[S.BOUND] + counts[S.RUNNING]
        return "Running" if held >= min_member else "Pending"
    finished = counts[S.SUCCEEDED] + counts[S.FAILED]
    scheduled = counts[S.RUNNING] + counts[S.BOUND] + finished + leaving
    if scheduled >= min_member and (scheduled or semantics.empty_gang_is_complete):
        return "Completed" if scheduled == finished else "Running"
    return "Inqueue" if before == "Inqueue" else "Pending"


def _decision(session: Session, job: Job, beyond: Mapping[int, Reason], *, report_pods: bool) -> JobDecision:
    """`beyond`: tasks that hard limits keep waiting (`hard_limits`)."""
    phase = phase_of(session, job)
    conditions = tuple(job.conditions.values())
    counts = {STATUS_NAMES[i]: n for i, n in enumerate(job.counts) if n}
    changed = phase != job.spec.phase or conditions != job.spec.conditions
    job_times, spec = session.shared(JobTimes), job.spec
    times = (job_times.started(job), job_times.evicted(job), job_times.stale_since(job))
    changed = changed or times != (spec.last_started, spec.last_evicted, spec.stale_since)
    reasons = job_reasons(session, job)
    return JobDecision(
        job=job.key,
        queue=job.queue.name,
        phase=phase,
        min_member=job.min_member,
        pods=counts,
        conditions=conditions,
        reasons=reasons,
        refusals=tuple(_refusals(session, job, reasons, beyond, report_pods=report_pods)),
        shadow=job.spec.shadow,
        dialect=job.spec.dialect,
        changed=changed,
        last_started=times[0],
        last_evicted=times[1],
        stale_since=times[2],
    )


def job_reasons(session: Session, job: Job) -> tuple[Reason, ...]:
    """Why the job waits: in Navarch's own words, first of all that it can never start, if that is so."""
    reasons = _reasons(session, job)
    if reasons and session.semantics.next_step_is_told and (never := never_starts(session, job)) is not None:
        return comes_first(reasons, never)
    return tuple(reasons)


def _reasons(session: Session, job: Job) -> list[Reason]:
    if job.is_refused_without_pods:
        return list(job.reasons)
    if not job.counts[S.PENDING] and not job.counts[S.ALLOCATED]:  # allocated still: nothing was bound, because it is not ready
        return []
    reasons = list(job.reasons)
    seen = {reason.message for reason in reasons}
    for task in _by_name(session, job.fit_errors):
        errors = job.fit_errors[task]
        text = errors.text(session.semantics)
        if session.status[task] != S.PENDING or text in seen:
            continue
        seen.add(text)
        code = "Unschedulable" if errors.nodes else NO_NODE_IN_SHARD if NO_NODE_IN_SHARD in errors.codes else "Skipped"
        reasons.append(Reason(code, f"{session.task(task).name}: {text}", errors.nodes, undone_by=errors.undone_by))
    return reasons + _gates(session, job)


def _gates(session: Session, job: Job) -> list[Reason]:
    """Pods with scheduling gates, counted by their gates."""
    if not session.any_gated:
        return []
    pending = np.array(job.tasks_in(S.PENDING), dtype=np.intp)
    gated = Counter(session.task(task).gates for task in pending[session.snapshot.tasks.gated[pending]].tolist())
    return [
        Reason(
            "SchedulingGated",
            f"{count} pod{'s' if count > 1 else ''} wait{'' if count > 1 else 's'} for scheduling gates: [{' '.join(gates)}]",
            figures={"pods": count},
            undone_by=(Event.POD_CHANGED,),
        )
        for gates, count in sorted(gated.items())
    ]


def _refusals(
    session: Session, job: Job, reasons: Sequence[Reason], beyond: Mapping[int, Reason], *, report_pods: bool
) -> list[TaskRefusal]:
    """One for each waiting task; without `report_pods` for those that have a promise to lose. It costs about a microsecond each,
    because a long backlog has a hundred thousand of them."""
    if not job.counts[S.PENDING] + job.counts[S.PIPELINED] + job.counts[S.ALLOCATED]:
        return []
    waiting = job.tasks_in(S.PENDING, S.ALLOCATED, S.PIPELINED)
    if not report_pods:
        nominated = session.snapshot.tasks.nominated
        waiting = [task for task in waiting if nominated[task]]
    rows = _by_name(session, waiting)
    tells_all = session.semantics.refusals_tell_all
    waits = WaitingPods(session, job)
    first = (waits.lasting or dominant(reasons)) if session.semantics.next_step_is_told else None
    never = first.message if first is not None and first.code == NEVER and waits.of_job == UNSCHEDULABLE else ""
    otherwise = alone = ""
    """For tasks without a refusal of their own. Made for the first such task; single pods of a backlog need none."""
    texts: dict[int, str] = {}
    """The text of each refusal that several tasks share."""
    out: list[TaskRefusal] = []
    for task, status in zip(rows, session.status[rows].tolist()):
        spec, errors = session.task(task), job.fit_errors.get(task)
        reason, had_room = GATED if spec.gates else waits.reason(task, status), False
        if spec.gates:
            message = f"waiting for scheduling gates: [{' '.join(spec.gates)}]"
        elif status == PIPELINED and tells_all:
            node = session.nodes.names[session.node[task]]
            had_room, message = True, f"node {node} is promised to it: it starts there when pods that are leaving are gone"
        elif status != PENDING or (job.last_undone and job.last_undone.get(task) == S.ALLOCATED):
            alone = alone or with_next_step(never or _words(session, job, "the task could run, but its gang is not ready", ""), first)
            had_room, message = True, alone
        elif errors is not None:
            if id(errors) not in texts:
                texts[id(errors)] = with_next_step((never if reason == UNSCHEDULABLE else "") or errors.text(session.semantics), first)
            message = texts[id(errors)]
        else:
            if not otherwise:
                gang = "" if job.reasons else _words(session, job, "its gang is not ready", "the job is not ready")
                otherwise = with_next_step(never or gang or _told_first(session, job), first)
            message = otherwise
        if reason == UNSCHEDULABLE and (limited := beyond.get(task)) is not None:
            reason, message = pod_reason(limited.code), with_next_step(limited.message, limited if first is not None else None)
        out.append(TaskRefusal(spec.key, spec.uid, reason, message, had_room))
    return out


def _words(session: Session, job: Job, before: str, without: str) -> str:
    """`before`, followed by the reason why the gang waits: the first reason of the job, else that of the first task without a node.
    `without`: what is said instead where the policy's compat does not give that reason; empty: it does."""
    if without and not session.semantics.refusals_tell_all:
        return without
    if job.reasons:
        return f"{before}: {_told_first(session, job)}"
    for task in session.sorted_tasks([task for task in job.fit_errors if session.status[task] == PENDING]):
        return f"{before}: {session.task(task).name}: {job.fit_errors[task].text(session.semantics)}"
    return without or before


def _told_first(session: Session, job: Job) -> str:
    """The dominant reason; the first one in the words of systems that know no other."""
    reason = dominant(job.reasons) if session.semantics.refusals_tell_all else None
    return (reason or job.reasons[0]).message


def _by_name(session: Session, tasks: Iterable[int]) -> list[int]:
    """In an order that does not depend on when pods arrived."""
    return sorted(tasks, key=lambda task: session.task(task).name)


def _promises(session: Session) -> None:
    promised = [] if session.nodes.nothing_leaves else (session.status == PIPELINED).nonzero()[0].tolist()
    for task in promised:
        spec = session.task(task)
        job = session.job_of(task)
        session.record.nominations.append(
            Nomination(
                pod=spec.key,
                node=session.nodes.names[session.node[task]],
                uid=spec.uid,
                job=job.key if job else "",
                evicting=task in session.promised_by_eviction,
                gpu_groups=() if session.devices is None else session.devices.groups.get(task, ()),
                numa_zones=session.zones.get(task, ()),
            )
        )
    session.record.nominations.sort(key=lambda n: n.pod)


def _forget_undone(session: Session) -> None:
    """A task that was bound and evicted in the same cycle counts as one eviction only."""
    record = session.record
    if record.evictions:
        gone = {eviction.uid: eviction for eviction in reversed(record.evictions)}
        record.binds = [bind for bind in record.binds if bind.uid not in gone]
        record.evictions = [eviction for eviction in record.evictions if gone[eviction.uid] is eviction]


def _figures(session: Session, queues: Sequence[Queue]) -> list[QueueFigures]:
    """The engine's own sums, for policies without a plugin that accounts for queues."""
    space, moved, out = session.snapshot.space, _moved(session), list[QueueFigures]()
    for queue in queues:
        allocated = queue.allocated + moved[queue.name] if queue.name in moved else queue.allocated
        out.append(QueueFigures(queue.name, {}, space.as_mapping(allocated), space.as_mapping(queue.request), 0.0))
    return out


def _moved(session: Session) -> dict[str, IntArray]:
    """Queue -> by how much what its jobs hold has changed since the session opened."""
    before, out = session.snapshot.jobs.allocated, dict[str, IntArray]()
    for job in session.touched_jobs:
        change = job.allocated - before[:, job.row]
        if change.any():
            out[job.queue.name] = out[job.queue.name] + change if job.queue.name in out else change
    return out
