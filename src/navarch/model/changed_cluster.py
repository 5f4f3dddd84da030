"""A cluster that is changed for a while: what a trial or a forecast does to the model, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import IS_TERMINAL, TaskStatus


class ChangedCluster:
    """Writes to the cluster, and keeps how each object was at first. `restore` puts all of them back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._tasks: dict[str, TaskSpec | None] = {}
        self._jobs: dict[str, JobSpec | None] = {}
        self._held: dict[str, bool] = {}
        self._objects: dict[str, dict[tuple[str, str], Any]] = {}

    def put_task(self, task: TaskSpec) -> None:
        self.keep_task(task.uid)
        self._cluster.put_task(task)

    def put_job(self, job: JobSpec) -> None:
        self.keep_job(job.key)
        self._cluster.put_job(job)

    def hold(self, key: str, held: bool) -> None:
        """Hold a job back from cycles, or release it."""
        jobs = self._cluster.jobs
        row = jobs.rows.of.get(key)
        if row is not None and bool(jobs.held[row]) != held:
            self._held.setdefault(key, not held)
            jobs.hold(key, held)

    def end_jobs(self, keys: Iterable[str]) -> None:
        """Their pods are finished, and their groups take part in no further cycle."""
        jobs, specs = self._cluster.jobs, self._cluster.tasks.specs
        rows = {key: row for key in keys if (row := jobs.rows.of.get(key)) is not None}
        pods = (task for row in rows.values() for each in jobs.tasks[row] if (task := specs[each]) is not None)
        ended = [replace(task, status=TaskStatus.SUCCEEDED) for task in pods if not IS_TERMINAL[task.status]]
        for task in ended:
            self.keep_task(task.uid)
        self._cluster.put_tasks(ended)
        for key in rows:
            self.keep_job(key)
            self._cluster.remove_job(key)

    def keep_task(self, uid: str) -> None:
        """Keep how a task is now. A caller that lets others write to the cluster says so before."""
        if uid not in self._tasks:
            self._tasks[uid] = self._cluster.task(uid)

    def keep_job(self, key: str) -> None:
        if key not in self._jobs:
            row = self._cluster.jobs.rows.of.get(key)
            self._jobs[key] = None if row is None else self._cluster.jobs.specs[row]

    def keep_objects(self, kind: str) -> None:
        """Keep the objects of a kind that plugins read as they are."""
        if kind not in self._objects:
            self._objects[kind] = dict(self._cluster.objects.get(kind, {}))

    def restore(self, restored: Callable[[JobSpec], JobSpec] | None = None) -> None:
        """`restored` makes of a kept job the one that is put."""
        cluster = self._cluster
        for uid, task in self._tasks.items():
            if task is None:
                cluster.remove_task(uid)
        cluster.put_tasks([task for task in self._tasks.values() if task is not None])
        for key, job in self._jobs.items():
            if job is None:
                cluster.remove_job(key)
            else:
                cluster.put_job(job if restored is None else restored(job))
        for key, held in self._held.items():
            cluster.jobs.hold(key, held)
        for kind, before in self._objects.items():
            self._restore_objects(kind, before)
        self._tasks, self._jobs, self._held, self._objects = {}, {}, {}, {}

    def _restore_objects(self, kind: str, before: Mapping[tuple[str, str], Any]) -> None:
        now = dict(self._cluster.objects.get(kind, {}))
        for (namespace, name), value in before.items():
            if now.pop((namespace, name), None) is not value:
                self._cluster.put_object(kind, namespace, name, value)
        for namespace, name in now:
            self._cluster.remove_object(kind, namespace, name)
