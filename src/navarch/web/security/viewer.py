"""The user of a request, and what the user may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Viewer:
    """`namespaces` None: all."""

    user: str
    mode: str
    namespaces: frozenset[str] | None = None
    sees_nodes: bool = True

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def to_dict(self) -> dict[str, Any]:
        return {
            "user": self.user,
            "mode": self.mode,
            "namespaces": None if self.namespaces is None else sorted(self.namespaces),
            "seesNodes": self.sees_nodes,
        }
