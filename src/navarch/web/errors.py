"""What a request is refused with: a status, a word for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RequestError(Exception):
    """Becomes `{"error": {"code", "message", "near"}}` with this status."""

    def __init__(self, status: int, code: str, message: str, *, near: Sequence[str] = (), retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.near, self.retry_after = status, code, list(near), retry_after

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.near:
            found["near"] = self.near
        return {"error": found}


def not_found(message: str, near: Sequence[str] = ()) -> RequestError:
    return RequestError(404, "NotFound", message, near=near)


def invalid(message: str) -> RequestError:
    return RequestError(400, "Invalid", message)
