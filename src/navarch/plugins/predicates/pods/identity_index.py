"""Identities (namespace and labels of pods) by the labels they have.

Most selectors name a value: `app In (web)`. Only identities with that label can match, so a cluster in which every job has a
label of its own and a rule about it costs a few comparisons a rule, not rules times jobs. The index is kept across cycles and
only grows; a cluster that numbered its identities anew gets a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from navarch.model.snapshot import Snapshot
from navarch.model.spec import LabelSelector, Requirement

Pair = tuple[str, str]
Identity = tuple[str, tuple[Pair, ...]]


class IdentityIndex:
    def __init__(self, identities: Sequence[Identity]) -> None:
        self.identities = identities
        self._read = 0
        self._with: dict[Pair, dict[str, list[int]]] = {}
        """Label -> namespace -> identities."""

    def grow(self) -> None:
        """Take in what was numbered since."""
        size = len(self.identities)
        for number in range(self._read, size):
            namespace, labels = self.identities[number]
            for pair in labels:
                self._with.setdefault(pair, {}).setdefault(namespace, []).append(number)
        self._read = size

    def having(self, requirement: Requirement, namespaces: frozenset[str] | None) -> list[int]:
        """Identities with one of the values that an `In` names, of these namespaces (None: of all), by number: a set of names
        comes in another order in every process."""
        return sorted(number for part in self._parts(requirement, namespaces) for number in part)

    def anchor(self, selector: LabelSelector, namespaces: frozenset[str] | None) -> Requirement | None:
        """The requirement that names values and leaves the fewest identities; None if the selector names no value."""
        named = [requirement for requirement in selector.requirements if requirement.operator == "In"]
        if len(named) < 2:
            return named[0] if named else None
        return min(named, key=lambda each: sum(map(len, self._parts(each, namespaces))))

    def _parts(self, requirement: Requirement, namespaces: frozenset[str] | None) -> Iterable[list[int]]:
        for value in dict.fromkeys(requirement.values):
            found = self._with.get((requirement.key, value), {})
            if namespaces is None or len(found) < len(namespaces):
                yield from (numbers for namespace, numbers in found.items() if namespaces is None or namespace in namespaces)
            else:
                yield from (found[namespace] for namespace in namespaces if namespace in found)


def identity_index(snapshot: Snapshot) -> IdentityIndex:
    found: IdentityIndex | None = snapshot.memo.pop("identities by label", None)
    if found is None or found.identities is not snapshot.identities:
        found = IdentityIndex(snapshot.identities)
    snapshot.memo["identities by label"] = found
    found.grow()
    return found
