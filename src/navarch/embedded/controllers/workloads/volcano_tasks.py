"""The tasks of a Volcano Job: their pods, minimum counts, policies, and dependencies on each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from navarch.apis.volcano.job import volcano_job
from navarch.embedded.controllers.workloads.ownership import Child
from navarch.object_types import Manifest

TASK = "volcano.sh/task-spec"
INDEX = "volcano.sh/task-index"
ANY = "*"


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """Something that policies may answer to."""

    event: str
    task: str
    exit_code: int | None = None


def expected(job: Manifest) -> list[tuple[str, str, int]]:
    """(pod, task, index in the task) of every pod that a job has."""
    return [(made[0], made[2][TASK], int(made[2][INDEX])) for made in volcano_job(job) if isinstance(made, tuple)]


def minimum(job: Manifest) -> int:
    given = job["spec"].get("minAvailable")
    return int(given) if given else sum(least for _, least in task_minima(job))


def task_minima(job: Manifest) -> list[tuple[str, int]]:
    return [
        (name, task.get("replicas", 1) if task.get("minAvailable") is None else task["minAvailable"]) for name, task in _tasks(job)
    ]


def answer(job: Manifest, happened: TaskEvent) -> str:
    """The action that the task's policies, else the job's, have for an event; empty if none has."""
    own = next((task.get("policies") for name, task in _tasks(job) if name == happened.task), None)
    for policy in [*(own or ()), *(job["spec"].get("policies") or ())]:
        events = {policy.get("event"), *(policy.get("events") or ())} - {None, ""}
        if happened.event in events or (ANY in events and happened.event != "TaskCompleted"):
            return str(policy.get("action") or "")
        if policy.get("exitCode") is not None and policy["exitCode"] == happened.exit_code:
            return str(policy.get("action") or "")
    return ""


def kept_back(job: Manifest, pods: Mapping[str, Child]) -> set[str]:
    """Tasks whose pods are not made yet. Each task they depend on (or any one of them, if the job says so) must first run its
    minimum.
    """
    up: dict[str, int] = {}
    for pod in pods.values():
        task = pod.labels.get(TASK, "")
        up[task] = up.get(task, 0) + (pod.phase == "Succeeded" or (pod.phase == "Running" and pod.is_ready))
    reached = {name: up.get(name, 0) >= least for name, least in task_minima(job)}
    found = set()
    for name, each in _tasks(job):
        wish = each.get("dependsOn") or {}
        before = [reached.get(other, False) for other in wish.get("name") or ()]
        if before and not (any(before) if wish.get("iteration") == "any" else all(before)):
            found.add(name)
    return found


def exit_code_of(pod: Manifest) -> int | None:
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        code = ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
        if code:
            return int(code)
    return None


def _tasks(job: Manifest) -> list[tuple[str, Manifest]]:
    return [(task.get("name") or f"default{i}", task) for i, task in enumerate(job["spec"].get("tasks") or ())]
