"""What the order points return: a sort key."""

from __future__ import annotations

from typing import Any, Protocol


class OrderKey(Protocol):
    """A value that compares with the other keys of the same point. The smallest comes first."""

    def __lt__(self, other: Any, /) -> bool: ...
