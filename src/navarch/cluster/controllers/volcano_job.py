"""Volcano's Job where Volcano's own controller is absent: its PodGroup, its pods, its phases, and what its policies say.

An event (a pod failed, was evicted, a task completed) asks the task's policies, then the job's, for an action; without one a pod that
was lost is made again and a failed one stays. Plugins (ssh, svc, env) and volumes of the job are not played.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from navarch.cluster.controllers.controller import Controller
from navarch.cluster.controllers.family import Child
from navarch.cluster.deletion import DeleteOptions
from navarch.cluster.record import Manifest, Record
from navarch.cluster.timers import seconds_of
from navarch.dialects.volcano_job import volcano_job

GROUPS = "podgroups.scheduling.volcano.sh"
TASK = "volcano.sh/task-spec"
ANY = "*"
LEAVING = {"Restarting": "Pending", "Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed"}
"""Phases in which the pods are taken away -> what follows when they are gone."""
ACTIONS = {
    "RestartJob": "Restarting",
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
}
OVER = ("Completed", "Failed", "Terminated", "Aborted")


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that policies may answer to."""

    event: str
    task: str
    exit_code: int | None = None


class VolcanoJobs(Controller):
    resource: ClassVar[str] = "jobs.batch.volcano.sh"
    kind: ClassVar[str] = "Job"
    api_version: ClassVar[str] = "batch.volcano.sh/v1alpha1"
    adopts: ClassVar[bool] = False

    def sync(self, owner: Record) -> None:
        if owner.obj["metadata"].get("deletionTimestamp"):
            return
        pods = {pod.name: pod for pod in self.family.of(owner)}
        state = dict((owner.obj.get("status") or {}).get("state") or {})
        phase = str(state.get("phase") or "Pending")
        retries = int((owner.obj.get("status") or {}).get("retryCount", 0))
        if phase in OVER:
            self._finish(owner, pods.values(), phase)
            phase_now, why = phase, str(state.get("reason") or "")
        elif phase in LEAVING:
            phase_now, why = self._leave(phase, pods.values()), str(state.get("reason") or "")
        else:
            phase_now, why, retries = self._run(owner, pods, phase, retries)
        pods = {pod.name: pod for pod in self.family.of(owner)}
        self._report(owner, pods.values(), phase_now, why, retries)
        if phase_now != phase:  # the next phase has work of its own
            self.queue.add((owner.namespace, owner.name))

    # ------------------------------------------------------------------ phases

    def _run(self, owner: Record, pods: dict[str, Child], phase: str, retries: int) -> tuple[str, str, int]:
        for happened in self._happenings(owner, pods, phase):
            action = answer(owner.obj, happened)
            if action not in ACTIONS:
                continue
            if action == "RestartJob":
                retries += 1
                if retries >= owner.obj["spec"].get("maxRetry", 3):
                    return "Failed", f"{happened.event} for the {retries}th time", retries
            return ACTIONS[action], f"{action} on {happened.event} of task {happened.task}", retries
        made = self._make_up(owner, pods)
        return self._phase(owner, made, phase), "", retries

    def _leave(self, phase: str, pods: Iterable[Child]) -> str:
        left = False
        for pod in pods:
            if pod.has_ended and LEAVING[phase] != "Pending":
                continue  # what has ended may be looked at later
            left = True
            self.remove(pod)
        return phase if left else LEAVING[phase]

    def _finish(self, owner: Record, pods: Iterable[Child], phase: str) -> None:
        for pod in pods:
            if pod.is_active:
                self.remove(pod)
        ttl = owner.obj["spec"].get("ttlSecondsAfterFinished")
        since = ((owner.obj.get("status") or {}).get("state") or {}).get("lastTransitionTime")
        if ttl is None or not since:
            return
        left = ttl - (self.store.clock() - seconds_of(since)) * self.timers.speed
        if left > 0:
            self.again_after(owner, left)
        else:
            kind = self.operations.kind(self.resource)
            self.operations.delete(kind, owner.namespace, owner.name, DeleteOptions(propagation="Background"))

    def _happenings(self, owner: Record, pods: dict[str, Child], phase: str) -> Iterator[Happened]:
        """What the pods say, in order of their names."""
        for name, task in expected(owner.obj):
            pod = pods.get(name)
            if pod is None or (pod.is_deleted and not pod.has_ended):
                if phase == "Running":
                    yield Happened("PodEvicted", task)
            elif pod.phase == "Failed":
                yield Happened("PodFailed", task, exit_code_of(pod.obj))
        ended: dict[str, list[bool]] = {}
        for name, task in expected(owner.obj):
            ended.setdefault(task, []).append(name in pods and pods[name].phase == "Succeeded")
        for task, done in ended.items():
            if all(done):
                yield Happened("TaskCompleted", task)

    def _make_up(self, owner: Record, pods: dict[str, Child]) -> list[Child]:
        """Make the group and the pods that are missing."""
        found = []
        for made in volcano_job(owner.obj):
            if isinstance(made, dict):
                if self.store.find(GROUPS, owner.namespace, made["metadata"]["name"]) is None:
                    made["metadata"].pop("creationTimestamp", None)
                    self.make(owner, GROUPS, made)
                continue
            name, template, labels, annotations = made[:4]
            pod = pods.get(name)
            if pod is None:
                pod = self.create(owner, dict(template), name=name, labels=labels, annotations=annotations)
            found.append(pod)
        return found

    def _phase(self, owner: Record, pods: list[Child], phase: str) -> str:
        spec = owner.obj["spec"]
        counts = _counts(pods)
        done = counts["succeeded"] + counts["failed"]
        if phase == "Pending":
            return "Running" if counts["running"] + done >= minimum(owner.obj) else "Pending"
        least = spec.get("minSuccess")
        if least is not None and counts["succeeded"] >= least:
            return "Completed"
        if done < len(pods):
            return phase
        succeeded: dict[str, int] = {}
        for pod in pods:
            task = pod.labels.get(TASK, "")
            succeeded[task] = succeeded.get(task, 0) + (pod.phase == "Succeeded")
        enough = all(succeeded.get(name, 0) >= least for name, least in _task_minima(owner.obj))
        return "Completed" if enough and counts["succeeded"] >= minimum(owner.obj) else "Failed"

    # ------------------------------------------------------------------ status

    def _report(self, owner: Record, pods: Iterable[Child], phase: str, why: str, retries: int) -> None:
        pods = list(pods)
        before = owner.obj.get("status") or {}
        state = {"phase": phase, "lastTransitionTime": self.now}
        if why:
            state["reason"] = why
        old = before.get("state") or {}
        if old.get("phase") == phase:
            state["lastTransitionTime"] = old.get("lastTransitionTime") or self.now
        by_task: dict[str, Manifest] = {}
        for pod in pods:
            held = by_task.setdefault(pod.labels.get(TASK, ""), {"phase": {}})["phase"]
            held[pod.phase or "Pending"] = held.get(pod.phase or "Pending", 0) + 1
        status: Manifest = {
            "state": state,
            "minAvailable": minimum(owner.obj),
            "version": retries + 1,
            **{name: count for name, count in _counts(pods).items() if count},
        }
        if retries:
            status["retryCount"] = retries
        if by_task:
            status["taskStatusCount"] = dict(sorted(by_task.items()))
        history = [*(before.get("conditions") or ())]
        if not history or history[-1]["status"] != phase:
            history.append({"status": phase, "lastTransitionTime": state["lastTransitionTime"]})
        status["conditions"] = history
        self.write_status(owner, status)


def expected(job: Manifest) -> list[tuple[str, str]]:
    """(pod, task) of every pod that a job has."""
    return [(made[0], made[2][TASK]) for made in volcano_job(job) if isinstance(made, tuple)]


def minimum(job: Manifest) -> int:
    given = job["spec"].get("minAvailable")
    return int(given) if given else sum(least for _, least in _task_minima(job))


def _task_minima(job: Manifest) -> list[tuple[str, int]]:
    return [
        (task.get("name") or f"default{i}", task.get("replicas", 1) if task.get("minAvailable") is None else task["minAvailable"])
        for i, task in enumerate(job["spec"].get("tasks") or ())
    ]


def answer(job: Manifest, happened: Happened) -> str:
    """The action that the task's policies, else the job's, have for an event; empty if none has."""
    tasks = enumerate(job["spec"].get("tasks") or ())
    own = next((t.get("policies") for i, t in tasks if (t.get("name") or f"default{i}") == happened.task), None)
    for policy in [*(own or ()), *(job["spec"].get("policies") or ())]:
        events = {policy.get("event"), *(policy.get("events") or ())} - {None, ""}
        if happened.event in events or (ANY in events and happened.event != "TaskCompleted"):
            return str(policy.get("action") or "")
        if policy.get("exitCode") is not None and policy["exitCode"] == happened.exit_code:
            return str(policy.get("action") or "")
    return ""


def exit_code_of(pod: Manifest) -> int | None:
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        code = ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
        if code:
            return int(code)
    return None


def _counts(pods: Iterable[Child]) -> dict[str, int]:
    counts = {"pending": 0, "running": 0, "succeeded": 0, "failed": 0, "terminating": 0}
    for pod in pods:
        if pod.is_deleted and not pod.has_ended:
            counts["terminating"] += 1
        else:
            counts[pod.phase.lower() if pod.phase.lower() in counts else "pending"] += 1
    return counts
