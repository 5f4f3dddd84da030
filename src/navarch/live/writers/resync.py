"""Asks the API server about pods whose bind has an unknown outcome.

One worker asks, oldest first, with growing pauses while the server does not answer. If the pod is bound to the chosen node, the bind
succeeded, whichever scheduler made it. If the pod is not bound, gone, or another pod by now, the bind failed and the pod is decided
again. A pod that another binder is asked to bind counts as not bound only if the request is not there either. A bind that was accepted
but that the watch does not show is asked for too, so that no assumption lasts for ever.
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
from navarch.kube.errors import KubeError, NotFound, OutcomeUnknown
from navarch.kube.resources import PODS
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.core import LiveCore
from navarch.live.writers.bind_requests import RESOURCE as REQUESTS

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
            found = await self._pod(bind)
            requested = bind.delegated and found is not None and not found.spec.node_name and await self._is_requested(bind)
        except KubeError as error:
            wait = self._backoff.next()
            log.warning("%s/%s: it is unknown whether the pod is bound: %s; retry in %.1f s", bind.namespace, bind.name, error, wait)
            self.ask(bind, wait)
            return
        self._backoff.reset()
        now = asyncio.get_running_loop().time()
        if not requested:
            self._core.resolve_bind(bind, found, now)
        elif bind.written:
            bind.since = now
        else:
            self._core.request_succeeded(bind, now)

    async def _pod(self, bind: AssumedBind) -> Pod | None:
        try:
            found = await self._client.get(PODS, bind.name, namespace=bind.namespace, type=Pod)
        except NotFound:
            return None
        if not found.metadata.uid:
            raise OutcomeUnknown(f"{bind.namespace}/{bind.name}: expected a pod with a uid")
        return found

    async def _is_requested(self, bind: AssumedBind) -> bool:
        """Whether there is a request for this pod."""
        try:
            request = await self._client.get(REQUESTS, bind.name, namespace=bind.namespace)
        except NotFound:
            return False
        owners = (request.get("metadata") or {}).get("ownerReferences") or ()
        return any(each.get("uid") == bind.uid for each in owners)

    def _look_for_unseen(self, now: float) -> None:
        for bind in list(self._core.assumed.binds.values()):
            if bind.written and now - bind.since > UNSEEN:
                bind.since = now
                self.ask(bind, 0.0)
