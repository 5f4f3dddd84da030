"""Bundles of victims: the surplus of a gang (safe), and the rest, whose loss ends it (whole).

Evicting one member of a gang that needs all of them wastes the others. So the candidates of each job are split. *Safe* tasks are
above the minimum of the job, of its roles and of its sub-groups. The remaining ones are evicted together or not at all. Safe
bundles come first. Whole bundles are ordered by return: the part of the need that they free, over the cost of ending the job.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.engine.victims.search import total_request
from navarch.model.resources import IntArray
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus

_READY = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED)

ONE_WAVE = 60.0
"""Seconds. Tasks that are placed together start within seconds of each other in any order, so that order does not matter."""


class Bundle(Struct, frozen=True):
    job: Job
    tasks: tuple[int, ...]
    whole: bool

    def return_on(self, session: Session, need: IntArray) -> float:
        """The part of the need that it frees, over what ending the whole job costs; infinite for safe bundles."""
        if not self.whole:
            return math.inf
        asked = need > 0
        given = np.minimum(total_request(session, self.tasks), need)[asked] / need[asked]
        cost = total_request(session, self.job.tasks)[asked] / need[asked]
        return float(given.sum() / cost.sum()) if cost.sum() else math.inf


def split(session: Session, job: Job, candidates: Sequence[int]) -> list[Bundle]:
    """The job's candidates as a safe and a whole bundle, in order of eviction; either may be missing."""
    if session.semantics.gangs_lose_newest_first:
        ordered = newest_first(session, candidates)
    else:
        ordered = sorted(candidates, key=lambda t: (session.task(t).priority, session.task(t).uid))
    surplus = job.ready_count - job.min_member
    if surplus < 0:
        return [Bundle(job, tuple(ordered), whole=False)]
    roles = _role_surplus(job)
    groups = _GroupSurplus(job)
    safe: list[int] = []
    whole: list[int] = []
    for task in ordered:
        role = session.task(task).role
        if surplus > 0 and roles.get(role, 1) > 0 and groups.can_spare(task):
            safe.append(task)
            surplus -= 1
            if role in roles:
                roles[role] -= 1
            groups.remove(task)
        else:
            whole.append(task)
    return [Bundle(job, tuple(tasks), kind) for tasks, kind in ((safe, False), (whole, True)) if tasks]


def newest_first(session: Session, tasks: Sequence[int]) -> list[int]:
    """Lowest priority first, then the newest, then the highest number: an elastic job loses worker-9 before worker-0, and its first
    tasks, the masters and launchers, last."""
    wave, last = 0, -math.inf
    waves: dict[int, int] = {}
    for task in sorted(tasks, key=lambda t: _start(session.task(t))):
        start = _start(session.task(task))
        wave += start - last > ONE_WAVE  # false between two that have not started
        waves[task], last = wave, start

    def rank(task: int) -> tuple[int, int, int, str, str]:
        spec = session.task(task)
        return -spec.priority, waves[task], number_in(spec.name), spec.name, spec.uid

    return sorted(tasks, key=rank, reverse=True)


def _start(spec: TaskSpec) -> float:
    """A task that has not started counts as newer than all others."""
    return math.inf if spec.started is None else spec.started


def number_in(name: str) -> int:
    """The number that a name ends in, else -1.

    >>> number_in("web-10"), number_in("job-worker-7"), number_in("launcher")
    (10, 7, -1)
    """
    last = name.rpartition("-")[2]
    return int(last) if last.isascii() and last.isdigit() and len(last) < 18 else -1


def _role_surplus(job: Job) -> dict[str, int]:
    if not job.roles_matter:
        return {}
    counts = job.role_counts(_READY, pending_best_effort=True)
    return {role: counts[role] - minimum for role, minimum in job.spec.roles}


class _GroupSurplus:
    """How many ready sub-jobs each policy can still lose. A sub-job below its minimum is broken; losing more of it costs
    nothing."""

    def __init__(self, job: Job) -> None:
        self.of: dict[int, int] = {}
        self.broken: set[int] = set()
        self.above: dict[int, int] = {}
        """Sub-job -> how many it has above its minimum."""
        self.spare: dict[str, int] = {}
        if not any(policy.min_groups for policy in job.spec.sub_groups):
            return
        self.spare = {policy.name: -policy.min_groups for policy in job.spec.sub_groups}
        self.policy: dict[int, str] = {}
        for number, sub in enumerate(job.sub_jobs):
            name = sub.policy.name if sub.policy else ""
            self.policy[number] = name
            self.of.update(dict.fromkeys(sub.tasks, number))
            if sub.is_ready:
                self.spare[name] = self.spare.get(name, 0) + 1
                self.above[number] = -sub.missing
            else:
                self.broken.add(number)

    def can_spare(self, task: int) -> bool:
        if not self.spare:
            return True
        number = self.of[task]
        return number in self.broken or self.above[number] > 0 or self.spare[self.policy[number]] > 0

    def remove(self, task: int) -> None:
        if not self.spare:
            return
        number = self.of[task]
        if number in self.broken:
            return
        self.above[number] -= 1
        if self.above[number] < 0:
            self.broken.add(number)
            self.spare[self.policy[number]] -= 1


def allowed_parts(bundles: Sequence[Bundle], allowed: set[int]) -> list[Bundle]:
    """The bundles when only `allowed` tasks may go: a whole bundle stays complete or is dropped, a safe one shrinks."""
    out = []
    for bundle in bundles:
        tasks = tuple(t for t in bundle.tasks if t in allowed)
        if tasks == bundle.tasks:
            out.append(bundle)
        elif tasks and not bundle.whole:
            out.append(replace(bundle, tasks=tasks))
    return out
