"""The workload that a PodGroup is made for, as the object of events: `kubectl describe vcjob train` must say why it waits.

People know the Job that they created, not the group that a controller made for it. So events of a group are written about both.
"""

from __future__ import annotations

from typing import Final

from navarch.live.writers.events import Regarding
from navarch.model.spec import JobSpec
from navarch.views.job_names import VOLCANO_JOB, job_name

_API_VERSIONS: Final = {VOLCANO_JOB: "batch.volcano.sh/v1alpha1", "Job": "batch/v1"}


def workload_reference(group: JobSpec) -> Regarding | None:
    """The Volcano Job or Job that owns the group; None if it has another owner or none.

    >>> workload_reference(JobSpec("ml/bert-u1", "q", namespace="ml", name="bert-u1", owner=("Job", "bert", "u1")))
    Regarding(kind='Job', namespace='ml', name='bert', uid='u1', api_version='batch.volcano.sh/v1alpha1')
    """
    if group.owner is None or group.owner[0] != "Job":
        return None
    _, name, uid = group.owner
    kind = job_name(group.key, group, {}).kind
    return Regarding("Job", group.namespace, name, uid, _API_VERSIONS[kind])
