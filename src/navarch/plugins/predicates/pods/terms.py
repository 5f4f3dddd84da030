"""Every rule on other pods that any pod of the cluster carries, collected once a cycle.

Without any, the filters on other pods do not apply and cost nothing. With some, classes of pods differ only in the labels that these
rules read, so that pods which differ in nothing else share masks and scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.spec import Labels, LabelSelector, PodAffinity, PodTerm, Shape
from navarch.plugins.predicates.pods.identity_index import Pair, identity_index
from navarch.plugins.predicates.pods.placed_pods import placed_pods
from navarch.plugins.predicates.pods.selection import means


class CarriedTerm(Struct, frozen=True, eq=False):
    """A term of one of the four lists of pods' rules, and the numbers of the shapes that carry it there."""

    number: int
    term: PodTerm
    weight: int
    """Of a preference; 0 for what is required."""
    shapes: list[int]


class TermList:
    """Distinct terms of one list, in the order in which shapes were first seen, indexed by the pods they may match: a namespace they
    name and a label they demand. To find the terms that match a pod, only those indexed under its own labels are checked."""

    def __init__(self, session: Session, entries: Iterable[tuple[int, int, PodTerm]]) -> None:
        """`entries`: (shape number, weight, term)."""
        self.session = session
        self._filed: dict[tuple[str | None, Pair | None], list[CarriedTerm]] = {}
        """Namespace, None where a selector chooses it; label, None where the term demands no certain one."""
        known: dict[tuple[int, PodTerm, int], CarriedTerm] = {}
        for shape, weight, term in entries:
            again = 0
            while True:
                carried = known.get((weight, term, again))
                if carried is None:
                    carried = known[weight, term, again] = CarriedTerm(len(known), term, weight, [])
                    self._file(carried)
                if carried.shapes[-1:] != [shape]:
                    break
                again += 1  # a pod that says the same twice weighs twice
            carried.shapes.append(shape)

    def _file(self, carried: CarriedTerm) -> None:
        term = carried.term
        if term.selector is None:
            return  # matches no pod
        spaces = frozenset(term.namespaces) if term.namespace_selector is None else None
        anchor = identity_index(self.session.snapshot).anchor(term.selector, spaces)
        pairs = [None] if anchor is None else [(anchor.key, value) for value in dict.fromkeys(anchor.values)]
        for namespace in dict.fromkeys(term.namespaces) if spaces is not None else (None,):
            for pair in pairs:
                self._filed.setdefault((namespace, pair), []).append(carried)

    def meaning(self, task: TaskClass) -> list[CarriedTerm]:
        """The terms that mean pods of the class."""
        if not self._filed:
            return []
        snapshot, labels = self.session.snapshot, self.session.task(task.task).labels
        pairs = (None, *labels.items())
        near = [c for space in (task.namespace, None) for pair in pairs for c in self._filed.get((space, pair), ())]
        return sorted((c for c in near if means(snapshot, c.term, task.namespace, labels)), key=lambda c: c.number)


class PodTerms:
    """Terms of all shapes, list by list."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._lists: dict[str, TermList] = {}
        shapes = [shape for shape in session.snapshot.shapes if shape.pod_affinity is not None or shape.spread]
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

    def _list(self, name: str, entries: Callable[[PodAffinity], Iterable[tuple[int, PodTerm]]]) -> TermList:
        found = self._lists.get(name)
        if found is None:
            carrying = [(i, s.pod_affinity) for i, s in enumerate(self.session.snapshot.shapes) if s.pod_affinity is not None]
            listed = ((i, weight, term) for i, affinity in carrying for weight, term in entries(affinity))
            found = self._lists[name] = TermList(self.session, listed)
        return found

    @property
    def required(self) -> TermList:
        return self._list("required", lambda affinity: ((0, term) for term in affinity.required))

    @property
    def anti_required(self) -> TermList:
        return self._list("anti_required", lambda affinity: ((0, term) for term in affinity.anti_required))

    @property
    def preferred(self) -> TermList:
        return self._list("preferred", lambda affinity: affinity.preferred)

    @property
    def anti_preferred(self) -> TermList:
        return self._list("anti_preferred", lambda affinity: affinity.anti_preferred)


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
