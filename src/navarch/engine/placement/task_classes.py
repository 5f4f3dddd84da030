"""The task classes of a session: which tasks every rule treats alike.

Tasks of one shape are one class, unless a plugin declares that a rule reads more of a pod than its shape: labels, the queue, or any
other value. Masks and scores are computed once a class, so a declaration that is not needed costs speed, and a missing one gives a pod
the answer of another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from navarch.engine.node_functions import TaskClass
from navarch.engine.points.profiles import THE_FIRST

if TYPE_CHECKING:
    from navarch.engine.session import Session


class TaskClasses:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers: dict[Any, int] = {}
        """Key of a class -> its number, which stays while a session is kept."""
        self._label_keys: frozenset[str] | None = None
        self._queues_matter = False
        self._reads: list[Callable[[int], Hashable]] = []
        self._own_profiles = frozenset([*session.policy.profiles][1:])
        """Scheduler names of the further profiles."""
        if self._own_profiles:
            self.distinguish_by(self._profile_of)
        self.begin_cycle()

    def begin_cycle(self) -> None:
        """Forget the classes of the last cycle: task rows and shapes may be others now."""
        self.of_task: dict[int, TaskClass] = {}
        """Task row -> its class, as far as it was asked for."""
        self._classes: dict[Any, TaskClass] = {}

    # what tells tasks apart

    def distinguish_labels(self, keys: Iterable[str]) -> None:
        self._label_keys = frozenset(keys) | (self._label_keys or frozenset())

    def distinguish_queues(self) -> None:
        self._queues_matter = True

    def distinguish_by(self, reads: Callable[[int], Hashable]) -> None:
        self._reads.append(reads)

    # classes

    def find(self, task: int) -> TaskClass:
        """The class of a task that is not in `of_task` yet."""
        session = self._session
        shape = int(session.shape[task])
        key: Any = shape
        if self._label_keys is not None:
            spec = session.task(task)
            read = tuple((k, spec.labels[k]) for k in sorted(self._label_keys & spec.labels.keys()))
            key = (shape, spec.namespace, read)
        if self._queues_matter:
            job = session.job_of(task)
            key = (key, job.queue.name if job else "")
        for reads in self._reads:
            key = (key, reads(task))
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = self._make(task, shape, self._numbers.setdefault(key, len(self._numbers)))
        self.of_task[task] = found
        return found

    def are_one(self, tasks: Sequence[int]) -> bool:
        """Whether these tasks of one job are of one class, by their shapes alone. False: they must be asked one by one."""
        if self._label_keys is not None or self._reads:
            return False
        shapes = self._session.shape[tasks]
        return int(np.count_nonzero(shapes == shapes[0])) == len(tasks)

    def _make(self, task: int, shape_number: int, number: int) -> TaskClass:
        session, snapshot = self._session, self._session.snapshot
        shape = snapshot.shapes[shape_number]
        return TaskClass(
            number=number,
            shape=shape,
            shape_number=shape_number,
            request=snapshot.shape_request[:, shape_number],
            charge=snapshot.shape_charge[:, shape_number],
            scoring=np.array(shape.scoring, dtype=np.int64),
            footprint=np.array(shape.footprint, dtype=np.int64),
            best_effort=snapshot.shape_best_effort[shape_number],
            namespace=session.task(task).namespace,
            labels=int(snapshot.tasks.labels[task]),
            task=task,
            queue=job.queue.name if (job := session.job_of(task)) else "",
            profile=self._profile_of(task),
        )

    def _profile_of(self, task: int) -> str:
        name = self._session.task(task).scheduler_name
        return name if name in self._own_profiles else THE_FIRST
