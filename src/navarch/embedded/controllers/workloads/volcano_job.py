"""Volcano's Job where Volcano's own controller is absent: its PodGroup, its pods, its phases, and what its policies say.

An event (a pod failed, was evicted, a task completed) asks the task's policies, then the job's, for an action; without one a pod that
was lost is made again and a failed one stays. The group and the pods follow the job when it is scaled. Plugins (ssh, svc, env) and
volumes of the job are not played.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from navarch.apis.errors import ObjectError
from navarch.apis.volcano.job import volcano_job
from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.controllers.workloads.controller import Controller
from navarch.embedded.controllers.workloads.ownership import Child
from navarch.embedded.controllers.workloads.volcano_tasks import (
    TASK,
    TaskEvent,
    answer,
    exit_code_of,
    expected,
    kept_back,
    minimum,
    task_minima,
)
from navarch.embedded.storage.record import Record
from navarch.embedded.timers import seconds_of
from navarch.object_types import Manifest

GROUPS = "podgroups.scheduling.volcano.sh"
FOLLOWED = ("minMember", "minTaskMember", "minResources", "priorityClassName")
"""Fields of the group that are the job's, whatever they were when it was made."""
LEAVING = {"Restarting": "Pending", "Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed"}
"""Phases in which the pods are taken away -> what follows when they are gone."""
ACTIONS = {
    "RestartJob": "Restarting",
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
}
OVER = ("Completed", "Failed", "Terminated", "Aborted")


class VolcanoJobs(Controller):
    resource: ClassVar[str] = "jobs.batch.volcano.sh"
    kind: ClassVar[str] = "Job"
    api_version: ClassVar[str] = "batch.volcano.sh/v1alpha1"
    adopts: ClassVar[bool] = False

    def sync(self, owner: Record) -> None:
        if owner.obj["metadata"].get("deletionTimestamp"):
            return
        try:
            self._work_on(owner)
        except ObjectError as error:  # its owner has to mend it: the change starts the next try
            self.recorder.warning(owner, "FailedCreate", f"Error creating: {error}")

    def _work_on(self, owner: Record) -> None:
        pods = {pod.name: pod for pod in self.owner_index.of(owner)}
        state = dict((owner.obj.get("status") or {}).get("state") or {})
        phase = str(state.get("phase") or "Pending")
        retries = int((owner.obj.get("status") or {}).get("retryCount", 0))
        if phase in OVER:
            self._finish(owner, pods.values())
            phase_now, why = phase, str(state.get("reason") or "")
        elif phase in LEAVING:
            phase_now, why = self._leave(phase, pods.values()), str(state.get("reason") or "")
        else:
            phase_now, why, retries = self._run(owner, pods, phase, retries)
        pods = {pod.name: pod for pod in self.owner_index.of(owner)}
        self._report(owner, pods.values(), phase_now, why, retries)
        if phase_now != phase:  # the next phase has its own work
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

    def _finish(self, owner: Record, pods: Iterable[Child]) -> None:
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

    def _happenings(self, owner: Record, pods: dict[str, Child], phase: str) -> Iterator[TaskEvent]:
        """What the pods say, in order of their names. A pod that is not there was lost if its task had so many when it was last
        counted; else it is one that the job was scaled up by, or that waits for another task."""
        before = (owner.obj.get("status") or {}).get("taskStatusCount") or {}
        had = {task: sum((each.get("phase") or {}).values()) for task, each in before.items()}
        for name, task, index in expected(owner.obj):
            pod = pods.get(name)
            if pod is None or (pod.is_deleted and not pod.has_ended):
                if phase == "Running" and (pod is not None or index < had.get(task, 0)):
                    yield TaskEvent("PodEvicted", task)
            elif pod.phase == "Failed":
                yield TaskEvent("PodFailed", task, exit_code_of(pod.obj))
        ended: dict[str, list[bool]] = {}
        for name, task, _ in expected(owner.obj):
            ended.setdefault(task, []).append(name in pods and pods[name].phase == "Succeeded")
        for task, done in ended.items():
            if all(done):
                yield TaskEvent("TaskCompleted", task)

    def _make_up(self, owner: Record, pods: dict[str, Child]) -> list[Child]:
        """Make the group and the pods that are missing, and remove those that the job no longer has."""
        found, late = [], kept_back(owner.obj, pods)
        surplus = pods.keys() - {name for name, _, _ in expected(owner.obj)}
        for name in sorted(surplus):
            self.remove(pods[name])
        for made in volcano_job(owner.obj):
            if isinstance(made, dict):
                self._make_group(owner, made)
                continue
            name, template, labels, annotations = made[:4]
            pod = pods.get(name)
            if pod is None and labels[TASK] not in late:
                pod = self.create(owner, dict(template), name=name, labels=labels, annotations=annotations)
            if pod is not None:
                found.append(pod)
        return found

    def _make_group(self, owner: Record, wanted: Manifest) -> None:
        name, spec = wanted["metadata"]["name"], wanted["spec"]
        group = self.store.find(GROUPS, owner.namespace, name)
        if group is None:
            wanted["metadata"].pop("creationTimestamp", None)
            self.make(owner, GROUPS, wanted)
        elif any(group.obj["spec"].get(field) != spec.get(field) for field in FOLLOWED):

            def change(obj: Manifest) -> Manifest:
                obj["spec"] = {
                    **{k: v for k, v in obj["spec"].items() if k not in FOLLOWED},
                    **{k: spec[k] for k in FOLLOWED if k in spec},
                }
                return obj

            self.operations.modify(self.operations.kind(GROUPS), owner.namespace, name, change)

    def _phase(self, owner: Record, pods: list[Child], phase: str) -> str:
        spec = owner.obj["spec"]
        counts = _counts(pods)
        done = counts["succeeded"] + counts["failed"]
        if phase == "Pending":
            return "Running" if counts["running"] + done >= minimum(owner.obj) else "Pending"
        least = spec.get("minSuccess")
        if least is not None and counts["succeeded"] >= least:
            return "Completed"
        if done < len(expected(owner.obj)):
            return phase
        succeeded: dict[str, int] = {}
        for pod in pods:
            task = pod.labels.get(TASK, "")
            succeeded[task] = succeeded.get(task, 0) + (pod.phase == "Succeeded")
        enough = all(succeeded.get(name, 0) >= least for name, least in task_minima(owner.obj))
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


def _counts(pods: Iterable[Child]) -> dict[str, int]:
    counts = {"pending": 0, "running": 0, "succeeded": 0, "failed": 0, "terminating": 0}
    for pod in pods:
        if pod.is_deleted and not pod.has_ended:
            counts["terminating"] += 1
        else:
            counts[pod.phase.lower() if pod.phase.lower() in counts else "pending"] += 1
    return counts
