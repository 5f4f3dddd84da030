"""Which pods a rule means, as sets of identities: namespace and labels, numbered once for the whole cluster.

Matching a selector against every pod would cost a pass over pods for each rule. Pods of one template share an identity, so a
selector is matched against identities, once in its life: the answer is kept across cycles and only grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from navarch.model.resources import BoolArray
from navarch.model.selectors import selector_matches
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NO_LABELS, Labels, LabelSelector, PodTerm


@dataclass(frozen=True, slots=True)
class Selection:
    """Pods of these namespaces (None: of all) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: LabelSelector | None

    def matches(self, namespace: str, labels: Labels) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and selector_matches(self.selector, labels)


def of_own_term(snapshot: Snapshot, term: PodTerm) -> Selection:
    """What a term means on the pod that is being placed: its namespace selector is resolved to namespaces that exist.

    A selector that an unlabelled namespace passes means every namespace, known or not."""
    if term.namespace_selector is None:
        return Selection(frozenset(term.namespaces), term.selector)
    if selector_matches(term.namespace_selector, NO_LABELS):
        return Selection(None, term.selector)
    chosen = {n.name for n in snapshot.namespaces.values() if selector_matches(term.namespace_selector, n.labels)}
    return Selection(frozenset(term.namespaces) | chosen, term.selector)


def means(snapshot: Snapshot, term: PodTerm, namespace: str, labels: Labels) -> bool:
    """Whether the term of a pod that already stands somewhere means this pod: its namespace's labels are looked at."""
    if namespace not in term.namespaces:
        if term.namespace_selector is None:
            return False
        known = snapshot.namespaces.get(namespace)
        if not selector_matches(term.namespace_selector, known.labels if known else NO_LABELS):
            return False
    return selector_matches(term.selector, labels)


def selected(snapshot: Snapshot, selection: Selection) -> BoolArray:
    """For each identity whether the selection means it."""
    key = ("selected", selection)
    identities = snapshot.identities
    held: BoolArray = snapshot.memo.pop(key, _NONE)
    if len(held) < len(identities):
        fresh = [selection.matches(namespace, dict(labels)) for namespace, labels in identities[len(held) :]]
        held = np.concatenate((held, np.array(fresh, dtype=bool)))
    snapshot.memo[key] = held
    return held


_NONE: BoolArray = np.zeros(0, dtype=bool)
