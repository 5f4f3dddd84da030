"""Whether the cluster's API server answers the dashboard. Where it does not, pages show what was known last, and say so.

It is asked every few seconds while pages are open. Watches alone do not tell: a quiet watch and a dead one look the same for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from navarch.kube.client import Client
from navarch.kube.errors import ApiError, KubeError, ServerFault, Unauthorized
from navarch.web.recent_viewers import RecentViewers

ASK_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
"""An API server that takes longer counts as one that does not answer."""
VIEWER_SECONDS: Final = 30.0
"""It is asked while a viewer asked within this time."""


class ApiServerHealth:
    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self.reason = ""
        """Why the last question was not answered; empty: it was."""
        self.last_answer: float | None = None
        self._client, self._clock = client, clock
        self.viewers = RecentViewers(VIEWER_SECONDS)

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.viewers.wait()
            await self.ask()
            await asyncio.sleep(ASK_SECONDS)

    async def ask(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._client.transport.request("GET", "/version", attempts=1)
        except TimeoutError:
            self.reason = f"no answer within {ANSWER_SECONDS:g} s"
            return
        except KubeError as error:
            if not isinstance(error, ApiError) or isinstance(error, ServerFault | Unauthorized):
                self.reason = str(error)
                return
        self.reason, self.last_answer = "", self._clock()

    def to_dict(self) -> dict[str, Any]:
        return {"answers": not self.reason, "reason": self.reason, "lastAnswer": self.last_answer}
