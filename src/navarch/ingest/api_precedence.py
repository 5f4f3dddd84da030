"""Objects of several APIs that share one name: a Volcano Queue `default` and a KAI Queue `default`, for example.

The model has one queue and one job for each name. The object of the API that `apis.registry` lists first wins. When that object is
removed, the object of the next API takes its place. The order in which objects arrive does not matter.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from navarch.apis.registry import RANK

T = TypeVar("T")


class ApiPrecedence(Generic[T]):
    """Name -> the values that APIs give it. `get` returns the value of the API with the highest precedence."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[int, str], T]] = {}

    def put(self, name: str, dialect: str, api_version: str, value: T) -> T:
        """Store the value of one API; returns the value that wins now."""
        values = self._values.setdefault(name, {})
        values[_api(dialect, api_version)] = value
        return values[min(values)]

    def remove(self, name: str, dialect: str, api_version: str) -> T | None:
        """Drop the value of one API; returns the value that wins now, or None if no API has the name any more."""
        values = self._values.get(name)
        if values is None:
            return None
        values.pop(_api(dialect, api_version), None)
        if not values:
            del self._values[name]
            return None
        return values[min(values)]

    def get(self, name: str) -> T | None:
        values = self._values.get(name)
        return values[min(values)] if values else None

    def names(self) -> list[str]:
        return sorted(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __len__(self) -> int:
        return len(self._values)


def _api(dialect: str, api_version: str) -> tuple[int, str]:
    """Precedence of an API group, without its version: an upgraded server shows the same object in another version."""
    return RANK.get(dialect, len(RANK)), api_version.rpartition("/")[0]
