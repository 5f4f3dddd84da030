"""Backfill with reservation (EASY): the first job of a queue that does not fit is promised its earliest start by known ends.

A later job may start before it only if it ends by then, or if it takes nothing that the promise needs.

Ends are known of jobs that say how long they run (annotation `navarch.io/expected-duration`). A running job that is past its time is
taken to end at any moment. Where no known ends let the first job start, nothing can be promised, and later jobs pass.

A promise is made anew in every cycle, so it moves up when jobs end early. The job's reason is "Reserved until TIME". It is kept where
jobs run no longer than they say and the policy serves queues that share nodes by the age of their first jobs, as it does where no
plugin orders queues. Where plugins order them by shares, jobs of a queue that is served before may delay it.

On nodes that queues share, later jobs do not delay the first jobs of the other queues either. Their reason is "expected to start at
TIME": it may change, because the promise that comes first may choose other nodes. The same is true of more than one of `reservations`.
A gang of different pods may miss its time by a little: the promise counts whether the pods fit, and scores choose the nodes.

In a live cluster every waiting job is tried again, also where nothing changed for a job. So a cycle costs as much as all waiting
jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import BoolArray
from navarch.model.timestamps import rfc3339
from navarch.plugins.easy_backfill.reservation import Ends, Reservation, reserve

_UNDONE_BY = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)


class EasyBackfill(Plugin):
    """Promises the first job that does not fit its earliest start; later jobs may not delay it"""

    name = "easy-backfill"
    makes_promises = True
    arguments = (
        Argument("reservations", "int", 1, "how many jobs of a queue are promised a start", minimum=1),
        Argument("asks-for-nodes", "bool", True, "whether pods that a promise keeps waiting ask autoscalers for nodes"),
    )

    def open(self) -> None:
        self.reservations: list[Reservation] = []
        self._most = self.given.integer("reservations")
        self._of_queue: dict[str, int] = {}
        self._told: set[str] = set()
        """Queues whose first job knows that nothing can be promised to it."""
        self._ends: Ends | None = None
        """Until something is placed."""

    def node_filters(self) -> list[NodeFilter]:
        return [KeepsPromises(self)]

    def turn_refusal(self, job: Job) -> Reason | None:
        return None

    def turn_failed(self, job: Job) -> None:
        made = self._of_queue.get(job.queue.name, 0)
        if made >= self._most or not job.fit_errors:
            return  # without a node that refused it, something else keeps it from starting, such as the share of its queue
        if self._ends is None:
            self._ends = Ends(self.session)
        found = reserve(self.session, self._ends, job, self.reservations)
        if found is None:
            self._tell_first(job)
            return
        self._of_queue[job.queue.name] = made + 1
        self.reservations.append(found)
        if found.behind is not None:
            first = found.behind.spec.name or found.behind.key
            text = f"expected to start at {rfc3339(found.at)}; what is promised to {first} comes first, so this may change"
            job.refuse(Reason("ReservedAfter", text, figures={"at": found.at}, undone_by=_UNDONE_BY))
            return
        names = sorted({self.session.nodes.names[row] for row in found.nodes})
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        job.refuse(
            Reason(
                "Reserved",
                f"Reserved until {rfc3339(found.at)}: promised a start then on {shown}",
                figures={"at": found.at, "nodes": len(names)},
                undone_by=_UNDONE_BY,
            )
        )

    def _tell_first(self, job: Job) -> None:
        """Tell the first job of its queue that no start can be promised to it, and why."""
        if job.queue.name in self._told:
            return
        self._told.add(job.queue.name)
        first = next((promise.job for promise in self.reservations), None)
        why = "too few of the running jobs say how long they run"
        if first is not None:
            why = f"what is promised to {first.spec.name or first.key} comes first"
        job.refuse(Reason("NotReserved", f"no start can be promised: {why}", undone_by=_UNDONE_BY))

    def on_allocate(self, change: Change) -> None:
        self._hold(change, -1)

    def on_deallocate(self, change: Change) -> None:
        self._hold(change, 1)

    def _hold(self, change: Change, sign: int) -> None:
        """A job that starts now holds its nodes at promised moments too, if it runs until then."""
        self._ends = None
        if not self.reservations:
            return
        end = self.end_of(change.job)
        for promise in self.reservations:
            if end > promise.at:
                for row in change.nodes:
                    promise.spare[:, row] += sign * change.task.request

    def end_of(self, job: Job) -> float:
        """When a job that starts now ends; infinite where it does not say."""
        expected = job.spec.expected_duration
        return math.inf if expected is None else self.session.now + expected

    def in_the_way(self, job: Job) -> list[Reservation]:
        """Promises of other jobs that the job would still run at."""
        end = self.end_of(job)
        return [promise for promise in self.reservations if promise.job is not job and end > promise.at]


class KeepsPromises(NodeFilter):
    name = "easy-backfill"
    scope = Scope.GLOBAL
    resolvable = True
    undone_by = _UNDONE_BY

    def __init__(self, plugin: EasyBackfill) -> None:
        self._plugin = plugin

    def moved_by_own_class(self, task: TaskClass) -> bool:
        return bool(self._plugin.reservations)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        job = self._plugin.session.placing
        open_: BoolArray = np.ones(at.used.shape[1], dtype=bool)
        for promise in self._plugin.in_the_way(job) if job is not None else ():
            open_ &= np.all(task.request[:, None] <= promise.spare[:, at.rows].clip(0), axis=0)
        return open_

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        job = self._plugin.session.placing
        promises = self._plugin.in_the_way(job) if job is not None else []
        if not promises:
            return []
        first = promises[0]
        text = f"promised to {first.job.spec.name or first.job.key} from {rfc3339(first.at)} on"
        code = "ReservedForAnother" if self._plugin.given.flag("asks-for-nodes") else "KeptForAnother"
        return [Refusal(text, ~self.mask(task, at), code=code)]
