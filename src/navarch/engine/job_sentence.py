"""Why a job waits, in one sentence about the job: what it needs, and the first rule that does not give it that.

The reasons of a cycle are about what the cycle met first: one pod of a gang, one action, one node. They change from cycle to cycle
while the cause stays. This sentence is made from how things stand, so it changes only with them: a bound of its queue, then idle room
on nodes that may take its pods, with the share of its queue where room could be taken back, then room for whole pods.

None where none of these stands in the way, or where it is not known: the reasons of the cycle are told then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.points.protocols import QueueReport
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import UNLIMITED, IntArray, unit_of
from navarch.model.spec import QueueSpec
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.job import Job
    from navarch.engine.queue import Queue
    from navarch.engine.record import QueueFigures
    from navarch.engine.session import Session

TAKING_BACK = frozenset({"reclaim", "gangreclaim"})
"""Actions that take room from queues which hold more than their share."""
_UNDONE_BY = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED, Event.QUEUE_CHANGED)
_LAST = ("cpu", "memory", "pods")
"""Of several resources that lack, others are told first."""


def amount(name: str, value: float) -> str:
    """
    >>> amount("nvidia.com/gpu", 10667), amount("cpu", 1500), amount("memory", 900 << 30), amount("memory", 254280 << 20)
    ('10.667', '1.5', '900Gi', '248.3Gi')
    """
    match unit_of(name):
        case "milli":
            return f"{round(value / 1000, 3):.12g}"
        case "bytes":
            size, unit = (1 << 30, "Gi") if value >= 1 << 30 or value == 0 else (1 << 20, "Mi")
            return f"{value / size:.4g}{unit}"
    return f"{value:.12g}"


def needs(name: str, value: float) -> str:
    """
    >>> needs("nvidia.com/gpu", 24000), needs("cpu", 1000), needs("memory", 1 << 30), needs("example.com/fpga", 2000)
    ('24 GPUs', '1 CPU', '1Gi of memory', '2 example.com/fpga')
    """
    text = amount(name, value)
    word = "GPU" if name.endswith("/gpu") else "CPU" if name == "cpu" else ""
    if word:
        return f"{text} {word}{'' if text == '1' else 's'}"
    return f"{text} of memory" if name == "memory" else f"{text} {name}"


def why_it_waits(session: Session, job: Job) -> Reason | None:
    """Of a job with pods that wait, in a session that no action has changed."""
    tasks = _needed(session, job)
    if not tasks or not len(session.nodes):
        return None
    asked = _sum(session, tasks)
    return _bound(session, job, asked) or _room(session, job, tasks, asked)


def behind_others(session: Session, job: Job) -> str:
    """Of a job that starts if no other job waits: its sentence. Empty: the job takes no part."""
    for name, value in _asked(session, _sum(session, _needed(session, job))):
        free = int(np.maximum(session.nodes.idle, 0).sum(axis=1)[session.snapshot.resource_names.index(name)])
        return f"needs {needs(name, value)}: {_are(amount(name, free))} free, and jobs that come before it are placed first"
    return ""


def _needed(session: Session, job: Job) -> Sequence[int]:
    """The tasks that it lacks to start; empty: they do not exist, may not be placed, or have a place."""
    pending = session.sorted_tasks(job.tasks_in(TaskStatus.PENDING))
    lacking = job.min_member - job.ready_count
    tasks = pending[: max(1, lacking)]
    if len(tasks) < lacking or any(session.task(task).nominated_node for task in tasks):
        return ()  # in the second case it starts when what leaves its nodes has left
    if session.any_gated and any(session.task(task).gates for task in pending):
        return ()
    return tasks


def _sum(session: Session, tasks: Sequence[int]) -> IntArray:
    found: IntArray = np.zeros(len(session.snapshot.resource_names), dtype=np.int64)
    for task in tasks:
        found = found + session.class_of(task).request
    return found


def _are(count: str) -> str:
    return f"{count} {'is' if count == '1' else 'are'}"


def _bound(session: Session, job: Job, asked: IntArray) -> Reason | None:
    for queue in _upwards(job.queue):
        held = _figures(session, queue)
        if held is None or not held.deserved:
            return None  # no plugin of the policy accounts for queues
        for name, value in _asked(session, asked):
            most = _limits(queue.spec).get(name, UNLIMITED)
            holds = held.allocated.get(name, 0)
            if holds + value > most:
                text = f"needs {needs(name, value)}: queue {queue.name} may have {amount(name, most)} and holds {amount(name, holds)}"
                return _reason("QueueLimit", text, name, value, queue=queue.name, limit=most, holds=holds)
    return None


def _room(session: Session, job: Job, tasks: Sequence[int], asked: IntArray) -> Reason | None:
    classes = {session.class_of(task).number: task for task in tasks}
    if any(session.task(task).shape.devices is not None for task in classes.values()):
        return None  # a part of a GPU is not counted in whole ones
    idle: IntArray = np.maximum(session.nodes.idle, 0)
    open_to = {number: session.view(session.class_of(task)).feasible() for number, task in classes.items()}
    some = np.logical_or.reduce(list(open_to.values()))
    if not some.any():
        return None
    free = idle[:, some].sum(axis=1)
    names = session.snapshot.resource_names
    for name, value in _asked(session, asked):
        dim = names.index(name)
        if dim in session.claimable_dims or (left := int(free[dim])) >= value:
            continue
        where = "" if some.all() else " on nodes that may take its pods"
        text = f"needs {needs(name, value)}: {_are(amount(name, left))} free{where}"
        owed = _owed(session, job.queue, name, value)
        return _reason("OverShare" if owed else "NoRoom", text + owed, name, value, free=left)
    counts, room = Counter(session.class_of(task).number for task in tasks), 0
    for number, task in classes.items():
        request: IntArray = session.class_of(task).request
        dims = np.flatnonzero(request > 0)
        if not len(dims):
            return None
        slots = (idle[np.ix_(dims, open_to[number])] // request[dims, None]).min(axis=0)
        room += min(counts[number], int(slots.sum()))
    if room < len(tasks):
        each = " and ".join(
            needs(name, value) for name, value in _asked(session, session.class_of(tasks[0]).request) if name != "pods"
        )
        each = each or "a place for a pod"
        text = f"needs one node with {each} free: none has it"
        if len(tasks) > 1:
            text = f"needs room for {len(tasks)} pods of {each}: there is room for {room}"
        return Reason("NoRoom", text, figures={"needed": len(tasks), "room": room}, undone_by=_UNDONE_BY)
    return None


def _owed(session: Session, queue: Queue, name: str, value: int) -> str:
    """What the share of its queue adds, where its queue could take room back if it were owed more."""
    held, dim = _figures(session, queue), session.snapshot.resource_names.index(name)
    if not any(each.allocated[dim] for each in session.queues.values() if each is not queue):
        return ""  # no other queue has room that could be taken
    if held is None or not TAKING_BACK.intersection(session.policy.actions):
        return ""
    owed, holds = held.deserved.get(name, UNLIMITED), held.allocated.get(name, 0)
    if owed >= UNLIMITED or holds + value <= owed:
        return ""
    return f", and queue {queue.name} is owed {amount(name, owed)} and holds {amount(name, holds)}: too little to take room back"


def _asked(session: Session, asked: IntArray) -> Iterator[tuple[str, int]]:
    names = session.snapshot.resource_names
    dims = sorted(np.flatnonzero(asked > 0).tolist(), key=lambda dim: (names[dim] in _LAST, names[dim]))
    return ((names[dim], int(asked[dim])) for dim in dims)


def _limits(spec: QueueSpec) -> Mapping[str, float]:
    found: dict[str, float] = dict(spec.capability or ())
    for name, share in spec.shares.items():
        if share.limit >= 0:
            found["nvidia.com/gpu" if name == "gpu" else name] = share.limit * 1000 if name == "gpu" else share.limit
    return found


def _upwards(queue: Queue) -> Iterator[Queue]:
    at: Queue | None = queue
    if queue.reaches_top:
        while at is not None:
            yield at
            at = at.parent


class _AllFigures:
    """The figures of a queue, asked once a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, QueueFigures | None] = {}

    def of(self, queue: Queue) -> QueueFigures | None:
        if queue.name not in self._known:
            reporting = self._session.implementing(QueueReport)
            self._known[queue.name] = reporting[0].queue_figures(queue) if reporting else None
        return self._known[queue.name]


def _figures(session: Session, queue: Queue) -> QueueFigures | None:
    return session.shared(_AllFigures).of(queue)


def _reason(code: str, text: str, resource: str, value: float, **figures: str | float) -> Reason:
    return Reason(code, text, figures={"resource": resource, "needs": value, **figures}, undone_by=_UNDONE_BY)
