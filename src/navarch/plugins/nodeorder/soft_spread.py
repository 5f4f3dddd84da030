"""PodTopologySpread's score: the fewer matching pods in a node's domains, the better.

A count weighs more the more domains there are among the candidates. Candidates that lack a key score nothing, unless the
constraints are the system's defaults; for these a missing label is a domain of its own that is not scored.
"""

from __future__ import annotations

from math import log

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, FloatArray
from navarch.model.spec import SpreadConstraint
from navarch.plugins.predicates.nodes.properties import node_properties
from navarch.plugins.predicates.pods.counts import DomainCount, PodCount
from navarch.plugins.predicates.pods.default_spread import HOSTNAME, DefaultSpread, SpreadDefaults
from navarch.plugins.predicates.pods.spread import carrying_all, counted_pods, included
from navarch.plugins.predicates.pods.terms import pod_terms


class CountedConstraint(Struct):
    """One soft constraint for one class of tasks. `domain` None: pods are counted on the node itself."""

    constraint: SpreadConstraint
    pods: PodCount
    domain: DomainCount | None
    codes: Rows
    absent: int
    present: BoolArray

    def weight(self, kept: BoolArray) -> float:
        if self.domain is None:
            return log(int(kept.sum()) + 2)
        seen = np.zeros(self.absent + 1, dtype=bool)
        seen[self.codes[kept]] = True
        return log(int(seen.sum()) + 2)

    def counts(self) -> FloatArray:
        counts = self.pods.nodes if self.domain is None else self.domain.counts[self.codes]
        return counts.astype(float)


class SoftSpread(NodeScorer):
    name = "PodTopologySpread"
    scope = Scope.GLOBAL
    normalises = True

    def __init__(self, session: Session, weight: float, defaults: SpreadDefaults) -> None:
        self.session = session
        self.weight = weight
        self.defaults = defaults
        self.spread = DefaultSpread(session, defaults)
        pod_terms(session)
        self._constraints: dict[int, tuple[list[CountedConstraint], BoolArray]] = {}
        self._kept: BoolArray = np.zeros(0, dtype=bool)

    def applies(self, task: TaskClass) -> bool:
        return bool(self.spread.constraints(task, hard=False))

    def _of(self, task: TaskClass) -> tuple[list[CountedConstraint], BoolArray]:
        found = self._constraints.get(task.number)
        if found is None:
            session = self.session
            constraints = self.spread.constraints(task, hard=False)
            everything = np.ones(len(session.nodes), dtype=bool)
            needs_all = task.shape.has_own_spread or self.defaults.listed
            complete = carrying_all(session, constraints) if needs_all else everything
            counted = [self._count(task, each, complete) for each in constraints]
            found = self._constraints[task.number] = counted, complete
        return found

    def _count(self, task: TaskClass, constraint: SpreadConstraint, complete: BoolArray) -> CountedConstraint:
        session = self.session
        column = node_properties(session.snapshot).label(constraint.topology_key)
        pods = counted_pods(session, constraint, task.namespace)
        domain = None
        if constraint.topology_key != HOSTNAME:
            within = complete & included(session, task, constraint)
            domain = pods.by(constraint.topology_key, within, ("soft", task.number, constraint))
        return CountedConstraint(constraint, pods, domain, column.codes, column.absent, column.present())

    def prepare(self, task: TaskClass, feasible: BoolArray) -> None:
        self._kept = feasible & self._of(task)[1]

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        total: FloatArray = np.zeros(len(self.session.nodes))
        for counted in self._of(task)[0]:
            part = counted.counts() * counted.weight(self._kept) + float(counted.constraint.max_skew - 1)
            total += np.where(counted.present, part, 0.0)
        rounded: FloatArray = np.where(self._kept, np.floor(total + 0.5), 0.0)[at.rows]
        return rounded

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        """Over the candidates that are scored at all, whatever the extremes of the others."""
        inside = raw if self._kept.all() else raw[self._kept]
        low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 0.0)
        if high == 0:
            return np.where(self._kept, 100.0, 0.0)
        return np.where(self._kept, np.floor(100.0 * (high + low - raw) / high), 0.0)
