"""When no single node can be cleared for the tasks: an end to a walk node by node that is known before its first step.

A scenario of that walk evicts, beside the victims it has settled on, batches of the jobs that stand on one node. So on that node
at most everything goes that may go at all, and other nodes are touched only by those of these jobs that span several. For every
node the tasks that would fit more than now are summed over these nodes, each counted as if everything on it went; a job
whose tasks must be placed again brings that much less, or nothing. If no node brings as many as are lacking, `room_bound` would turn
down every scenario of the walk, and nothing is walked. Devices that are shared are not counted, so with any of them
nothing is ruled out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from navarch.actions.kai.solver.resource_bound import Kind, RoomBound
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.resources import IntArray

_MOST_NODES = 64
"""A job on more nodes than this is not looked into: its nodes may bring anything."""
_ANYTHING = 1 << 40


class LocalBound:
    def __init__(self, session: Session, victims: Iterable[Job]) -> None:
        """`victims`: all jobs that may give something."""
        held = [(job.row, task) for job in victims for task in job.tree.active if session.node[task] >= 0]
        rows = np.array([task for _, task in held], dtype=np.intp)
        nodes = session.node[rows].astype(np.intp)
        self.session = session
        self.traces = session.devices is not None and session.devices.any_shared
        requests = session.snapshot.shape_request[:, session.shape[rows]]
        self._held: IntArray = np.zeros((requests.shape[0], len(session.nodes)), dtype=np.int64)
        for dim, amounts in enumerate(requests):
            if amounts.any():
                np.add.at(self._held[dim], nodes, amounts)
        spots: dict[int, tuple[set[int], list[int]]] = {}
        for (job, task), node in zip(held, nodes.tolist(), strict=True):
            at, tasks = spots.setdefault(job, (set(), []))
            at.add(node)
            tasks.append(task)
        self._spread = [(sorted(at), tasks) for at, tasks in spots.values() if len(at) > 1]
        """Of each job on several nodes: those, and its tasks."""

    def rules_out(self, bound: RoomBound) -> bool:
        """Whether no scenario can bring what `bound`, which knows the settled victims, lacks."""
        if self.traces or bound.traces:
            return False
        return any(kind.total + self._brings(kind, bound) < kind.wanted for kind in bound.kinds)

    def _brings(self, kind: Kind, bound: RoomBound) -> int:
        """The most tasks of a kind that any one node's victims make room for."""
        gain = np.maximum(kind.most(kind.free + self._held[kind.dims]) - kind.counts, 0)
        out = gain.copy()
        for spots, tasks in self._spread:
            if len(spots) > _MOST_NODES:
                out[spots] = _ANYTHING
                continue
            again = sum(bound.asks_no_less(task, kind) for task in tasks) if kind.all_return else 0
            out[spots] += np.maximum(int(gain[spots].sum()) - gain[spots] - again, 0)
        return int(out.max(initial=0))
