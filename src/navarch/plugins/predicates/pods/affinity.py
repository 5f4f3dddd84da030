"""InterPodAffinity: required affinity and anti-affinity of the pod, and required anti-affinity of placed pods against it.

Three tests for each node, in this order. For each required term, a pod that matches all required terms is in the node's domain (or
no such pod exists and the pod itself would be the first). No pod that matches a required anti-affinity term is in its domain. No
pod in the node's domains excludes this pod by its own terms.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.label_syntax import aggregate
from navarch.model.resources import BoolArray
from navarch.model.selectors import label_selector_errors
from navarch.model.spec import PodAffinity
from navarch.plugins.predicates.pods.counts import DomainCount, pod_counts
from navarch.plugins.predicates.pods.placed_pods import placed_pods
from navarch.plugins.predicates.pods.selection import of_own_term
from navarch.plugins.predicates.pods.terms import CarriedTerm, PodTerms, pod_terms

NO_FRIEND = "node(s) didn't match pod affinity rules"
FOE = "node(s) didn't match pod anti-affinity rules"
KEPT_AWAY = "node(s) didn't satisfy existing pods anti-affinity rules"


class Neighbours(Struct):
    """What the rule counts for one class of tasks."""

    friends: list[DomainCount]
    may_be_first: bool
    foes: list[DomainCount]
    guards: list[DomainCount]
    """Pods that keep this class away."""
    closing: list[DomainCount]
    """Those among the foes that count pods of the class itself."""
    guards_otherwise: bool
    """The class keeps itself away by a term that as its own does not mean it: namespaces are read in two ways."""
    idle: bool = False
    """Nothing was there to check when the attempt began: then pods that a trial adds are not looked at either."""
    version: int = -1
    everywhere: BoolArray | None = None
    """The mask over all nodes, good while the counts' version stays."""

    def is_first(self) -> bool:
        """No pod that the class must be near stands anywhere, and one of its own would be the first. Where some stand, another
        one can only join them, which opens no domain."""
        return self.may_be_first and not any(friends.total for friends in self.friends)


class InterPodAffinity(NodeFilter):
    name = "InterPodAffinity"
    scope = Scope.GLOBAL
    undone_by = (Event.POD_REMOVED, Event.POD_CHANGED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, session: Session) -> None:
        self.session = session
        self.terms: PodTerms = pod_terms(session)
        self._classes: dict[int, Neighbours] = {}
        self._guards: dict[int, list[CarriedTerm]] = {}

    def _meant(self, task: TaskClass) -> list[CarriedTerm]:
        """Terms by which others could keep the class away."""
        found = self._guards.get(task.number)
        if found is None:
            found = self._guards[task.number] = self.terms.anti_required.meaning(task)
        return found

    def applies(self, task: TaskClass) -> bool:
        own = task.shape.pod_affinity
        return (own is not None and bool(own.required or own.anti_required or term_errors_of(own))) or bool(self._meant(task))

    def moved_by_own_class(self, task: TaskClass) -> bool:
        near = self._neighbours(task)
        return bool(near.closing) or near.guards_otherwise or near.is_first()

    def closes(self, task: TaskClass) -> list[tuple[Rows, int]]:
        near = self._neighbours(task)
        return [] if near.guards_otherwise or near.is_first() else [(foes.codes, foes.outside) for foes in near.closing]

    def reject(self, task: TaskClass) -> Rejection | None:
        own = task.shape.pod_affinity
        errors = term_errors_of(own) if own is not None else []
        near = self._neighbours(task)
        near.idle = not near.friends and not near.foes and not any(others.total for others in near.guards)
        return Rejection(f"parsing pod: {aggregate(errors)}") if errors else None

    def _neighbours(self, task: TaskClass) -> Neighbours:
        found = self._classes.get(task.number)
        if found is None:
            found = self._classes[task.number] = self._gather(task)
        return found

    def _gather(self, task: TaskClass) -> Neighbours:
        session, counts = self.session, pod_counts(self.session)
        own = task.shape.pod_affinity or PodAffinity()
        friends, may_be_first = [], False
        if own.required:
            selections = tuple(of_own_term(session.snapshot, term) for term in own.required)
            together = counts.selected(selections)
            friends = [together.by(term.topology_key) for term in own.required]
            may_be_first = all(each.means(session.snapshot, task.labels) for each in selections)
        foes, hostile = [], []
        for term in own.anti_required:
            selection = of_own_term(session.snapshot, term)
            foes.append(counts.selected((selection,)).by(term.topology_key))
            hostile.append(selection.means(session.snapshot, task.labels))
        meant = self._meant(task)
        guards = [counts.carrying(carried).by(carried.term.topology_key) for carried in meant]
        harmless = [term for term, itself in zip(own.anti_required, hostile) if not itself]
        guards_otherwise = any(carried.term in harmless for carried in meant)
        closing = [count for count, itself in zip(foes, hostile) if itself]
        return Neighbours(friends, may_be_first, foes, guards, closing, guards_otherwise)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        if isinstance(at.rows, slice):
            near, version = self._neighbours(task), pod_counts(self.session).version
            if near.everywhere is None or near.version != version:
                near.everywhere, near.version = self._mask_at(task, at.rows), version
            return near.everywhere
        return self._mask_at(task, at.rows)

    def _mask_at(self, task: TaskClass, rows: Rows | slice) -> BoolArray:
        near = self._neighbours(task)
        if near.idle and self._trying():
            return np.ones(len(self.session.nodes), dtype=bool)[rows]
        out = ~_without_friend(near, rows, len(self.session.nodes))
        for others in (*near.foes, *near.guards):
            if others.total:
                out &= others.at(rows) <= 0
        return out

    def _trying(self) -> bool:
        return placed_pods(self.session).journal is not None

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        near = self._neighbours(task)
        if near.idle and self._trying():
            return []
        alone = _without_friend(near, at.rows, len(self.session.nodes))
        foe, guarded = np.zeros_like(alone), np.zeros_like(alone)
        for others in near.foes:
            foe |= others.at(at.rows) > 0
        for others in near.guards:
            guarded |= others.at(at.rows) > 0
        return [
            Refusal(NO_FRIEND, alone, unresolvable=True, code="PodAffinity"),
            Refusal(FOE, foe & ~alone, code="PodAntiAffinity"),
            Refusal(KEPT_AWAY, guarded & ~foe & ~alone, code="ExistingPodsAntiAffinity"),
        ]


def _without_friend(near: Neighbours, rows: Rows | slice, size: int) -> BoolArray:
    out: BoolArray = np.zeros(size, dtype=bool)[rows]
    if not near.friends:
        return out
    first = near.is_first()
    for friends in near.friends:
        out |= ~friends.inside(rows) if first else friends.at(rows) <= 0
    return out


def term_errors_of(affinity: PodAffinity) -> list[str]:
    """What is wrong with the selectors, the first mistake of each of the four lists."""
    lists = {
        "requiredAffinityTerms": affinity.required,
        "requiredAntiAffinityTerms": affinity.anti_required,
        "preferredAffinityTerms": [term for _, term in affinity.preferred],
        "preferredAntiAffinityTerms": [term for _, term in affinity.anti_preferred],
    }
    found = []
    for name, terms in lists.items():
        for term in terms:
            errors = label_selector_errors(term.selector) or label_selector_errors(term.namespace_selector)
            if errors:
                found.append(f"{name}: {aggregate(errors)}")
                break
    return found
