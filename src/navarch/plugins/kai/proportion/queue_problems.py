"""Why a queue has no place in the tree, or may hold no jobs: the error, and the ancestor that has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from navarch.engine.queue import MOST_LEVELS, Queue
from navarch.engine.reasons import Event, Reason

_UNDONE_BY = (Event.QUEUE_CHANGED, Event.JOB_CHANGED)


def displaced(queues: Mapping[str, Queue], resources: Collection[str], named: Collection[str]) -> dict[str, Reason]:
    """Queue -> why it may hold no jobs. `resources`: the resources of which every queue must state shares. `named`: the queues that
    jobs name; no other queue is looked at."""
    below: dict[str, list[str]] = {}
    for name, queue in sorted(queues.items()):
        below.setdefault(queue.spec.parent, []).append(name)
    found = {}
    for name, queue in sorted((name, queues[name]) for name in named if name in queues):
        text = _fault(queues, queue, resources)
        if not text and name in below:
            text = f"queue '{name}' is the parent of {', '.join(below[name])}: jobs must name a queue without children"
        if text:
            figures: dict[str, int | float | str] = {"queue": name, "parent": queue.spec.parent}
            found[name] = Reason("QueueDoesNotExist", text, figures=figures, undone_by=_UNDONE_BY)
    return found


def _fault(queues: Mapping[str, Queue], queue: Queue, resources: Collection[str]) -> str:
    """The error on the path from the queue to the root; empty if there is none."""
    above, seen = queue, {queue.name: None}
    while True:
        missing = sorted(set(resources) - set(above.spec.shares))
        if missing:
            return _told(queue, above, f"it states no shares of {', '.join(missing)} (spec.resources)")
        parent = above.spec.parent
        if not parent:
            return ""
        if parent == above.name:
            return _told(queue, above, "it names itself as its parent (spec.parentQueue)")
        if parent not in queues:
            return _told(queue, above, f"its parent '{parent}' (spec.parentQueue) does not exist")
        if parent in seen:
            names = list(seen)
            ring = " -> ".join([*names[names.index(parent) :], parent])
            return f"queue '{queue.name}' has no place in the tree of queues: its way up is a circle, {ring} (spec.parentQueue)"
        if len(seen) > MOST_LEVELS:
            return f"queue '{queue.name}' has no place in the tree of queues: it stands more than {MOST_LEVELS} levels deep"
        above = queues[parent]
        seen[parent] = None


def _told(queue: Queue, above: Queue, fault: str) -> str:
    text = f"queue '{queue.name}' has no place in the tree of queues: "
    return text + (fault if above is queue else f"its ancestor '{above.name}' has none, {fault}")
