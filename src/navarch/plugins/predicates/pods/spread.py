"""PodTopologySpread: no domain of a node label may have more matching pods than the emptiest one by more than the constraint
allows.

It counts pods of the namespace that the constraint selects, on nodes that have all the keys and pass the constraint's policies. A
pod that is being deleted does not count; a pod that is evicted or placed during an attempt changes the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, Refusal, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray
from navarch.model.selectors import selector_matches
from navarch.model.spec import SpreadConstraint
from navarch.plugins.predicates.nodes.affinity import demanded_nodes
from navarch.plugins.predicates.nodes.properties import node_properties
from navarch.plugins.predicates.nodes.taints import tolerated_nodes
from navarch.plugins.predicates.pods.counts import DomainCount, PodCount, pod_counts
from navarch.plugins.predicates.pods.default_spread import DefaultSpread, SpreadDefaults
from navarch.plugins.predicates.pods.selection import Selection
from navarch.plugins.predicates.pods.terms import pod_terms

MISMATCH = "node(s) didn't match pod topology spread constraints"
MISSING = f"{MISMATCH} (missing required label)"


class Limit(Struct):
    """One hard constraint for one class of tasks."""

    constraint: SpreadConstraint
    domain: DomainCount
    eligible: BoolArray
    """By domain: some node of it counts."""
    present: BoolArray
    """By node: it has the label."""
    codes: Rows
    itself: int

    def lowest(self) -> int:
        counts: IntArray = self.domain.counts[:-1][self.eligible]
        return 0 if len(counts) < (self.constraint.min_domains or 1) else int(counts.min())

    def exceeded(self, rows: Rows | slice) -> BoolArray:
        counts: IntArray = self.domain.counts[self.codes[rows]]
        return np.greater(counts, self.constraint.max_skew + self.lowest() - self.itself)


def counted_pods(session: Session, constraint: SpreadConstraint, namespace: str) -> PodCount:
    """Pods that a constraint counts. An empty selector counts none, though it matches the pod itself; when a trial moves pods, it
    follows them."""
    if constraint.selector is not None and not constraint.selector.requirements:
        return pod_counts(session).imagined_in(namespace)
    return pod_counts(session).selected((Selection(frozenset({namespace}), constraint.selector),), leaving=False)


def included(session: Session, task: TaskClass, constraint: SpreadConstraint) -> BoolArray:
    """Nodes that the constraint's policies let count."""
    columns = node_properties(session.snapshot)
    out = np.ones(len(columns), dtype=bool)
    if constraint.honor_node_affinity:
        out &= demanded_nodes(columns, task.shape)
    if constraint.honor_node_taints:
        out &= tolerated_nodes(columns, task.shape)
    return out


def carrying_all(session: Session, constraints: Sequence[SpreadConstraint]) -> BoolArray:
    columns = node_properties(session.snapshot)
    out = np.ones(len(columns), dtype=bool)
    for constraint in constraints:
        out &= columns.label(constraint.topology_key).present()
    return out


class PodTopologySpread(NodeFilter):
    name = "PodTopologySpread"
    scope = Scope.GLOBAL
    undone_by = (Event.POD_REMOVED, Event.POD_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, session: Session, defaults: SpreadDefaults) -> None:
        self.session = session
        self.spread = DefaultSpread(session, defaults)
        self.terms = pod_terms(session)
        self._limits: dict[int, list[Limit]] = {}

    def applies(self, task: TaskClass) -> bool:
        return bool(self.spread.constraints(task, hard=True))

    def moved_by_own_class(self, task: TaskClass) -> bool:
        return any(limit.itself for limit in self._of(task))

    def _of(self, task: TaskClass) -> list[Limit]:
        found = self._limits.get(task.number)
        if found is None:
            constraints = self.spread.constraints(task, hard=True)
            found = self._limits[task.number] = [self._limit(task, each, constraints) for each in constraints]
        return found

    def _limit(self, task: TaskClass, constraint: SpreadConstraint, together: Sequence[SpreadConstraint]) -> Limit:
        session = self.session
        column = node_properties(session.snapshot).label(constraint.topology_key)
        within = carrying_all(session, together) & included(session, task, constraint)
        named = ("spread", task.number, constraint, together)
        domain = counted_pods(session, constraint, task.namespace).by(constraint.topology_key, within, named)
        eligible = np.zeros(column.absent, dtype=bool)
        eligible[column.codes[within]] = True
        itself = selector_matches(constraint.selector, self.terms.labels_of(task))
        return Limit(constraint, domain, eligible, column.present(), column.codes, int(itself))

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        out: BoolArray = np.ones(len(self.session.nodes), dtype=bool)[at.rows]
        for limit in self._of(task):
            out &= limit.present[at.rows]
            out &= ~limit.exceeded(at.rows)
        return out

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        """The first constraint that fails gives the reason: first the missing label, then the skew."""
        open_: BoolArray = np.ones(len(self.session.nodes), dtype=bool)[at.rows]
        missing, skewed = np.zeros_like(open_), np.zeros_like(open_)
        for limit in self._of(task):
            here = open_ & ~limit.present[at.rows]
            missing |= here
            over = open_ & ~here & limit.exceeded(at.rows)
            skewed |= over
            open_ = open_ & ~here & ~over
        return [
            Refusal(MISSING, missing, unresolvable=True, code="PodTopologySpreadLabel"),
            Refusal(MISMATCH, skewed, code="PodTopologySpread"),
        ]
