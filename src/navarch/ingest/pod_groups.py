"""The jobs of the model that have a PodGroup object, in whatever API it is written.

A group becomes a job when it is in our node pool, when no API of higher precedence has a group of the same key, and, while it has no
pods, when it is ours to admit (`EmptyGroups`). A group whose pods all name other schedulers is a job too, because they count in its
queue; but nothing is written to it (`is_foreign`). Namespaces and priority classes complete a job: its queue if it names none, its
priority.
"""

from __future__ import annotations

from collections.abc import Iterable

from navarch.apis.dialect import Settings
from navarch.apis.operators.workload import PodMaker, WorkloadSpec
from navarch.ingest.api_precedence import ApiPrecedence
from navarch.ingest.changes import Changes, Overlay
from navarch.ingest.empty_groups import EmptyGroups
from navarch.ingest.groups import completed
from navarch.ingest.queues import Queues
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec


class PodGroups:
    """Keeps the jobs of `cluster` that have an object."""

    def __init__(self, settings: Settings, cluster: Cluster, queues: Queues, overlay: Overlay, changes: Changes) -> None:
        self._settings = settings
        self._cluster = cluster
        self._queues = queues
        self._overlay = overlay
        self._changes = changes
        self._objects: ApiPrecedence[tuple[JobSpec, int]] = ApiPrecedence()
        self._other_pools: ApiPrecedence[JobSpec] = ApiPrecedence()
        self.for_others: set[str] = set()
        """Groups without pods that another scheduler admits. They take part from their first pod on: then `refresh` them."""
        self._empty = EmptyGroups(settings.scheduler_names)

    def get(self, key: str) -> JobSpec | None:
        """The group's object as read, without what other objects or the overlay add to it."""
        found = self._objects.get(key)
        return found[0] if found else None

    def version(self, key: str) -> int:
        """The resourceVersion of the object that `get` returns; 0 if there is none."""
        found = self._objects.get(key)
        return found[1] if found else 0

    def keys(self) -> list[str]:
        """Keys of all groups that have an object in our pool."""
        return self._objects.names()

    def is_foreign(self, key: str) -> bool:
        """Whether another scheduler decides for this group: it is in another node pool, all its pods name other schedulers, or it has
        no pods and is not ours to admit."""
        if key in self.for_others or (key in self._other_pools and key not in self._objects):
            return True
        row = self._cluster.jobs.rows.of.get(key)
        return row is not None and bool(self._cluster.jobs.tasks[row]) and not self._has_pod_of_ours(row)

    def _has_pod_of_ours(self, row: int) -> bool:
        names, tasks = self._settings.scheduler_names, self._cluster.tasks.specs
        if names is None:
            return True
        return any((task := tasks[each]) is not None and task.scheduler_name in names for each in self._cluster.jobs.tasks[row])

    def put(self, spec: JobSpec, version: int) -> None:
        if self._settings.is_in_pool(spec.labels):
            self._other_pools.remove(spec.key, spec.dialect, spec.api_version)
            self._take(*self._objects.put(spec.key, spec.dialect, spec.api_version, (spec, version)))
        else:
            self._drop(spec)
            self._other_pools.put(spec.key, spec.dialect, spec.api_version, spec)

    def remove(self, spec: JobSpec) -> None:
        self._other_pools.remove(spec.key, spec.dialect, spec.api_version)
        self._drop(spec)

    def put_pod_maker(self, maker: PodMaker) -> None:
        self._refresh(self._empty.put(maker))

    def remove_pod_maker(self, maker: PodMaker) -> None:
        self._refresh(self._empty.remove(maker))

    def put_workload(self, workload: WorkloadSpec) -> None:
        self._refresh(self._empty.put_workload(workload))

    def remove_workload(self, workload: WorkloadSpec) -> None:
        self._refresh(self._empty.remove_owner(workload.key))

    def unattended_makers(self, before: float) -> list[PodMaker]:
        return self._empty.unattended(before)

    def pod_left(self, key: str) -> None:
        """Without pods, the Job of a group decides whether the group is ours."""
        if key in self._objects and self._settings.scheduler_names is not None:
            row = self._cluster.jobs.rows.of.get(key)
            if row is None or not self._cluster.jobs.tasks[row]:
                self.refresh(key)

    def refresh(self, key: str) -> None:
        """Take the group as its object says, with what other objects and the overlay say now."""
        found = self._objects.get(key)
        if found is not None:
            self._take(*found)

    def _refresh(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.refresh(key)

    def refresh_all(self, namespace: str = "") -> None:
        """Refresh every group, or those of one namespace."""
        for key in self._objects.names():
            if not namespace or key.startswith(f"{namespace}/"):
                self.refresh(key)

    def _drop(self, spec: JobSpec) -> None:
        """The group is deleted, or in another pool now."""
        self._empty.forget(spec)
        self._overlay.job_gone(spec.key)
        found = self._objects.remove(spec.key, spec.dialect, spec.api_version)
        if found is not None:
            self._take(*found)
        else:
            self.for_others.discard(spec.key)
            self._remove_job(spec.key)

    def _take(self, spec: JobSpec, version: int) -> None:
        spec = completed(spec, self._settings, self._cluster.namespaces, self._cluster.priority_classes)
        spec = self._overlay.job(spec, version)
        jobs = self._cluster.jobs
        row = jobs.rows.of.get(spec.key)
        if row is not None and jobs.tasks[row]:
            if self._has_pod_of_ours(row):
                self._empty.has_pods(spec)
        elif self._empty.is_for_others(spec):
            self.for_others.add(spec.key)
            self._remove_job(spec.key)
            return
        self.for_others.discard(spec.key)
        before = jobs.specs[row] if row is not None else None
        if before == spec:
            return
        self._cluster.put_job(spec)
        if before is None and self._queues.job_added(spec.namespace):
            self._changes.queues_changed(implied=True)
        self._changes.job_changed(before, spec)

    def _remove_job(self, key: str) -> None:
        jobs = self._cluster.jobs
        row = jobs.rows.of.get(key)
        before = jobs.specs[row] if row is not None else None
        if before is None:
            return
        held = bool(jobs.pending[:, row].any() or jobs.allocated[:, row].any())
        self._cluster.remove_job(key)
        if self._queues.job_removed(before.namespace):
            self._changes.queues_changed(implied=True)
        self._changes.job_removed(before, held)
