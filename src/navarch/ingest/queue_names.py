"""Objects of several APIs that mean the same thing by the same name: a queue `default` of Volcano's and of KAI's, say.

The first dialect of the registry that has the object speaks; when its object goes, the next one's does.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from navarch.apis.registry import RANK

T = TypeVar("T")


class Contested(Generic[T]):
    def __init__(self) -> None:
        self._claims: dict[str, dict[tuple[int, str], T]] = {}

    def put(self, key: str, dialect: str, api_version: str, value: T) -> T:
        """Take a claim in; the value that holds now."""
        claims = self._claims.setdefault(key, {})
        claims[_claimant(dialect, api_version)] = value
        return claims[min(claims)]

    def remove(self, key: str, dialect: str, api_version: str) -> T | None:
        """Withdraw a claim; the value that holds now, None if nobody has one."""
        claims = self._claims.get(key)
        if claims is None:
            return None
        claims.pop(_claimant(dialect, api_version), None)
        if not claims:
            del self._claims[key]
            return None
        return claims[min(claims)]

    def get(self, key: str) -> T | None:
        claims = self._claims.get(key)
        return claims[min(claims)] if claims else None

    def names(self) -> list[str]:
        return sorted(self._claims)

    def __len__(self) -> int:
        return len(self._claims)


def _claimant(dialect: str, api_version: str) -> tuple[int, str]:
    """The API group without its version: a server that is upgraded shows the same object in another one."""
    return RANK.get(dialect, len(RANK)), api_version.rpartition("/")[0]
