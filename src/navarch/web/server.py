"""The dashboard's process: watches of its own, the state that pages show, and the HTTP server."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.watch.informer import Patience
from navarch.live.ops.health import ListenError, split_address
from navarch.offline.plan import settings_for
from navarch.web.api.context import Context
from navarch.web.api.handlers import handlers
from navarch.web.application import application
from navarch.web.cluster.cluster_state import STEP, ClusterState
from navarch.web.cluster.watched_cluster import WatchedCluster
from navarch.web.scheduler.link import SchedulerLink
from navarch.web.security.hosts import HostCheck
from navarch.web.security.token_login import TokenLogin

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WebOptions:
    listen: str = "127.0.0.1:8090"
    hosts: Sequence[str] = ()
    """Names besides `localhost` and IP addresses that browsers may call this server by."""
    scheduler_names: Sequence[str] = ("navarch",)
    namespace_as_queue: bool = False
    simulations: Path | None = None
    recordings: Path | None = None
    step: float = STEP
    """Seconds between two versions at least."""
    seed: int | None = None
    patience: Patience | None = field(default=None)


class WebServer:
    """`await server.start()`, then `await server.run()` until cancelled, then `await server.stop()`."""

    def __init__(self, endpoint: Endpoint, policy: Policy, registry: Registry, options: WebOptions, policy_name: str) -> None:
        self.options = options
        served = frozenset(options.scheduler_names)
        self.client = Client(endpoint)
        self.watched = WatchedCluster(settings_for(policy, sorted(served), options.namespace_as_queue))
        self.state = ClusterState(self.watched, policy, registry, served, policy_name, step=options.step)
        self.informers = self.watched.watch(self.client, random.Random(options.seed), options.patience)
        self.login = TokenLogin()
        self._context = Context(self.state, SchedulerLink())
        self._app = application(self.login, HostCheck(options.hosts), handlers(self._context, self.client))
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """The address with the token, for the user's browser."""
        host, _ = split_address(self.options.listen)
        shown = f"[{host}]" if host and ":" in host else host or "127.0.0.1"
        return f"http://{shown}:{self.port}/?token={self.login.token}"

    async def start(self) -> None:
        """Listen. Raises ListenError for an address that cannot be used."""
        host, port = split_address(self.options.listen)
        self._runner = web.AppRunner(self._app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(f"{self.options.listen}: expected an address that is free: {error.strerror or error}") from error
        self.port = int(self._runner.addresses[0][1])

    async def run(self) -> None:
        """Read the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.informers.run(), name="informers")
            tasks.create_task(self.state.run(self.informers.wait_for_sync), name="state")

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self.state.close()
        await self.client.close()
