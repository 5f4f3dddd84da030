"""Follows the policy that the running scheduler publishes: the pages show shares and places by the rules that hold now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from navarch.engine.registry import Registry
from navarch.kube.errors import KubeError
from navarch.views.leader_pages import LeaderPages
from navarch.views.published_state import PublishedState
from navarch.views.running_policy import RunningPolicy, running_policy

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 15.0


class PolicyFollower:
    """`on_change` is called with the policy that runs now. `known`: what the pages show already."""

    def __init__(
        self,
        pages: LeaderPages,
        registry: Registry,
        on_change: Callable[[RunningPolicy], None],
        known: PublishedState | None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._pages, self._registry, self._on_change, self._look_seconds = pages, registry, on_change, look_seconds
        self._known = None if known is None else _rules(known)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._look_seconds)
            await self.look()

    async def look(self) -> None:
        try:
            state = await self._pages.state(fresh=True)
        except KubeError:
            return  # the API server does not answer; the policy stays
        if state is None or _rules(state) == self._known:
            return
        self._known = _rules(state)
        running = running_policy(None, state, self._registry)
        for note in running.notes:
            log.warning("%s", note)
        log.info("the scheduler runs the policy %s (hash %s)", state.policy.name, state.policy.hash)
        self._on_change(running)


def _rules(state: PublishedState) -> tuple[object, ...]:
    return state.policy.name, state.policy.hash, state.parameters, tuple(state.scheduler_names)
