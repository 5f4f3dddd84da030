"""Sub-groups of a job: parts of a gang with a minimum of their own.

A policy of the job (`SubGroupSpec`) selects pods by labels and splits them by the values of its keys; the first policy that
matches a pod wins. Pods that match no policy form the default sub-job, which is the whole job where there are no policies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from navarch.model.selectors import selector_matches
from navarch.model.spec import SubGroupSpec
from navarch.model.status import STATUS_COUNT, TaskStatus

if TYPE_CHECKING:
    from navarch.engine.job import Job
    from navarch.engine.session import Session

_READY = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED)
Test = Literal["is_ready", "is_pipelined", "is_valid"]
"""A property of a sub-job."""


class SubJob:
    __slots__ = ("job", "match_index", "min_member", "name", "policy", "rows", "tasks")

    def __init__(self, job: Job, policy: SubGroupSpec | None, values: tuple[str, ...], tasks: list[int]) -> None:
        self.job = job
        self.policy = policy
        self.tasks = tasks
        self.rows: npt.NDArray[np.intp] = np.array(tasks, dtype=np.intp)
        self.name = "" if policy is None else "-".join((policy.name, *values))
        self.match_index = int(values[0]) if values and values[0].isdigit() else 0
        if policy is not None:
            self.min_member = policy.min_member
        else:
            self.min_member = 1 if job.spec.sub_groups else job.min_member

    def count(self, *statuses: TaskStatus) -> int:
        counts = np.bincount(self.job.session.status[self.rows], minlength=STATUS_COUNT).tolist()
        return int(sum(counts[status] for status in statuses))

    @property
    def pending_best_effort(self) -> int:
        if not self.job.best_effort_pending:
            return 0
        session = self.job.session
        best_effort = session.snapshot.shape_best_effort
        return sum(1 for t in self.tasks if session.status[t] == TaskStatus.PENDING and best_effort[session.shape[t]])

    @property
    def is_ready(self) -> bool:
        return self.missing <= 0

    @property
    def missing(self) -> int:
        """How many more tasks it needs to be ready."""
        return self.min_member - self.count(*_READY) - self.pending_best_effort

    @property
    def is_pipelined(self) -> bool:
        return self.count(*_READY, TaskStatus.PIPELINED) + self.pending_best_effort >= self.min_member

    @property
    def is_valid(self) -> bool:
        return self.count(*_READY, TaskStatus.PIPELINED, TaskStatus.PENDING) >= self.min_member

    @property
    def priority(self) -> int:
        return max((int(self.job.session.snapshot.tasks.priority[t]) for t in self.tasks), default=0)


def split_into_sub_jobs(job: Job) -> list[SubJob]:
    """The job's sub-jobs, by name; the default one first where it has tasks or is the only one."""
    groups: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    rest: list[int] = []
    for task in job.tasks:
        place = _policy_of(job, task)
        if place is None:
            rest.append(task)
        else:
            groups.setdefault(place, []).append(task)
    found = [SubJob(job, job.spec.sub_groups[i], values, tasks) for (i, values), tasks in groups.items()]
    found.sort(key=lambda s: s.name)
    if rest or not found:
        found.insert(0, SubJob(job, None, (), rest))
    return found


def _policy_of(job: Job, task: int) -> tuple[int, tuple[str, ...]] | None:
    spec = job.session.task(task)
    for number, policy in enumerate(job.spec.sub_groups):
        if spec.sub_group and spec.sub_group == policy.name:
            return number, ()
        if policy.selector is None and not policy.match_label_keys:
            continue
        if policy.selector is not None and not selector_matches(policy.selector, spec.labels):
            continue
        values = tuple(spec.labels[key] for key in policy.match_label_keys if key in spec.labels)
        if values and len(values) == len(policy.match_label_keys):
            return number, values
    return None


def enough_sub_jobs(job: Job, test: Test) -> bool:
    """At least `min_groups` sub-jobs of each policy satisfy the test."""
    return not any(good < policy.min_groups for policy, good in _good(job, test))


def missing_sub_jobs(job: Job, test: Test) -> list[str]:
    """For each policy with too few such sub-jobs: how many it has and how many it needs, in pods where it is one named part."""
    return [_shortage(job, policy, good) for policy, good in _good(job, test) if good < policy.min_groups]


def _good(job: Job, test: Test) -> Iterator[tuple[SubGroupSpec, int]]:
    for policy in job.spec.sub_groups:
        if policy.min_groups > 0:
            yield policy, sum(1 for sub in job.sub_jobs if sub.policy is policy and getattr(sub, test))


def _shortage(job: Job, policy: SubGroupSpec, good: int) -> str:
    if policy.selector is not None or policy.match_label_keys:
        return f"{good} of the {policy.min_groups} of {policy.name}"
    there = sum(len(sub.tasks) for sub in job.sub_jobs if sub.policy is policy)
    return f"{policy.name} has {there} of {policy.min_member} pods"


def needed_first(session: Session, job: Job) -> list[SubJob]:
    """The job's sub-jobs: those that it still needs to become ready, then the others by the plugins' order."""
    if len(job.sub_jobs) == 1:
        return job.sub_jobs.copy()
    needed = still_needed(session, job)
    return needed + sorted((sub for sub in job.sub_jobs if sub not in needed), key=session.sub_job_order)


def still_needed(session: Session, job: Job) -> list[SubJob]:
    """The fewest sub-jobs that bring each policy of the job to its minimum of ready ones, by the plugins' order."""
    ready: Counter[str] = Counter()
    waiting: list[SubJob] = []
    for sub in job.sub_jobs:
        if session.sub_job_ready(sub):
            ready[sub.policy.name if sub.policy else ""] += 1
        else:
            waiting.append(sub)
    waiting.sort(key=session.sub_job_order)
    needed: list[SubJob] = []
    for sub in waiting:
        name, minimum = (sub.policy.name, sub.policy.min_groups) if sub.policy else ("", 0)
        if ready[name] < minimum:
            ready[name] += 1
            needed.append(sub)
    return needed
