"""Kinds that the account may not watch, in one log line: an account without rights lacks them for every kind at once.

Refusals are collected for a moment, so that the log has one line and not the same line for each of fifty kinds.
"""

from __future__ import annotations

import asyncio
import logging

from navarch.kube.errors import Forbidden
from navarch.kube.resources import Resource

log = logging.getLogger(__name__)


class ForbiddenKinds:
    """`advice` is added to the log line."""

    def __init__(self, advice: str = "", pause: float = 1.0) -> None:
        self._advice = advice
        self._pause = pause
        self._gathered: dict[str, Forbidden] = {}

    def add(self, resource: Resource, error: Forbidden) -> None:
        if not self._gathered:
            asyncio.get_running_loop().call_later(self._pause, self._tell)
        self._gathered[str(resource)] = error

    def _tell(self) -> None:
        gathered, self._gathered = self._gathered, {}
        kinds = sorted(gathered)
        others = f" The same holds for {len(kinds) - 1} other kinds: {', '.join(kinds[1:])}." if len(kinds) > 1 else ""
        log.warning("%s; retrying until it is allowed.%s%s", gathered[kinds[0]], self._advice and f" {self._advice}.", others)
