"""Reads pods into tasks that share equal values, so that a hundred thousand pods fit into little memory.

Pods of a gang have the same labels, owner and queue, and often the same moments. Each such value is kept once. Of a pod's conditions
only those stay that the dashboard and scheduling rules read.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.ingest.pod_reader import PodReader, Sibling
from navarch.model.spec import Labels, TaskSpec

KEPT_CONDITIONS: Final = frozenset({"DisruptionTarget", "PodScheduled"})
MOST: Final = 200_000
"""Values that are remembered. When there are more, all are forgotten: values that are in use stay, but are no longer found."""
T = TypeVar("T", bound=Hashable)


class SharingReader(PodReader):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._values: dict[Any, Any] = {}

    def read(self, pod: Pod) -> TaskSpec | None:
        task = super().read(pod)
        return None if task is None else self._shared(task)

    def read_like(self, pod: Pod, sibling: Sibling) -> TaskSpec | None:
        found = super().read_like(pod, sibling)
        return None if found is None else self._shared(found)

    def reread(self, pod: Pod, old: Pod, before: TaskSpec) -> TaskSpec | None:
        task = super().reread(pod, old, before)
        return None if task is None else self._shared(task)

    def _shared(self, task: TaskSpec) -> TaskSpec:
        if len(self._values) > MOST:
            self._values.clear()
        one = self._one
        conditions = tuple([one(each) for each in task.conditions if each[0] in KEPT_CONDITIONS])
        return replace(
            task,
            namespace=one(task.namespace),
            job=one(task.job),
            node=one(task.node),
            created=one(task.created),
            started=one(task.started),
            labels=self._one_map(task.labels),
            annotations=self._one_map(task.annotations),
            scheduler_name=one(task.scheduler_name),
            priority_class=one(task.priority_class),
            owner=one(task.owner),
            conditions=one(conditions),
            role=one(task.role),
        )

    def _one(self, value: T) -> T:
        found: T = self._values.setdefault(value, value)
        return found

    def _one_map(self, labels: Labels) -> Labels:
        if not labels:
            return labels
        found: Labels = self._values.setdefault(tuple(sorted(labels.items())), labels)
        return found
