"""Asks the API server about pods whose bind has an unknown outcome.

One worker asks, oldest first, with growing pauses while the server does not answer. If the pod is bound to the chosen node, the bind
succeeded, whichever scheduler made it. If the pod is not bound, gone, or another pod by now, the bind failed and the pod is decided
again. A bind that was accepted but that the watch does not show is asked for too, so that no assumption lasts for ever.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import random
from itertools import count

from navarch.apis.core.pod_objects import Pod
from navarch.kube.backoff import Backoff
from navarch.kube.client import Client
from navarch.kube.errors import KubeError, NotFound
from navarch.kube.resources import PODS
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.core import LiveCore

log = logging.getLogger(__name__)

UNSEEN = 30.0
"""Seconds after which a bind that was accepted and that the watch does not show is asked for."""


class Resync:
    def __init__(self, client: Client, core: LiveCore, rng: random.Random) -> None:
        self._client = client
        self._core = core
        self._backoff = Backoff(first=0.1, cap=5.0, rng=rng)
        self._due: list[tuple[float, int, AssumedBind]] = []
        self._number = count()
        self._more = asyncio.Event()

    def ask(self, bind: AssumedBind, delay: float) -> None:
        heapq.heappush(self._due, (asyncio.get_running_loop().time() + delay, next(self._number), bind))
        self._more.set()

    def __len__(self) -> int:
        return len(self._due)

    async def run(self) -> None:
        """Ask until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            wait = 5.0
            if self._due:
                wait = self._due[0][0] - clock()
            if wait > 0:
                self._more.clear()
                try:
                    async with asyncio.timeout(wait):
                        await self._more.wait()
                except TimeoutError:
                    self._look_for_unseen(clock())
                continue
            _, _, bind = heapq.heappop(self._due)
            try:
                await self._resolve(bind)
            except BaseException:
                self.ask(bind, 1.0)  # it is asked for again when this runs again: no other scheduler knows of it
                raise

    async def _resolve(self, bind: AssumedBind) -> None:
        if not self._core.is_assumed(bind):
            self._core.bind_overtaken(bind)
            return
        try:
            found: Pod | None = await self._client.get(PODS, bind.name, namespace=bind.namespace, type=Pod)
        except NotFound:
            found = None
        except KubeError as error:
            wait = self._backoff.next()
            log.warning("%s/%s: it is unknown whether the pod is bound: %s; retry in %.1f s", bind.namespace, bind.name, error, wait)
            self.ask(bind, wait)
            return
        self._backoff.reset()
        self._core.resolve_bind(bind, found, asyncio.get_running_loop().time())

    def _look_for_unseen(self, now: float) -> None:
        for bind in list(self._core.assumed.binds.values()):
            if bind.written and now - bind.since > UNSEEN:
                bind.since = now
                self.ask(bind, 0.0)
