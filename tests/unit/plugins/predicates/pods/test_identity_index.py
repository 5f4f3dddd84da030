"""Identities by their labels, in an order that no hash decides."""

from __future__ import annotations

from navarch.model.spec import Requirement
from navarch.plugins.predicates.pods.identity_index import Identity, IdentityIndex

SPACES = [f"team-{i}" for i in range(40)]


def test_identities_of_several_namespaces_come_by_number() -> None:
    identities: list[Identity] = [(space, (("app", "web"), ("i", str(i)))) for i in range(3) for space in SPACES]
    index = IdentityIndex(identities)
    index.grow()
    wanted = Requirement("app", "In", ("web",))
    half = frozenset(SPACES[:20])
    expected = [number for number, (space, _) in enumerate(identities) if space in half]
    assert index.having(wanted, half) == expected
    assert index.having(wanted, None) == list(range(len(identities)))
