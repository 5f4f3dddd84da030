"""Every rule about other pods that any pod of the cluster carries, gathered once a cycle.

Without any, the rules between pods apply to nobody and cost nothing. With some, pods are told apart by just the labels that
these rules read, so that pods which differ in nothing else still share their masks and scores.
"""

from __future__ import annotations

from collections.abc import Iterable

from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.spec import Labels, LabelSelector, PodAffinity, PodTerm, Shape
from navarch.plugins.predicates.placed_pods import placed_pods
from navarch.plugins.predicates.selection import means


class PodTerms:
    """Distinct terms of all shapes, in the order in which shapes were first seen."""

    def __init__(self, session: Session) -> None:
        self.session = session
        shapes = [shape for shape in session.snapshot.shapes if shape.pod_affinity is not None or shape.spread]
        near = [shape.pod_affinity for shape in shapes if shape.pod_affinity is not None]
        self.required: tuple[PodTerm, ...] = tuple(dict.fromkeys(t for a in near for t in a.required))
        self.anti_required: tuple[PodTerm, ...] = tuple(dict.fromkeys(t for a in near for t in a.anti_required))
        self.preferred: tuple[tuple[int, PodTerm], ...] = tuple(dict.fromkeys(t for a in near for t in a.preferred))
        self.anti_preferred: tuple[tuple[int, PodTerm], ...] = tuple(
            dict.fromkeys(t for a in near for t in a.anti_preferred)
        )
        keys: set[str] = set()
        rules = False
        for shape in shapes:
            for selector in selectors_of(shape):
                rules = True
                keys.update(requirement.key for requirement in selector.requirements)
        if rules:
            session.distinguish_labels(keys)
        if shapes:
            placed_pods(session)

    def labels_of(self, task: TaskClass) -> Labels:
        return self.session.task(task.task).labels

    def meaning(self, task: TaskClass, terms: Iterable[PodTerm]) -> list[PodTerm]:
        """The terms among these that mean pods of the class."""
        snapshot, labels = self.session.snapshot, self.labels_of(task)
        return [term for term in terms if means(snapshot, term, task.namespace, labels)]

    def weighing(self, task: TaskClass, terms: Iterable[tuple[int, PodTerm]]) -> list[tuple[int, PodTerm]]:
        snapshot, labels = self.session.snapshot, self.labels_of(task)
        return [(weight, term) for weight, term in terms if means(snapshot, term, task.namespace, labels)]


def all_terms(affinity: PodAffinity) -> Iterable[PodTerm]:
    yield from affinity.required
    yield from affinity.anti_required
    for _, term in (*affinity.preferred, *affinity.anti_preferred):
        yield term


def selectors_of(shape: Shape) -> Iterable[LabelSelector]:
    """Selectors over pods' labels that a shape carries."""
    if shape.pod_affinity is not None:
        for term in all_terms(shape.pod_affinity):
            if term.selector is not None:
                yield term.selector
    for constraint in shape.spread:
        if constraint.selector is not None:
            yield constraint.selector


def pod_terms(session: Session) -> PodTerms:
    """Asked for when plugins open, before any class of tasks is made."""
    return session.shared(PodTerms)
