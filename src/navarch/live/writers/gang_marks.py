"""The condition GangWasWhole on the pods of a gang that looks half bound: whether it was complete once (see `gang_history`)."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from navarch.kube.errors import KubeError, NotFound
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Outcome, Priority, Write, WritePool
from navarch.live.gang_history import CONDITION
from navarch.live.writers.pod_status import STRATEGIC
from navarch.model.spec import TaskSpec
from navarch.model.timestamps import rfc3339

log = logging.getLogger(__name__)

_COMPLETE = ("Started", "the gang was complete before it came to need more pods than it has, so this pod is not released")
_INCOMPLETE = ("MembersNotBound", "other members of the gang are not bound, so this pod is released after a time-out")


class GangMarks:
    def __init__(self, pool: WritePool, clock: Callable[[], float]) -> None:
        self._pool = pool
        self._clock = clock
        self._in_flight: set[str] = set()

    def mark(self, task: TaskSpec, complete: bool) -> None:
        """Write the condition, unless a write of it is in flight."""
        if task.uid in self._in_flight:
            return
        moment = rfc3339(self._clock())
        reason, message = _COMPLETE if complete else _INCOMPLETE
        condition = {"type": CONDITION, "status": str(complete), "reason": reason, "message": message, "lastTransitionTime": moment}
        body = msgspec.json.encode({"metadata": {"uid": task.uid}, "status": {"conditions": [condition]}})
        path = PODS.path(task.namespace, task.name, "status")
        write = Write("PATCH", path, body, content_type=STRATEGIC, priority=Priority.STATUS, repeatable=True)
        self._in_flight.add(task.uid)
        self._pool.submit(write, lambda outcome: self._ended(task, outcome))

    def _ended(self, task: TaskSpec, outcome: Outcome) -> None:
        self._in_flight.discard(task.uid)
        if isinstance(outcome, KubeError) and not isinstance(outcome, NotFound):
            log.warning("%s: the condition %s was not written: %s", task.key, CONDITION, outcome)  # the next check writes it again
