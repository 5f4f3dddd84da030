"""Jobs of a trace as specs of the model, read by the same ingest as any manifest.

To read every pod of a million equal jobs would take longer than to schedule them. So each distinct job is written as manifests and
read once, and its specs are copied with the names and times of each job that is equal to it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from msgspec.structs import replace

from navarch.apis.dialect import Settings
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, TaskSpec
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.simulator.jobs import VOLCANO, TraceJob, manifests, priority_class
from navarch.simulator.kai_objects import kai_object, kai_queues
from navarch.simulator.traces.reading import TraceError

_NAME = "template"


class Workload:
    """Makes specs for jobs and tells the cluster of queues and priority classes that jobs name."""

    def __init__(self, settings: Settings, cluster: Cluster, dialect: str = "navarch") -> None:
        """`dialect`: the system in whose words jobs and queues are written (`Policy.dialect`)."""
        self._settings = settings
        self._in_kais_words = dialect == "kai"
        self._cluster = cluster
        self._read: dict[Hashable, tuple[JobSpec, tuple[TaskSpec, ...]]] = {}

    def specs(self, job: TraceJob, expected: float | None) -> tuple[JobSpec, list[TaskSpec]]:
        """The job and its pods, all pending. `expected`: how long its owner says that it will run."""
        group, pods = self._template(job)
        key = f"default/{job.name}"
        spec = replace(group, key=key, name=job.name, uid=key, created=job.submit, expected_duration=expected)
        tasks: list[TaskSpec] = []
        for each, template in zip(job.pods, pods):
            for _ in range(each.count):
                name = f"{job.name}-{len(tasks)}"
                tasks.append(replace(template, uid=f"default/{name}", name=name, job=key, created=job.submit))
        return spec, tasks

    def _template(self, job: TraceJob) -> tuple[JobSpec, tuple[TaskSpec, ...]]:
        alike = (job.pods, job.queue, job.needed, job.priority)
        found = self._read.get(alike)
        if found is None:
            found = self._read[alike] = self._read_template(job)
        return found

    def _read_template(self, job: TraceJob) -> tuple[JobSpec, tuple[TaskSpec, ...]]:
        one_each = tuple(replace(each, count=1) for each in job.pods)
        objects = manifests(replace(job, name=_NAME, pods=one_each, min_pods=job.needed))
        if job.priority:
            objects.append(priority_class(job.priority))
        if self._in_kais_words:
            objects = [kai_object(each) for each in objects]
        if not self._has_queue(job.queue):
            objects += kai_queues(job.queue) if self._in_kais_words else [_queue(job.queue)]
        inventory = Inventory([Document(each, f"job {job.name}") for each in objects], self._settings)
        if inventory.mistakes:
            raise TraceError(f"line {job.line}", [str(inventory.mistakes[0])])
        read = inventory.cluster
        for priority in read.priority_classes.values():
            self._cluster.put_priority_class(priority)
        for name, queue in sorted(read.queues.items()):
            if not self._has_queue(name):
                self._cluster.put_queue(queue)
        tasks = sorted((task for task in read.tasks.specs if task is not None), key=lambda task: int(task.name.rpartition("-")[2]))
        group = read.jobs.specs[read.jobs.rows.of[f"default/{_NAME}"]]
        assert group is not None
        return group, tuple(tasks)

    def _has_queue(self, name: str) -> bool:
        """The queue `default` that exists without an object has no place in KAI's tree."""
        found = self._cluster.queues.get(name)
        return found is not None and not (self._in_kais_words and found.dialect == "implied")


def _queue(name: str) -> dict[str, Any]:
    spec, status = {"weight": 1}, {"state": "Open"}
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": spec, "status": status}
