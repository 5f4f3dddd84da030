"""A copy of a job with fewer tasks: the rest of a victim, or the part of a job that a search places first.

Order and tree are those of the smaller job. Statuses, counts and everything else that changes belong to the whole job.
"""

from __future__ import annotations

from navarch.engine.gangs.gang_tree import GangTree
from navarch.engine.job import Job


class PartialJob(Job):
    __slots__ = ("whole",)

    def __init__(self, job: Job, tree: GangTree) -> None:
        whole = job.whole if isinstance(job, PartialJob) else job
        self.whole: Job = whole
        for name in _SHARED:
            setattr(self, name, getattr(whole, name))
        self.tasks = tuple(task for leaf in tree.leaves for task in leaf.tasks)
        self.version = 0
        self._sub_jobs = None
        self._tree = tree


_SHARED = tuple(name for name in Job.__slots__ if name not in ("_sub_jobs", "_tree", "tasks", "version"))


def whole_job(job: Job) -> Job:
    return job.whole if isinstance(job, PartialJob) else job
