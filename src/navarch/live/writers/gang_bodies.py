"""Statuses of coscheduling's and Kubernetes' own groups, in the terms of these APIs.

coscheduling: a phase and counts, by the rules of its controller, so that both may run side by side and agree. Kubernetes: one
condition that says whether the group could start, and what is in its way if not.

Other schedulers use these APIs in the same cluster, and of their pods only those are known that have a node. So nothing is written
on a group before it has a pod of ours.
"""

from __future__ import annotations

from typing import Any

from navarch.apis.upstream.podgroups import condition_type
from navarch.engine.reasons import NEVER, dominant, without_next_step
from navarch.engine.record import JobDecision
from navarch.live.writers.group_bodies import GroupBody, GroupState
from navarch.model.spec import Condition, JobSpec
from navarch.model.status import TaskStatus
from navarch.model.timestamps import rfc3339

_ON_NODES = (TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_ON_THEIR_WAY = (TaskStatus.ALLOCATED, TaskStatus.BINDING)
_FINAL = ("Finished", "Failed")
"""Phases that coscheduling never leaves."""
_FORMER = ("PreScheduling", "Scheduled")
"""Two parts of Scheduling in the first versions of the API. An old controller may still write them, and we accept that."""
_ENGINE = ("Scheduled", "Unschedulable")
"""What a condition of Kubernetes' groups is to a cycle."""
_LONGEST = 32_768
"""Characters that the API server takes in a condition's message."""


def coscheduling_body(state: GroupState) -> GroupBody:
    """Phase, counts, owners of the pods, and when the first pod got a node."""
    job, seen = state.job, state.seen
    before = dict(seen.reported)
    if before["phase"] in _FINAL or not _is_ours(state):
        return GroupBody(said=coscheduling_seen(seen))
    placed = sum(state.counts[status] for status in _ON_NODES)
    numbers = {
        "running": state.counts[TaskStatus.RUNNING],
        "succeeded": state.counts[TaskStatus.SUCCEEDED],
        "failed": state.counts[TaskStatus.FAILED],
    }
    if "scheduled" in seen.counts or not before["phase"]:
        # Later versions of the API dropped it: an object that has a status and not this will never show it.
        numbers["scheduled"] = placed
    phase = _phase(job.min_member, sum(state.counts), numbers)
    if phase == "Scheduling" and before["phase"] in _FORMER:
        phase = before["phase"]
    owner = before["occupiedBy"] or (_owner(state) if phase != "Pending" else "")
    started = seen.last_started
    if started is None and placed:
        started = state.decision.last_started if state.decision and state.decision.last_started is not None else state.now
    status: dict[str, Any] = {"phase": phase, **numbers}
    if owner:
        status["occupiedBy"] = owner
    if started is not None:
        status["scheduleStartTime"] = rfc3339(started)
    return GroupBody(status, said=_said(phase, owner, started is not None, numbers))


def coscheduling_seen(seen: JobSpec) -> object:
    said = dict(seen.reported)
    numbers = {"running": 0, "succeeded": 0, "failed": 0, **seen.counts}
    return _said(said["phase"], said["occupiedBy"], seen.last_started is not None, numbers)


def _said(phase: str, owner: str, started: bool, numbers: dict[str, int]) -> object:
    return phase, owner, started, tuple(sorted(numbers.items()))


def _phase(minimum: int, pods: int, numbers: dict[str, int]) -> str:
    running, succeeded, failed = (numbers[name] for name in ("running", "succeeded", "failed"))
    if pods < minimum or not pods:
        return "Pending"
    if succeeded >= minimum and succeeded:
        return "Finished"
    if failed and failed + running + succeeded >= minimum:
        return "Failed"
    return "Running" if running + succeeded >= minimum and running + succeeded else "Scheduling"


def _is_ours(state: GroupState) -> bool:
    """Whether a pod of it is for us to schedule. One without pods is ours to correct if it says that some run."""
    tasks, names = state.tasks(), state.scheduler_names
    if not tasks:
        return any(state.seen.counts.values())
    return names is None or any(task.scheduler_name in names for task in tasks)


def _owner(state: GroupState) -> str:
    """The owner of its first pod, by age and name."""
    pods = [task for task in state.tasks() if task.owner is not None]
    first = min(pods, key=lambda task: (task.created, task.name), default=None)
    return f"{first.namespace}/{first.owner[1]}" if first is not None and first.owner is not None else ""


def upstream_body(state: GroupState) -> GroupBody:
    """True once enough pods have a node, for good; until then False with what is missing, as soon as a cycle looked at it."""
    job, seen = state.job, state.seen
    others = [c for c in seen.conditions if c.type not in _ENGINE]
    before = next((c for c in seen.conditions if c.type in _ENGINE), None)
    unchanged = GroupBody(said=upstream_seen(seen))
    if (before is not None and before.type == "Scheduled") or not _is_ours(state):
        return unchanged
    placed = sum(state.counts[status] for status in _ON_NODES)
    if placed and placed >= job.min_member:
        fresh = Condition("Scheduled", "True", "Scheduled", "", last_transition=state.now, observed_generation=seen.generation)
    elif placed + sum(state.counts[status] for status in _ON_THEIR_WAY) >= job.min_member:
        return unchanged
    elif state.decision is not None and state.decision.reasons:
        since = before.last_transition if before is not None else state.now
        text = missing(state.decision)[:_LONGEST]
        fresh = Condition("Unschedulable", "True", "Unschedulable", text, last_transition=since, observed_generation=seen.generation)
    else:
        return unchanged
    kind = condition_type(seen.api_version)
    status = {"conditions": [*(_written(c.type, c.status, c) for c in others), _written(kind, _status(fresh), fresh)]}
    return GroupBody(status, said=_upstream_said([*others, fresh]))


def upstream_seen(seen: JobSpec) -> object:
    return _upstream_said(seen.conditions)


def missing(decision: JobDecision) -> str:
    """What the gang says after the last cycle, whatever else refused it, and the next step. A condition without an id was only read
    back. A gang that can never start is told that alone."""
    told = next((c.message for c in decision.conditions if c.type == "Unschedulable" and c.transition_id), "")
    first = dominant(decision.reasons)
    if told and first is not None and first.code == NEVER:
        return told
    bare = without_next_step(told)
    others = [reason.message for reason in decision.reasons if reason.message not in bare]
    return "; ".join(dict.fromkeys([bare, *others] if bare else others)).rstrip(".") + told.removeprefix(bare)


def _upstream_said(conditions: list[Condition] | tuple[Condition, ...]) -> object:
    """The cycle and the API use different reasons for the same condition, so conditions are compared by their message."""
    return tuple(
        sorted((c.type, c.status, "" if c.type in _ENGINE else c.reason, c.message, c.observed_generation) for c in conditions)
    )


def _status(condition: Condition) -> str:
    return "True" if condition.type == "Scheduled" else "False"


def _written(kind: str, status: str, condition: Condition) -> dict[str, str | int]:
    return {
        **({"observedGeneration": condition.observed_generation} if condition.observed_generation else {}),
        "type": kind,
        "status": status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": rfc3339(condition.last_transition),
    }
