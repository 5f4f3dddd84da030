"""What changed since the last look: keys of jobs, names of nodes, whether queues did; and which devices pods share on each node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from navarch.ingest.changes import NoChanges
from navarch.model.spec import JobSpec, NodeSpec, ObjectSpec, TaskSpec
from navarch.model.status import IS_TERMINAL


class ClusterChanges(NoChanges):
    """Ingest calls it after each change of the model; `taken` empties it."""

    def __init__(self) -> None:
        self.jobs: set[str] = set()
        self.nodes: set[str] = set()
        self.queues = False
        self.others = False
        """Something changed that only the figures of a session show: classes, quotas, volumes."""
        self.shared: dict[str, dict[str, int]] = {}
        """Node -> its devices that pods share -> how many pods share it."""

    def __bool__(self) -> bool:
        return bool(self.jobs or self.nodes or self.queues or self.others)

    def taken(self) -> tuple[set[str], set[str], bool]:
        """Jobs, nodes, and whether queues changed."""
        found = self.jobs, self.nodes, self.queues
        self.jobs, self.nodes, self.queues, self.others = set(), set(), False, False
        return found

    def task_changed(self, before: TaskSpec | None, task: TaskSpec) -> None:
        if task.job:
            self.jobs.add(task.job)
        if task.node:
            self.nodes.add(task.node)
        if before is not None:
            if before.job and before.job != task.job:
                self.jobs.add(before.job)
            if before.node and before.node != task.node:
                self.nodes.add(before.node)
            if before.gpu_groups:
                self._share(before, -1)
        if task.gpu_groups:
            self._share(task, 1)

    def tasks_added(self, tasks: Sequence[TaskSpec]) -> None:
        for task in tasks:
            self.task_changed(None, task)

    def task_removed(self, before: TaskSpec) -> None:
        if before.job:
            self.jobs.add(before.job)
        if before.node:
            self.nodes.add(before.node)
        if before.gpu_groups:
            self._share(before, -1)

    def _share(self, task: TaskSpec, sign: int) -> None:
        if not task.node or IS_TERMINAL[task.status]:
            return
        groups = self.shared.setdefault(task.node, {})
        for each in task.gpu_groups:
            count = groups.get(each, 0) + sign
            if count > 0:
                groups[each] = count
            else:
                groups.pop(each, None)
        if not groups:
            del self.shared[task.node]

    def job_changed(self, before: JobSpec | None, job: JobSpec) -> None:
        self.jobs.add(job.key)

    def job_removed(self, before: JobSpec, held: bool) -> None:
        self.jobs.add(before.key)

    def node_changed(self, before: NodeSpec | None, node: NodeSpec) -> None:
        self.nodes.add(node.name)

    def node_removed(self, name: str) -> None:
        self.nodes.add(name)

    def queues_changed(self, *, implied: bool) -> None:
        self.queues = True

    def object_changed(self, spec: ObjectSpec, before: Any, now: Any) -> None:
        self.others = True
