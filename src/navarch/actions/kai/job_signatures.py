"""Job signatures: once a job finds no room, jobs with the same signature that ask for no less are skipped for the rest of the action.

The signature of a job is what its pending pods demand of nodes, without amounts. Among failed jobs of one signature, the one with
the smallest requests is kept. Other skip rules have other keys (`actions/eviction_failures.py` needs equal amounts and equal
counts; kube-scheduler's `schedule` works on single pods), so they do not share this one.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from navarch.engine.gangs.gang_tree import Part
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.spec import Shape
from navarch.model.status import IS_ALLOCATED, TaskStatus

Request = tuple[float, ...]
_HAS_ROOM = IS_ALLOCATED.copy()
_HAS_ROOM[TaskStatus.PIPELINED] = True


class Signatures:
    """The signatures of jobs at the start of the cycle; pods that were placed since then still count. Computed once for each job. Made
    with `Session.shared`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._of_job: dict[int, Hashable] = {}
        self._of_shape: dict[int, Hashable] = {}

    def of(self, job: Job) -> Hashable:
        found = self._of_job.get(job.row)
        if found is None:
            tree = job.tree
            parts = []
            for leaf in tree.leaves:
                pods = sorted(self._pod(task) for task in leaf.tasks if not _HAS_ROOM[self.session.task(task).status])
                parts.append((repr(_topologies(leaf)), tuple(pods)) if pods else ("", ()))
            found = self._of_job[job.row] = tuple(sorted(parts))
        return found

    def _pod(self, task: int) -> str:
        number, spec = int(self.session.shape[task]), self.session.task(task)
        kept = self._of_shape.get(number)
        if kept is None:
            shape = self.session.snapshot.shapes[number]
            kept = self._of_shape[number] = repr(_without_amounts(shape))
        return f"{kept}/{spec.priority_class}/{spec.pod_priority}"


def _topologies(leaf: Part) -> list[object]:
    out: list[object] = []
    part: Part | None = leaf
    while part is not None:
        out.append(part.topology)
        part = part.parent
    return out


def _without_amounts(shape: Shape) -> Shape:
    shape = replace(shape, requests=(), scoring=(0, 0), footprint=(0, 0), devices=None, extended=())
    return replace(shape, qos="", images=(), containers=0, hints=())


class FailedJobs:
    """The failures of one action, or of one queue in it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._easiest: dict[Hashable, list[Request]] = {}

    def is_no_easier(self, job: Job) -> bool:
        """Whether the job asks for no less than a failed job with the same signature."""
        easiest = self._easiest.get(self._key(job))
        return easiest is not None and not _easier(self._requests(job), easiest)

    def add(self, job: Job) -> None:
        key, mine = self._key(job), self._requests(job)
        easiest = self._easiest.get(key)
        smaller = easiest is not None and mine and len(mine) <= len(easiest) and all(_within(a, b) for a, b in zip(mine, easiest))
        if easiest is None or smaller:
            self._easiest[key] = mine

    def _key(self, job: Job) -> Hashable:
        return self.session.shared(Signatures).of(job)

    def _requests(self, job: Job) -> list[Request]:
        session = self.session
        waiting = [t for leaf in job.tree.leaves for t in leaf.tasks if session.status[t] == TaskStatus.PENDING]
        return sorted(self._amounts(task) for task in waiting)

    def _amounts(self, task: int) -> Request:
        """GPUs first, fractions included; memory of shared GPUs; then every other resource."""
        session = self.session
        assert session.devices is not None
        kind = session.class_of(task)
        asked, whole = kind.shape.devices, set(session.devices.dims)
        memory = asked.count * asked.memory if asked is not None else 0
        rest = [float(amount) for dim, amount in enumerate(kind.request.tolist()) if dim not in whole]
        return session.devices.gpus_of(kind, 0), float(memory), *rest


def _easier(mine: list[Request], other: list[Request]) -> bool:
    if not mine or not other:
        return False
    if len(mine) < len(other):
        return True
    return any(a != b and _within(a, b) for a, b in zip(mine, other))


def _within(a: Request, b: Request) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))
