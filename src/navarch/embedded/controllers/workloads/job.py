"""Job: pods that are to succeed so and so often, some at a time; retried with a back-off, up to a limit.

A finished pod is counted once: it carries the tracking finalizer until the job's status counts it, so pods may be deleted at
any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.workloads.controller import Controller, condition, removal_order
from navarch.embedded.controllers.workloads.job_indexes import INDEX, format_indexes, index_of, parse_indexes, with_index
from navarch.embedded.controllers.workloads.ownership import Child, OwnerIndex
from navarch.embedded.controllers.workloads.pod_failures import verdict
from navarch.embedded.storage.record import Record
from navarch.embedded.timers import Timers, seconds_of
from navarch.object_types import Manifest

TRACKING = "batch.kubernetes.io/job-tracking"
FIRST_BACKOFF, LONGEST_BACKOFF = 10.0, 600.0


@dataclass(slots=True)
class Backoff:
    """Failures in a row, and when the next pod may be made (the store's clock)."""

    failures: int = 0
    until: float = 0.0


@dataclass(slots=True)
class Count:
    """What one look at a job's pods found."""

    succeeded: int = 0
    failed: int = 0
    indexes: set[int] = field(default_factory=set)
    active: list[Child] = field(default_factory=list)
    leaving: list[Child] = field(default_factory=list)
    counted: list[Child] = field(default_factory=list)
    fatal: str = ""


class Jobs(Controller):
    resource: ClassVar[str] = "jobs.batch"
    kind: ClassVar[str] = "Job"
    api_version: ClassVar[str] = "batch/v1"
    adopts: ClassVar[bool] = False

    def __init__(self, operations: Operations, timers: Timers, owner_indexes: Mapping[str, OwnerIndex]) -> None:
        super().__init__(operations, timers, owner_indexes)
        self._backoff: dict[str, Backoff] = {}

    def lost(self, child: Child) -> None:
        """Forget the counts of a job that is gone."""
        self._untrack(child)

    def sync(self, owner: Record) -> None:
        pods = self.owner_index.of(owner)
        if owner.obj["metadata"].get("deletionTimestamp"):
            for pod in pods:
                self._untrack(pod)
            return
        if finished_at(owner.obj):
            for pod in pods:
                if not pod.is_active:
                    self._untrack(pod)
            self._expire(owner)
            return
        count = self._count(owner, pods)
        status = self._status(owner)
        refused: ApiError | None = None
        if self._ended(owner, count, status):
            self._backoff.pop(owner.uid, None)
        elif owner.obj["spec"].get("suspend"):
            self._suspend(count, status)
        else:
            self._resume(status)
            try:
                self._fill(owner, count)
            except ApiError as error:
                refused = error
            self._deadline(owner, status)
        self._figures(status, count)
        self.write_status(owner, status)
        for pod in count.counted:
            self._untrack(pod)
        if refused is not None:
            raise refused

    # ------------------------------------------------------------------ counting

    def _count(self, owner: Record, pods: list[Child]) -> Count:
        """What has ended since the last look, and what runs."""
        status, spec = owner.obj.get("status") or {}, owner.obj["spec"]
        count = Count(status.get("succeeded", 0), status.get("failed", 0))
        count.indexes = parse_indexes(status.get("completedIndexes") or "")
        replace_early = spec.get("podReplacementPolicy", "TerminatingOrFailed") == "TerminatingOrFailed"
        for pod in pods:
            if pod.is_active:
                count.active.append(pod)
            elif not pod.has_ended and not replace_early:
                count.leaving.append(pod)
            elif TRACKING in pod.finalizers:
                count.counted.append(pod)
                if pod.phase == "Succeeded":
                    self._success(owner, count, pod)
                else:
                    self._failure(owner, count, pod)
        if spec.get("completionMode") == "Indexed":
            count.succeeded = len(count.indexes)
        return count

    def _success(self, owner: Record, count: Count, pod: Child) -> None:
        self._backoff.pop(owner.uid, None)
        count.succeeded += 1
        index = index_of(pod.obj)
        if index is not None:
            count.indexes.add(index)

    def _failure(self, owner: Record, count: Count, pod: Child) -> None:
        decision, why = verdict(owner.obj, pod.obj)
        if decision == "Ignore":
            return
        count.failed += 1
        count.fatal = count.fatal or why
        backoff = self._backoff.setdefault(owner.uid, Backoff())
        backoff.failures += 1
        wait = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(backoff.failures - 1, 10))
        backoff.until = self.store.clock() + wait / self.timers.speed

    def _discard(self, pod: Child) -> None:
        """Delete a pod that the job no longer needs. It does not count as a failure."""
        self._untrack(pod)
        self.remove(pod)

    def _untrack(self, pod: Child) -> None:
        """Take the tracking finalizer away; a deleted pod that waited only for this goes now."""
        namespace, name = pod.record.namespace, pod.name
        current = self.owner_index.find(namespace, name)
        if current is None or current.uid != pod.uid or TRACKING not in current.finalizers:
            return

        def change(obj: Manifest) -> Manifest:
            kept = [each for each in obj["metadata"]["finalizers"] if each != TRACKING]
            if kept:
                obj["metadata"]["finalizers"] = kept
            else:
                del obj["metadata"]["finalizers"]
            return obj

        changed = self.store.modify("pods", namespace, name, change)
        metadata = changed.obj["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            if not metadata.get("deletionGracePeriodSeconds") or not changed.obj["spec"].get("nodeName"):
                kind = self.operations.kind("pods")
                self.operations.delete(kind, namespace, name, DeleteOptions(grace=0, uid=pod.uid))

    # ------------------------------------------------------------------ deciding

    def _ended(self, owner: Record, count: Count, status: Manifest) -> bool:
        spec = owner.obj["spec"]
        completions = spec.get("completions")
        limit = spec.get("backoffLimit", 6)
        if completions is not None and count.succeeded >= completions:
            done = True
        else:
            done = completions is None and count.succeeded > 0 and not count.active and not count.leaving
        if done:
            self._remove_all(count)
            message = "Reached expected number of succeeded pods"
            for type_ in ("SuccessCriteriaMet", "Complete"):
                status["conditions"] = condition(status, type_, "True", "CompletionsReached", message, self.now)
            status["completionTime"] = self.now
            self.recorder.normal(owner, "Completed", "Job completed")
            self._expire_later(owner, 0.0)
            return True
        if count.fatal:
            return self._fail(owner, count, status, "PodFailurePolicy", count.fatal)
        if count.failed > limit:
            return self._fail(owner, count, status, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        deadline, started = spec.get("activeDeadlineSeconds"), status.get("startTime")
        if deadline is not None and started and not spec.get("suspend"):
            if (self.store.clock() - seconds_of(started)) * self.timers.speed >= deadline:
                return self._fail(owner, count, status, "DeadlineExceeded", "Job was active longer than specified deadline")
        return False

    def _fail(self, owner: Record, count: Count, status: Manifest, reason: str, message: str) -> bool:
        self._remove_all(count)
        for type_ in ("FailureTarget", "Failed"):
            status["conditions"] = condition(status, type_, "True", reason, message, self.now)
        self.recorder.warning(owner, reason, message)
        self._expire_later(owner, 0.0)
        return True

    def _remove_all(self, count: Count) -> None:
        for pod in count.active:
            self._discard(pod)
        count.leaving += count.active
        count.active = []

    def _suspend(self, count: Count, status: Manifest) -> None:
        self._remove_all(count)
        status["conditions"] = condition(status, "Suspended", "True", "JobSuspended", "Job suspended", self.now)
        status.pop("startTime", None)

    def _resume(self, status: Manifest) -> None:
        if any(each["type"] == "Suspended" and each["status"] == "True" for each in status.get("conditions") or ()):
            status["conditions"] = condition(status, "Suspended", "False", "JobResumed", "Job resumed", self.now)
        status.setdefault("startTime", self.now)

    def _fill(self, owner: Record, count: Count) -> None:
        """Make the pods that may run now, or take away those that are too many."""
        spec = owner.obj["spec"]
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        if completions is None:
            wanted = parallelism if count.succeeded == 0 else min(parallelism, len(count.active))
        else:
            wanted = min(parallelism, completions - count.succeeded)
        wanted = max(0, wanted - len(count.leaving))
        if len(count.active) > wanted:
            surplus = sorted(count.active, key=removal_order)[: len(count.active) - wanted]
            for pod in surplus:
                self._discard(pod)
                count.active.remove(pod)
            return
        missing = wanted - len(count.active)
        wait = self._backoff.get(owner.uid, Backoff()).until - self.store.clock()
        if missing and wait > 0:
            self.again_after(owner, wait * self.timers.speed)
            return
        if spec.get("completionMode") == "Indexed":
            busy = {index_of(pod.obj) for pod in [*count.active, *count.leaving]}
            free = (index for index in range(completions or 0) if index not in count.indexes and index not in busy)
            for index, _ in zip(free, range(missing)):
                count.active.append(self._indexed(owner, index))
            return
        for _ in range(missing):
            count.active.append(self.create(owner, spec["template"], finalizers=(TRACKING,)))

    def _indexed(self, owner: Record, index: int) -> Child:
        template = owner.obj["spec"]["template"]
        return self.create(
            owner,
            template,
            prefix=f"{owner.name}-{index}-",
            labels={INDEX: str(index)},
            annotations={INDEX: str(index)},
            finalizers=(TRACKING,),
            spec=with_index(template.get("spec") or {}, owner.name, index),
        )

    # ------------------------------------------------------------------ status and time

    def _status(self, owner: Record) -> Manifest:
        before = owner.obj.get("status") or {}
        kept = ("conditions", "startTime")
        return {name: before[name] for name in kept if before.get(name)}

    def _figures(self, status: Manifest, count: Count) -> None:
        status["terminating"] = len(count.leaving)
        status["ready"] = sum(pod.is_ready for pod in count.active)
        status["uncountedTerminatedPods"] = {}
        for name, number in (("active", len(count.active)), ("succeeded", count.succeeded), ("failed", count.failed)):
            if number:
                status[name] = number
        if count.indexes:
            status["completedIndexes"] = format_indexes(count.indexes)

    def _deadline(self, owner: Record, status: Manifest) -> None:
        deadline = owner.obj["spec"].get("activeDeadlineSeconds")
        if deadline is not None and status.get("startTime"):
            left = deadline - (self.store.clock() - seconds_of(status["startTime"])) * self.timers.speed
            self.timers.after(("job-deadline", owner.uid), max(0.0, left), lambda: self.queue.add((owner.namespace, owner.name)))

    def _expire_later(self, owner: Record, elapsed: float) -> None:
        ttl = owner.obj["spec"].get("ttlSecondsAfterFinished")
        if ttl is not None:
            self.again_after(owner, max(0.0, ttl - elapsed))

    def _expire(self, owner: Record) -> None:
        """A finished job goes when its time to live is over."""
        ttl = owner.obj["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        elapsed = (self.store.clock() - seconds_of(finished_at(owner.obj))) * self.timers.speed
        if elapsed < ttl:
            self._expire_later(owner, elapsed)
            return
        self.operations.delete(
            self.operations.kind(self.resource), owner.namespace, owner.name, DeleteOptions(propagation="Background")
        )


def finished_at(job: Manifest) -> str:
    """When a job completed or failed; empty while it has not."""
    for each in (job.get("status") or {}).get("conditions") or ():
        if each.get("type") in ("Complete", "Failed") and each.get("status") == "True":
            return str(each.get("lastTransitionTime") or "")
    return ""
