"""What happened to a job, in order: created, admitted, scheduled, started, evicted, ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from navarch.model.spec import JobSpec, TaskSpec

_ADMITTED: Final = frozenset({"Admitted", "Inqueue", "Enqueued"})
"""Types of conditions by which a group says that it was admitted."""
_EVICTIONS: Final = frozenset({"Evict", "Evicted", "Preempted", "Preempting"})
"""Reasons of events about a pod that was evicted."""
_LEAVES: Final = ("DisruptionTarget", "True")
"""The condition of a pod that is being evicted."""
_ORDER: Final = ("created", "admitted", "scheduled", "started", "evicted", "succeeded", "failed")


def timeline(spec: JobSpec | None, tasks: Sequence[TaskSpec], events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pods to which the same happened in the same second are one entry."""
    found: Counter[tuple[float, str, str]] = Counter()
    for task in tasks:
        for what, when in _of_pod(task):
            found[float(int(when)), what, ""] += 1
    told = [each for each in events if each["reason"] in _EVICTIONS and each["time"]]
    for each in told:
        found[float(int(each["time"])), "evicted", _evictor(each["message"])] += max(1, int(each["count"]))
    if not told:
        for when in (since for task in tasks for kind, status, _, since in task.conditions if (kind, status) == _LEAVES):
            found[float(int(when)), "evicted", ""] += 1
    entries = [
        {"time": when, "what": what, "pods": pods, "text": f"{pods} pod{'s' if pods > 1 else ''} {what}", "by": by}
        for (when, what, by), pods in found.items()
    ]
    if spec is not None:
        entries += [{"time": when, "what": what, "pods": 0, "text": what, "by": ""} for what, when in _of_job(spec) if when]
    return sorted(entries, key=lambda each: (each["time"], _ORDER.index(each["what"]), each["pods"], each["by"]))


def _evictor(message: str) -> str:
    """What evicted a pod, from the words of the event: `Pod ml/a-0: Evicted by reclaim for ml/b` -> `reclaim for ml/b`."""
    _, found, rest = message.partition("victed by ")
    return rest if found else message


def _of_job(spec: JobSpec) -> list[tuple[str, float]]:
    found = [("created", spec.created)]
    found += [("admitted", each.last_transition) for each in spec.conditions if each.type in _ADMITTED and each.status == "True"]
    if spec.last_evicted:
        found.append(("evicted", spec.last_evicted))
    return found


def _of_pod(task: TaskSpec) -> list[tuple[str, float]]:
    found = [("created", task.created)] if task.created else []
    found += [
        ("scheduled", since) for kind, status, _, since in task.conditions if (kind, status) == ("PodScheduled", "True") and since
    ]
    if task.started:
        found.append(("started", task.started))
    return found
