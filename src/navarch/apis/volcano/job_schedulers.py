"""The scheduler names of Volcano's Jobs, for groups whose pods do not exist yet, and whether a controller has taken them up.

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


class JobState(Part, frozen=True):
    phase: str | None = None


class JobStatus(Part, frozen=True):
    state: JobState = JobState()


class Job(KubeObject, frozen=True):
    """Only the scheduler names and the phase are kept: the templates would fill the memory."""

    spec: JobPart = JobPart()
    status: JobStatus = JobStatus()


def read_job(job: Job, settings: Settings) -> PodMaker:
    own = job.spec.scheduler_name or ""
    names = {task.template.spec.scheduler_name or own for task in job.spec.tasks or ()}
    meta, phase = job.metadata, job.status.state.phase
    return PodMaker(meta.namespace or "default", meta.name, frozenset(names or {own}), meta.uid or "", meta.created, bool(phase))


KIND = Kind(("batch.volcano.sh/v1alpha1",), "Job", "jobs", Job, read_job)
