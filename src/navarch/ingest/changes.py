"""The two protocols that ingest calls: `Changes` receives each change of the model, `Overlay` adds decisions to what the API shows.

The live scheduler implements both: changes move waiting jobs back to the active queue, and assumed binds count at once. Files need
neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from navarch.model.spec import JobSpec, NamespaceSpec, NodeSpec, ObjectSpec, QuotaSpec, TaskSpec


class Changes(Protocol):
    """Each method is called after the model changed. `before` is None for something new, `now` is None for something removed."""

    def task_changed(self, before: TaskSpec | None, task: TaskSpec) -> None: ...

    def tasks_added(self, tasks: Sequence[TaskSpec]) -> None:
        """Many new tasks, after all of them are in the model. Means the same as `task_changed(None, task)` for each."""

    def task_removed(self, before: TaskSpec) -> None: ...

    def job_changed(self, before: JobSpec | None, job: JobSpec) -> None:
        """Its PodGroup changed, or another object that decides about it. Not called when only its pods changed."""

    def job_removed(self, before: JobSpec, held: bool) -> None:
        """`held`: its pods asked for resources or had some."""

    def node_changed(self, before: NodeSpec | None, node: NodeSpec) -> None: ...

    def node_removed(self, name: str) -> None: ...

    def queues_changed(self, *, implied: bool) -> None:
        """`implied`: only queues that have no object came or went."""

    def namespace_changed(self, before: NamespaceSpec | None, now: NamespaceSpec | None) -> None: ...

    def quota_changed(self, before: QuotaSpec | None, now: QuotaSpec | None) -> None: ...

    def object_changed(self, spec: ObjectSpec, before: Any, now: Any) -> None:
        """An object that only some plugins read. `before` and `now` are the values that cycles see."""


class NoChanges:
    """Ignores changes, for objects that are read once."""

    def task_changed(self, before: TaskSpec | None, task: TaskSpec) -> None: ...

    def tasks_added(self, tasks: Sequence[TaskSpec]) -> None: ...

    def task_removed(self, before: TaskSpec) -> None: ...

    def job_changed(self, before: JobSpec | None, job: JobSpec) -> None: ...

    def job_removed(self, before: JobSpec, held: bool) -> None: ...

    def node_changed(self, before: NodeSpec | None, node: NodeSpec) -> None: ...

    def node_removed(self, name: str) -> None: ...

    def queues_changed(self, *, implied: bool) -> None: ...

    def namespace_changed(self, before: NamespaceSpec | None, now: NamespaceSpec | None) -> None: ...

    def quota_changed(self, before: QuotaSpec | None, now: QuotaSpec | None) -> None: ...

    def object_changed(self, spec: ObjectSpec, before: Any, now: Any) -> None: ...


class Overlay(Protocol):
    """Decisions that the API does not show yet. Each method returns what cycles see instead of what the API shows."""

    def task_shown(self, task: TaskSpec) -> None:
        """The API shows this task; drop the decisions that it confirms or contradicts."""

    def has_no_decision(self, task: TaskSpec) -> bool:
        """Whether no decision concerns this task: cycles see it as the API shows it."""

    def task_gone(self, uid: str) -> None: ...

    def bind_requested(self, uid: str) -> None:
        """A BindRequest for this pod exists; it replaces the decision to make one."""

    def task(self, task: TaskSpec) -> TaskSpec: ...

    def job(self, job: JobSpec, version: int) -> JobSpec:
        """`version` is the resourceVersion of the group's object."""

    def job_gone(self, key: str) -> None: ...

    def object(self, spec: ObjectSpec) -> Any: ...

    def object_gone(self, spec: ObjectSpec) -> None: ...

    def uid_of(self, namespace: str, pod: str) -> str:
        """The uid of a pod by its name; empty if the pod is not known."""


class NoOverlay:
    """Adds nothing to the objects."""

    def task_shown(self, task: TaskSpec) -> None: ...

    def has_no_decision(self, task: TaskSpec) -> bool:
        return True

    def task_gone(self, uid: str) -> None: ...

    def bind_requested(self, uid: str) -> None: ...

    def task(self, task: TaskSpec) -> TaskSpec:
        return task

    def job(self, job: JobSpec, version: int) -> JobSpec:
        return job

    def job_gone(self, key: str) -> None: ...

    def object(self, spec: ObjectSpec) -> Any:
        return spec.value

    def object_gone(self, spec: ObjectSpec) -> None: ...

    def uid_of(self, namespace: str, pod: str) -> str:
        return ""
