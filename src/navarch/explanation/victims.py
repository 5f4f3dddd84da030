"""Whether the policy lets a job take the place of another, and if not, whose rule forbids it.

The rules are asked one by one, as the evicting actions of the policy ask them: a job of the same queue may be preempted, one of
another queue reclaimed from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.job_times import JobTimes
from navarch.engine.job import Job
from navarch.engine.points.gang_protocols import MayPreempt, MayReclaim, PreemptVictim, ReclaimVictim
from navarch.engine.points.protocols import Preemptable, Reclaimable, UnifiedEvictable
from navarch.engine.session import Session
from navarch.explanation.result import MayTake
from navarch.explanation.standing import asks_rule, refused_by_rule
from navarch.ingest.groups import shown_key
from navarch.model.status import ON_NODE, TaskStatus
from navarch.model.timestamps import rfc3339
from navarch.plugins.kai.minruntime import MinRuntime

_PREEMPTING, _RECLAIMING = ("preempt", "gangpreempt"), ("reclaim", "gangreclaim")


def may_take(session: Session, job: Job, victim: Job) -> MayTake:
    name = shown_key(victim.key)
    tasks = [task for task in victim.tasks if ON_NODE[session.status[task]] and session.node[task] >= 0]
    pending = session.sorted_tasks(job.tasks_in(TaskStatus.PENDING))
    if not tasks:
        return MayTake(name, False, "it waits too, and is served first")
    if not pending:
        return MayTake(name, False, "no pod of the job waits")
    if "schedule" in session.policy.actions:
        return _by_priority(session, name, pending[0], tasks)
    same = victim.queue is job.queue
    action = next((each for each in session.policy.actions if each in (_PREEMPTING if same else _RECLAIMING)), None)
    if action is None:
        word = "preempts" if same else "reclaims"
        return MayTake(name, False, f"no action of the policy {word}")
    if session.policy.dialect == "kai":
        return _kai(session, name, job, victim, same=same)
    if not same and not victim.queue.spec.reclaimable:
        return MayTake(name, False, f"queue {victim.queue.name} is not reclaimable")
    if not same and (reason := session.overused(job.queue)) is not None:
        return MayTake(name, False, reason.message)
    if not all(session.snapshot.tasks.preemptable[tasks]):
        return MayTake(name, False, "its pods say that they are not preemptable")
    if asks_rule(session) and (refusal := refused_by_rule(session, job, pending, victim, tasks)):
        return MayTake(name, False, refusal)
    return _by_plugins(session, name, action, job, pending[0], tasks)


def _by_priority(session: Session, name: str, pod: int, tasks: Sequence[int]) -> MayTake:
    mine = session.task(pod)
    if mine.preemption_policy == "Never":
        return MayTake(name, False, "the pod's preemptionPolicy is Never")
    highest = max(session.task(task).pod_priority for task in tasks)
    if highest < mine.pod_priority:
        return MayTake(name, True)
    return MayTake(name, False, f"its priority is {highest}, that of the waiting pod {mine.pod_priority}")


def _kai(session: Session, name: str, job: Job, victim: Job, *, same: bool) -> MayTake:
    if not victim.spec.preemptable:
        return MayTake(name, False, "it is not preemptible")
    chunk = next_to_place(session, job.tree)
    if not session.shared(JobTimes).waited(job):
        until = rfc3339(session.shared(JobTimes).may_evict_from(job))
        return MayTake(name, False, "the job is within its preemption delay", until=until)
    if same and victim.priority >= job.priority:
        return MayTake(name, False, f"its priority is {victim.priority}, that of the job {job.priority}")
    may = [p.may_preempt(job, chunk) for p in session.implementing(MayPreempt)] if same else []
    may += [p.may_reclaim(job, chunk) for p in session.implementing(MayReclaim)[:1]] if not same else []
    for reason in may:
        if reason is not None:
            return MayTake(name, False, reason.message)
    guards: list[tuple[Any, bool]] = (
        [(p, p.preempt_victim(job, victim)) for p in session.implementing(PreemptVictim)]
        if same
        else [(p, p.reclaim_victim(job, chunk, victim)) for p in session.implementing(ReclaimVictim)]
    )
    for plugin, allowed in guards:
        if not allowed:
            end = plugin.protected_until(job, victim) if isinstance(plugin, MinRuntime) else None
            if end is not None:
                return MayTake(name, False, "it is within its minimal run time", until=rfc3339(end))
            return MayTake(name, False, f"plugin {plugin.name} does not let it take pods of queue {victim.queue.name}")
    return MayTake(name, True)


def _by_plugins(session: Session, name: str, action: str, job: Job, pod: int, tasks: Sequence[int]) -> MayTake:
    """Every plugin with an opinion must offer some of its pods."""
    reclaim = action in _RECLAIMING
    asked: list[tuple[Any, list[int] | None]]
    if action.startswith("gang"):
        asked = [(p, p.unified_evictable(job, tasks, reclaim=reclaim)) for p in session.implementing(UnifiedEvictable)]
    elif reclaim:
        asked = [(p, p.reclaimable(pod, tasks)) for p in session.implementing(Reclaimable)]
    else:
        asked = [(p, p.preemptable(pod, tasks)) for p in session.implementing(Preemptable)]
    for plugin, offered in asked:
        if offered is not None and not offered:
            return MayTake(name, False, f"plugin {plugin.name} does not let {action} take its pods")
    if not any(offered for _, offered in asked):
        return MayTake(name, False, f"no plugin lets {action} take its pods")
    return MayTake(name, True)
