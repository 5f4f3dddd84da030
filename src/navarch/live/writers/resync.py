"""What the API server says of a pod whose bind has no known end.

One worker asks, oldest first, with growing pauses while the server does not answer. The pod is bound where we wanted it: done,
whoever did it. It is not bound, gone, or another pod by now: the bind is forgotten and the pod is decided again. A bind that
succeeded but that the watch does not show is asked for as well, so that an assumption cannot outlive the truth.
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
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.writers.binder import Binder

log = logging.getLogger(__name__)

UNSEEN = 30.0
"""Seconds after which a bind that the server accepted and the watch does not show is looked at."""


class Resync:
    def __init__(self, client: Client, binder: Binder, assumed: AssumedPods, rng: random.Random) -> None:
        self._client = client
        self._binder = binder
        self._assumed = assumed
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
            except asyncio.CancelledError:
                self.ask(bind, 0.0)  # when we lead again: nobody else would ever ask for it
                raise

    async def _resolve(self, bind: AssumedBind) -> None:
        if self._assumed.binds.get(bind.uid) is not bind:
            self._binder.overtaken(bind)
            return
        try:
            pod = await self._client.get(PODS, bind.name, namespace=bind.namespace, type=Pod)
        except NotFound:
            self._binder.forget(bind, "the pod is gone")
            return
        except KubeError as error:
            wait = self._backoff.next()
            log.warning("%s/%s: not known yet whether it is bound: %s; again in %.1f s", bind.namespace, bind.name, error, wait)
            self.ask(bind, wait)
            return
        self._backoff.reset()
        if self._assumed.binds.get(bind.uid) is not bind:
            self._binder.overtaken(bind)
        elif pod.metadata.uid != bind.uid:
            self._binder.forget(bind, "the pod is gone; another has its name")
        elif pod.spec.node_name == bind.node:
            if not bind.written:
                self._binder.succeeded(bind)
            bind.since = asyncio.get_running_loop().time()
        elif pod.spec.node_name:
            # Another scheduler was quicker. The watch will put the pod on that node.
            self._binder.forget(bind, f"the pod was bound to {pod.spec.node_name} by somebody else")
        else:
            self._binder.forget(bind, "the API server does not have the binding")

    def _look_for_unseen(self, now: float) -> None:
        for bind in list(self._assumed.binds.values()):
            if bind.written and now - bind.since > UNSEEN:
                bind.since = now
                self.ask(bind, 0.0)
