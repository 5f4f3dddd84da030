"""Topology-aware preemption: dry-runs many nodes and takes the one with the cheapest victims.

On each node the offered victims are evicted in order until the task fits; then, in reverse order, victims that are not needed are
restored. The node is chosen by the lowest highest victim priority, the lowest sum of priorities, the fewest victims, the latest
start of the highest victim, and node order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.arguments import Arguments
from navarch.engine.job import Job
from navarch.engine.statement import Statement
from navarch.engine.victims import search
from navarch.model.resources import BoolArray

if TYPE_CHECKING:
    from navarch.engine.session import Session


class PreemptDryRun:
    def __init__(self, session: Session, job: Job, row: int, statement: Statement, given: Arguments) -> None:
        self.session = session
        self.job = job
        self.row = row
        self.statement = statement
        self.given = given

    def run(self, group: BoolArray, offered_on: Callable[[int], list[int]]) -> bool:
        session, statement, row = self.session, self.statement, self.row
        task = session.class_of(row)
        best: tuple[tuple[float, ...], int, list[int]] | None = None
        found, wanted = 0, self._how_many(int(group.sum()))
        for node in np.flatnonzero(group).tolist():
            offered = session.preemptable(row, offered_on(node))
            kept = self._needed(node, offered) if offered else []
            if not kept:
                continue
            cost = (*self._cost(kept), node)
            if best is None or cost < best[0]:
                best = (cost, node, kept)
            found += 1
            if found >= wanted:
                break
        if best is None:
            return False
        _, node, kept = best
        for victim in kept:
            statement.evict(victim, for_=self.job.key, reason="preempt")
        statement.pipeline(self.job, [row], [node], task, evicting=True)
        return True

    def _needed(self, node: int, offered: list[int]) -> list[int]:
        """Victims that must be evicted for the task to fit here, in reverse order of eviction; empty if it cannot fit."""
        session, task = self.session, self.session.class_of(self.row)
        view = session.view(task)
        trial = session.statement()

        def enough() -> bool:
            session.queues_are_open = not session.semantics.dry_run_minds_queue
            room = session.allocatable(self.job.queue, task, 1)[0] > 0
            session.queues_are_open = False
            return room and search.fits(session, task, node) and view.passes(node)

        ordered = search.victim_order(session, offered, self.job.queue)
        gone = search.evict_until(trial, ordered, enough, for_=self.job.key, reason="preempt")
        kept: list[int] = []
        if gone is None and not session.semantics.dry_run_minds_queue and search.fits(session, task, node) and view.passes(node):
            kept = [op.tasks[0] for op in reversed(trial.operations)]
        elif gone:
            search.give_back(trial, 0, enough)
            kept = [op.tasks[0] for op in trial.operations]
        trial.discard()
        return kept

    def _cost(self, victims: list[int]) -> tuple[float, ...]:
        specs = [self.session.task(v) for v in victims]
        highest = max(s.pod_priority for s in specs)
        started = min(s.started if s.started is not None else self.session.now for s in specs if s.pod_priority == highest)
        return (highest, sum(s.pod_priority + (1 << 31) for s in specs), len(specs), -started)

    def _how_many(self, nodes: int) -> int:
        share = nodes * self.given.integer("minCandidateNodesPercentage") // 100
        wanted = max(share, self.given.integer("minCandidateNodesAbsolute"))
        return min(wanted, self.given.integer("maxCandidateNodesAbsolute"), nodes)
