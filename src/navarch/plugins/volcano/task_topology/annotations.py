"""The annotations of a group that say which of its roles belong together, which apart, and which come first.

`volcano.sh/task-topology-affinity` and `-anti-affinity` hold terms, separated by `;`, each a list of roles. A term of one role is a
relation of the role with itself. A longer term relates each role with every other of the term. `-task-order` lists roles, first
comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER = "volcano.sh/task-topology-task-order"
NAMES = (AFFINITY, ANTI_AFFINITY, TASK_ORDER)

SELF_ANTI, INTER_AFFINITY, SELF_AFFINITY, INTER_ANTI = 4, 3, 2, 1
"""The strength of each relation: roles with a stronger one are put into buckets first."""


class Relations(Struct, frozen=True):
    """The relations of the roles of one job."""

    near: frozenset[tuple[str, str]]
    apart: frozenset[tuple[str, str]]
    """Pairs of roles, both ways round; a role with itself is (role, role)."""
    strength: Mapping[str, int]
    """Role -> the strongest of its relations. Roles without a relation are absent: their pods join no bucket."""
    order: Mapping[str, int]
    """Role -> higher comes first; absent roles are 0."""

    def rank(self, role: str) -> tuple[int, int]:
        """Smaller comes first: the user's order, then the strength."""
        return -self.order.get(role, 0), -self.strength.get(role, 0)

    def closeness(self, role: str, others: Mapping[str, int]) -> int:
        """Pods among `others` (role -> count) that the role wants near, minus those that it wants apart."""
        near = sum(count for other, count in others.items() if (role, other) in self.near)
        return near - sum(count for other, count in others.items() if (role, other) in self.apart)


class UnknownRole(ValueError):
    """An annotation that names a role twice in a term, or a role that no pod of the job has."""


def read_relations(annotations: Mapping[str, str], roles: Collection[str]) -> tuple[Relations | None, list[str]]:
    """The relations that a group asks for, and what is wrong with its annotations. An annotation with a mistake is left out."""
    terms: dict[str, list[list[str]]] = {}
    mistakes: list[str] = []
    for name in NAMES:
        if name not in annotations:
            continue
        parts = [annotations[name]] if name == TASK_ORDER else annotations[name].split(";")
        found = [[role.strip() for role in part.split(",")] for part in parts]
        try:
            _check(found, roles)
        except UnknownRole as error:
            mistakes.append(f"{name}: {error}")
        else:
            terms[name] = [[role for role in term if role] for term in found]
    if not terms:
        return None, mistakes
    return relations(terms.get(AFFINITY, []), terms.get(ANTI_AFFINITY, []), next(iter(terms.get(TASK_ORDER, [])), [])), mistakes


def _check(terms: Sequence[Sequence[str]], roles: Collection[str]) -> None:
    for term in terms:
        named = [role for role in term if role]
        for role in named:
            if role not in roles:
                raise UnknownRole(f"found {role!r}, expected a role of the job ({', '.join(sorted(r for r in roles if r))})")
            if named.count(role) > 1:
                raise UnknownRole(f"found {role!r} twice in one term, expected it once")


def relations(affinity: Sequence[Sequence[str]], anti_affinity: Sequence[Sequence[str]], order: Sequence[str]) -> Relations:
    """
    >>> found = relations([["ps", "worker"]], [["ps"]], ["worker"])
    >>> sorted(found.near), sorted(found.apart), found.strength["ps"], found.rank("worker") < found.rank("ps")
    ([('ps', 'worker'), ('worker', 'ps')], [('ps', 'ps')], 4, True)
    """
    strength: dict[str, int] = {}
    pairs: list[set[tuple[str, str]]] = []
    for terms, alone, together in ((affinity, SELF_AFFINITY, INTER_AFFINITY), (anti_affinity, SELF_ANTI, INTER_ANTI)):
        related: set[tuple[str, str]] = set()
        for term in terms:
            kind = alone if len(term) == 1 else together
            for index, role in enumerate(term):
                strength[role] = max(strength.get(role, 0), kind)
                if kind == alone:
                    related.add((role, role))
                for other in term[:index]:
                    related.update(((role, other), (other, role)))
        pairs.append(related)
    places = {role: len(order) - index for index, role in enumerate(order)}
    return Relations(frozenset(pairs[0]), frozenset(pairs[1]), strength, places)
