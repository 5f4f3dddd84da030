"""What a PodGroup's status says, in the words of each API.

A body is compared with what the object says already, without the ids and times of transitions, and written only if it differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from navarch.apis.kai.podgroups import LAST_EVICTION, LAST_START, STALE_SINCE, UNSCHEDULABLE_CONDITION
from navarch.engine.reasons import Reason
from navarch.engine.record import JobDecision
from navarch.model.spec import Condition, JobSpec, QueueSpec, TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.timestamps import rfc3339

KAI_REASON = "Unschedulable"
KAI_DEFAULT_POOL = "default"
NOT_READY = "NotReady"
"""The code of a group that has too few pods to start."""
_KAI_RESOURCES = {"gpu": "nvidia.com/gpu"}
_UNBOUND = (TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING)
_KUBE_BATCH_PHASES = {"Inqueue": "Pending", "Completed": "Running"}
"""kube-batch knows no admission and no end."""
_ALLOCATED = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)


class GroupState(Struct, frozen=True):
    """What is known of a group when its status is made."""

    job: JobSpec
    """As the engine sees it: with the phase and conditions decided last."""
    seen: JobSpec
    """As its object says."""
    counts: Sequence[int]
    """Pods by TaskStatus."""
    decision: JobDecision | None
    node_pool: str
    now: float
    queues: Mapping[str, QueueSpec] = field(default_factory=dict)
    tasks: Callable[[], Sequence[TaskSpec]] = tuple
    """Its pods; called only where each pod is needed."""
    scheduler_names: frozenset[str] | None = None
    """Scheduler names that we serve; None: all."""


class GroupBody(Struct, frozen=True):
    """`status` is written to the status subresource, if there is one; `annotations` to the object itself."""

    status: Mapping[str, Any] | None = None
    annotations: Mapping[str, str | None] | None = None
    said: object = None
    """What of it counts when two bodies are compared."""


def counted_body(state: GroupState) -> GroupBody:
    """kube-batch and Volcano: phase, conditions, and how many pods run, have succeeded, have failed."""
    job, counts = state.job, state.counts
    phase = _KUBE_BATCH_PHASES.get(job.phase, job.phase) if job.dialect == "kube-batch" else job.phase
    numbers = {
        "running": counts[TaskStatus.RUNNING],
        "succeeded": counts[TaskStatus.SUCCEEDED],
        "failed": counts[TaskStatus.FAILED],
    }
    status: dict[str, Any] = {"phase": phase, "conditions": [_condition(c) for c in job.conditions], **numbers}
    return GroupBody(status, said=_said(phase, job.conditions, numbers))


def counted_seen(seen: JobSpec) -> object:
    numbers = {name: seen.counts.get(name, 0) for name in ("running", "succeeded", "failed")}
    return _said(seen.phase, seen.conditions, numbers)


def kai_body(state: GroupState) -> GroupBody:
    """KAI: one condition for each node pool that the group could not be placed on, newest last; when it last started.

    A group that waits for its own pods is no cluster's fault and gets none. Once every pod is bound they all go."""
    job, decision = state.job, state.decision
    pool = state.node_pool or KAI_DEFAULT_POOL
    ours = [c for c in state.seen.conditions if c.type == UNSCHEDULABLE_CONDITION and c.node_pool in (pool, state.node_pool)]
    others = [c for c in state.seen.conditions if c not in ours]
    annotations = _kai_annotations(state.seen, decision)
    unchanged = GroupBody(None, annotations or None, said=(kai_seen(state.seen), tuple(sorted(annotations.items()))))
    if decision is not None and state.seen.conditions and not any(state.counts[status] for status in _UNBOUND):
        return GroupBody({"schedulingConditions": None}, annotations or None, said=((), tuple(sorted(annotations.items()))))
    if decision is None or not decision.reasons or any(state.counts[status] for status in _ALLOCATED):
        return unchanged
    if decision.reasons[0].code == NOT_READY:
        return unchanged
    message = all_reasons(decision)
    if job.tried_once:
        message = f"Node-Pool '{pool}': {message}"
    if ours and (ours[-1].reason, ours[-1].message, ours[-1].status) == (KAI_REASON, message, "True"):
        return unchanged
    numbers = [int(c.transition_id) for c in state.seen.conditions if c.transition_id.isdecimal()]
    fresh = Condition(UNSCHEDULABLE_CONDITION, "True", KAI_REASON, message, str(max(numbers, default=0) + 1), state.now, pool)
    conditions: list[dict[str, Any]] = [dict(_kai_condition(c)) for c in others]
    conditions.append({**_kai_condition(fresh), "reasons": [_explanation(r, job, state.queues) for r in decision.reasons]})
    said = (_kai_said([*others, fresh]), tuple(sorted(annotations.items())))
    return GroupBody({"schedulingConditions": conditions}, annotations or None, said=said)


def all_reasons(decision: JobDecision) -> str:
    return "; ".join(dict.fromkeys(reason.message for reason in decision.reasons))


def _explanation(reason: Reason, job: JobSpec, queues: Mapping[str, QueueSpec]) -> dict[str, Any]:
    """A reason with the queue's figures where it was a bound of a queue: its quotas and limits, and of the resource that met
    one what is held and what was asked for."""
    said: dict[str, Any] = {"reason": reason.code, "message": reason.message}
    queue = queues.get(str(reason.figures.get("queue", "")))
    if reason.code not in ("OverLimit", "NonPreemptibleOverQuota") or queue is None:
        return said
    figures = reason.figures
    resource = str(figures["resource"])
    held, asked = (_amounts({resource: float(figures[name])}) for name in ("held", "requested"))
    over_limit = reason.code == "OverLimit"
    details: dict[str, Any] = {
        "name": queue.name,
        "queueDeservedResources": _amounts({name: share.quota for name, share in queue.shares.items()}),
        "queueResourceLimits": _amounts({name: share.limit for name, share in queue.shares.items()}),
        "queueAllocatedResources" if over_limit else "queueAllocatedNonPreemptibleResources": held,
        "podGroupRequestedResources": asked,
    }
    if not job.preemptable:
        details["podGroupRequestedNonPreemptibleResources"] = asked
    said["details"] = {"queueDetails": {name: value for name, value in details.items() if value}}
    return said


def _amounts(figures: Mapping[str, float]) -> dict[str, str]:
    """As the API writes quantities. What is not bounded is left out.

    >>> _amounts({"cpu": 1500.0, "memory": 2e9, "gpu": 0.5}), _amounts({"cpu": -1.0, "gpu": 8.0})
    ({'cpu': '1500m', 'nvidia.com/gpu': '500m', 'memory': '2000000000'}, {'nvidia.com/gpu': '8'})
    """
    return {
        _KAI_RESOURCES.get(name, name): str(round(figure)) if name == "memory" else _milli(figure * (1 if name == "cpu" else 1000))
        for name, figure in sorted(figures.items())
        if 0 <= figure < math.inf
    }


def _milli(figure: float) -> str:
    whole, rest = divmod(round(figure), 1000)
    return f"{round(figure)}m" if rest else str(whole)


def _kai_annotations(seen: JobSpec, decision: JobDecision | None) -> dict[str, str | None]:
    """Moments that a later cycle has to know and that only these annotations keep. None takes one off."""
    if decision is None:
        return {}
    wanted = {LAST_START: decision.last_started, LAST_EVICTION: decision.last_evicted, STALE_SINCE: decision.stale_since}
    known = {LAST_START: seen.last_started, LAST_EVICTION: seen.last_evicted, STALE_SINCE: seen.stale_since}
    return {
        name: None if moment is None else rfc3339(moment)
        for name, moment in wanted.items()
        if (moment is None) != (known[name] is None) or (moment is not None and int(moment) != int(known[name] or 0))
    }


def kai_seen(seen: JobSpec) -> object:
    return _kai_said(seen.conditions)


def _kai_said(conditions: Sequence[Condition]) -> object:
    return tuple((c.type, c.node_pool, c.status, c.reason, c.message) for c in conditions)


def _said(phase: str, conditions: Sequence[Condition], numbers: Mapping[str, int]) -> object:
    told = tuple(sorted((c.type, c.status, c.reason, c.message) for c in conditions))
    return phase, told, tuple(sorted(numbers.items()))


def _condition(condition: Condition) -> dict[str, str]:
    return {
        "type": condition.type,
        "status": condition.status,
        "transitionID": condition.transition_id,
        "lastTransitionTime": rfc3339(condition.last_transition),
        "reason": condition.reason,
        "message": condition.message,
    }


def _kai_condition(condition: Condition) -> dict[str, str]:
    return {**_condition(condition), "nodePool": condition.node_pool}
