"""What the leader knows of the waiting jobs, for the commands of users who may read its pages. The others do without it.

The pages come through the API server's proxy (`views/leader_pages.py`). Most users have no right to them, and a leader may be out of
reach, so a command does not fail and does not wait long over them. Only an address that the user names has to answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from navarch.kube.client import Client
from navarch.kube.errors import KubeError
from navarch.views.leader_pages import LeaderPages
from navarch.views.published_state import PublishedState, StateAddress, WaitingJob, WaitingPage, read_state

PATIENCE: Final = 3.0
"""Seconds that a command waits for the leader."""
AGAIN: Final = 30.0
"""Seconds after which a leader that did not answer is asked again, by a command that goes on (--watch)."""


class Leader:
    """The scheduler of a cluster, as a command sees it."""

    def __init__(self, client: Client, address: StateAddress, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._address, self._clock = client, address, clock
        self._pages = LeaderPages(client, address)
        self._silent_until = -AGAIN

    async def state(self) -> PublishedState | None:
        """What the scheduler publishes; None if there is none."""
        return await read_state(self._client, self._address)

    async def waiting(self) -> WaitingPage | None:
        """The waiting jobs in the leader's order; None: this user may not read them, or the leader does not answer."""
        if self._address.url:
            return await self._pages.read(WaitingPage)
        if self._clock() < self._silent_until:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._pages.read(WaitingPage)
        except (KubeError, TimeoutError):
            self._silent_until = self._clock() + AGAIN
            return None


def leaders_view(job: WaitingJob) -> str:
    """What the leader says of a job, in a line.

    >>> from navarch.views.published_state import Cause, LastTried
    >>> tried = LastTried(7, 3, "2026-01-01T12:00:00Z")
    >>> job = WaitingJob("ml/bert", "ml/bert", "ml", 2, 5, 9, 4, 4, 0, "held", Cause("Unschedulable", "no room"), None, tried)
    >>> leaders_view(job)
    'the running scheduler: place 2 of 5 in ml, 9 in all; last tried at 2026-01-01T12:00:00Z as number 3 of cycle 7: no room'
    """
    text = f"the running scheduler: place {job.place} of {job.of} in {job.queue}, {job.overall} in all"
    if job.last_tried is not None:
        text += f"; last tried at {job.last_tried.time} as number {job.last_tried.place} of cycle {job.last_tried.cycle}"
    return f"{text}: {job.reason.message}" if job.reason is not None else text
