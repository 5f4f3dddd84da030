"""Which part of its job a task belongs to, where a job names its parts."""

from __future__ import annotations

from navarch.model.spec import JobSpec, TaskSpec

DEFAULT_PART = "default"
"""The one part of a job that names none."""


def part_of(job: JobSpec, task: TaskSpec) -> str | None:
    """The name of the task's sub-group; None if it names one that the job does not have (or has as a mere parent).

    >>> from navarch.model.spec import Shape, SubGroupSpec
    >>> job = JobSpec("n/j", "q", sub_groups=(SubGroupSpec("a"), SubGroupSpec("b", parent="a")))
    >>> [part_of(job, TaskSpec("u", "n", "t", Shape(), sub_group=name)) for name in ("b", "a", "")]
    ['b', None, None]
    """
    parents = {group.parent for group in job.sub_groups}
    leaves = {group.name for group in job.sub_groups if group.name not in parents} or {DEFAULT_PART}
    name = task.sub_group or DEFAULT_PART
    return name if name in leaves else None


def is_member(job: JobSpec, task: TaskSpec) -> bool:
    return (not job.sub_groups and not task.sub_group) or part_of(job, task) is not None
