"""The pods that a rule selects, as sets of identities: namespace and labels, numbered once for the whole cluster.

Matching a selector against every pod would cost a pass over pods for each rule. Pods of one template share an identity, so a
selector is matched against identities: those with a label that it names, or, if it names none, all of them. The answer is cached
across cycles and only grows.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from navarch.model.selectors import selector_matches
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NO_LABELS, Labels, LabelSelector, PodTerm
from navarch.plugins.predicates.pods.identity_index import IdentityIndex, identity_index


class Selection(Struct, frozen=True):
    """Pods of these namespaces (None: of all) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: LabelSelector | None

    def matches(self, namespace: str, labels: Labels) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and selector_matches(self.selector, labels)

    def means(self, snapshot: Snapshot, identity: int) -> bool:
        namespace, labels = snapshot.identities[identity]
        return self.matches(namespace, dict(labels))


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


def identities_meant(snapshot: Snapshot, selection: Selection) -> list[int]:
    """Numbers of the identities that the selection means."""
    if selection.selector is None:
        return []
    index = identity_index(snapshot)
    anchor = index.anchor(selection.selector, selection.namespaces)
    if anchor is not None:
        return _matching(index, selection, index.having(anchor, selection.namespaces))
    key = ("selected", selection)
    held: tuple[IdentityIndex, int, list[int]] = snapshot.memo.pop(key, _UNKNOWN)
    before, read, found = held if held[0] is index else (index, 0, [])
    if read < len(index.identities):
        size = len(index.identities)
        before, read, found = index, size, found + _matching(index, selection, range(read, size))
    snapshot.memo[key] = before, read, found
    return found


def _matching(index: IdentityIndex, selection: Selection, numbers: Iterable[int]) -> list[int]:
    identities = index.identities
    return [n for n in numbers if selection.matches(identities[n][0], dict(identities[n][1]))]


_UNKNOWN: tuple[IdentityIndex, int, list[int]] = (IdentityIndex([]), 0, [])
