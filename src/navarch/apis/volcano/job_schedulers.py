"""The scheduler names of Volcano's Jobs, for groups whose pods do not exist yet.

Volcano's controller makes a group for each Job, and makes the pods after the group is admitted. The group does not name a scheduler;
the Job does, and each of its tasks may name another one.
"""

from __future__ import annotations

from navarch.apis.core.objects import KubeObject, Part
from navarch.apis.dialect import Kind, Settings
from navarch.apis.operators.workload import PodMaker


class TemplatePod(Part, frozen=True):
    scheduler_name: str | None = None


class Template(Part, frozen=True):
    spec: TemplatePod = TemplatePod()


class Task(Part, frozen=True):
    template: Template = Template()


class JobPart(Part, frozen=True):
    scheduler_name: str | None = None
    tasks: tuple[Task, ...] | None = None


class Job(KubeObject, frozen=True):
    """Only the scheduler names are kept: the templates would fill the memory."""

    spec: JobPart = JobPart()


def read_job(job: Job, settings: Settings) -> PodMaker:
    own = job.spec.scheduler_name or ""
    names = {task.template.spec.scheduler_name or own for task in job.spec.tasks or ()}
    return PodMaker(job.metadata.namespace or "default", job.metadata.name, frozenset(names or {own}))


KIND = Kind(("batch.volcano.sh/v1alpha1",), "Job", "jobs", Job, read_job)
