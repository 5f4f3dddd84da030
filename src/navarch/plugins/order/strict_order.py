"""Strict order: nothing passes the first waiting job of a queue.

Jobs of a queue start in the policy's order. When one finds no room, no later job of its queue gets a turn in that cycle (Kueue calls
this StrictFIFO). Large gangs then start, at the price of room that stays empty meanwhile.
"""

from __future__ import annotations

from msgspec.structs import replace

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.pod_conditions import obstacle
from navarch.engine.reasons import Event, Reason

_BEHIND = "BehindFirstJob"


class StrictOrder(Plugin):
    """Nothing passes the first waiting job of a queue"""

    name = "strict-order"
    waits_for_room = True
    keeps_order = True

    def open(self) -> None:
        self._first: dict[str, Job] = {}
        """Queue -> the job that found no room."""
        self._behind: dict[int, list[Job]] = {}
        """Its row -> the jobs that it keeps waiting."""

    def next_cycle(self) -> bool:
        self._first, self._behind = {}, {}
        return True

    def turn_refusal(self, job: Job) -> Reason | None:
        first = self._first.get(job.queue.name)
        if first is None or first is job:  # it may get another turn, at what shares leave over
            return None
        name = first.spec.name or first.key
        self._behind.setdefault(first.row, []).append(job)
        return Reason(
            _BEHIND,
            f"queue {job.queue.name} keeps its order, and {name}, which comes first, waits for room",
            figures={"first": first.key},
            undone_by=(Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED, Event.JOB_CHANGED),
        )

    def turn_failed(self, job: Job) -> None:
        self._first.setdefault(job.queue.name, job)

    def close(self) -> None:
        """What keeps the first job waiting, and no node would undo, keeps those behind it waiting too."""
        for first in self._first.values():
            lasting = obstacle(first.reasons)
            if lasting is None:
                continue
            for job in self._behind.get(first.row, ()):
                job.reasons[:] = [replace(each, cause=lasting.origin) if each.code == _BEHIND else each for each in job.reasons]
