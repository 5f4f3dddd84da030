"""Kinds that our account may not watch, told in one line: an account without rights lacks them for every kind at once.

Refusals are gathered for a moment, so that whoever starts a program under the wrong account reads one sentence that says so,
and not the same sentence for each of fifty kinds.
"""

from __future__ import annotations

import asyncio
import logging

from navarch.kube.errors import Forbidden
from navarch.kube.resources import Resource

log = logging.getLogger(__name__)


class ForbiddenKinds:
    """`advice` is what would help, for people."""

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
        log.warning("%s; tried again until it is allowed.%s%s", gathered[kinds[0]], self._advice and f" {self._advice}.", others)
