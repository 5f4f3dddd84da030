"""InterPodAffinity's score: preferred affinity and anti-affinity of this pod, and of the pods on nodes towards it.

Each matching term adds its weight for every matching pod in the node's domain. Terms of placed pods count too: their preferences
about this pod, and their required affinity for it with a weight of its own.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.session import Session
from navarch.model.label_syntax import aggregate
from navarch.model.resources import FloatArray
from navarch.model.spec import PodAffinity
from navarch.plugins.predicates.pods.affinity import term_errors_of
from navarch.plugins.predicates.pods.counts import DomainCount, pod_counts
from navarch.plugins.predicates.pods.selection import of_own_term
from navarch.plugins.predicates.pods.terms import CarriedTerm, pod_terms


class WeightedCount(Struct):
    weight: int
    pods: DomainCount


class PodPreferences(NodeScorer):
    name = "InterPodAffinity"
    scope = Scope.GLOBAL
    normalises = True

    def __init__(self, session: Session, weight: float, *, hard_weight: int = 1, ignore_others: bool = False) -> None:
        self.session = session
        self.weight = weight
        self.hard_weight = hard_weight
        self.ignore_others = ignore_others
        """Pods without preferences of their own are not scored at all."""
        self.terms = pod_terms(session)
        self._counts_of: dict[int, list[WeightedCount]] = {}
        self._others: dict[int, list[tuple[int, CarriedTerm]]] = {}

    def applies(self, task: TaskClass) -> bool:
        own = task.shape.pod_affinity
        if own is not None and (own.preferred or own.anti_preferred):
            return True
        if self.ignore_others:
            return False
        return bool(self._meant(task)) or (own is not None and bool(term_errors_of(own)))

    def problem(self, task: TaskClass) -> str:
        own = task.shape.pod_affinity
        errors = term_errors_of(own) if own is not None else []
        return f"failed to parse pod: {aggregate(errors)}" if errors else ""

    def _meant(self, task: TaskClass) -> list[tuple[int, CarriedTerm]]:
        """Terms of other pods that mean the class, and what they weigh."""
        found = self._others.get(task.number)
        if found is None:
            terms = self.terms
            found = [(carried.weight, carried) for carried in terms.preferred.meaning(task)]
            found += [(-carried.weight, carried) for carried in terms.anti_preferred.meaning(task)]
            if self.hard_weight > 0:
                found += [(self.hard_weight, carried) for carried in terms.required.meaning(task)]
            self._others[task.number] = found
        return found

    def _of(self, task: TaskClass) -> list[WeightedCount]:
        found = self._counts_of.get(task.number)
        if found is None:
            found = self._counts_of[task.number] = self._gather(task)
        return found

    def _gather(self, task: TaskClass) -> list[WeightedCount]:
        session, counts = self.session, pod_counts(self.session)
        own = task.shape.pod_affinity or PodAffinity()
        counted = []
        for sign, preferred in ((1, own.preferred), (-1, own.anti_preferred)):
            for weight, term in preferred:
                pods = counts.selected((of_own_term(session.snapshot, term),))
                counted.append(WeightedCount(sign * weight, pods.by(term.topology_key)))
        for weight, carried in self._meant(task):
            found = counts.carrying(carried).by(carried.term.topology_key)
            counted.append(WeightedCount(weight, found))
        return counted

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        total: FloatArray = np.zeros(len(self.session.nodes))[at.rows]
        for each in self._of(task):
            if each.pods.total:
                total += each.weight * each.pods.at(at.rows)
        return total

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        if low == high:
            return np.zeros(len(raw))
        return np.trunc(100.0 * ((raw - low) / (high - low)))
