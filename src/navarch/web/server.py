"""The dashboard's process: watches of its own, the state that pages show, and the HTTP server."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from navarch.apis.dialect import Settings
from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.ingest.settings import settings_for
from navarch.kube.auth.access_review import AccessReview
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.listener import Listener
from navarch.kube.watch.patience import Patience
from navarch.live.ops.health import BOUNDS, ListenError, split_address
from navarch.views.published_state import PublishedState, StateAddress
from navarch.views.running_policy import RunningPolicy
from navarch.web.api.context import Context
from navarch.web.api.handlers import Sources, handlers
from navarch.web.application import Login, application
from navarch.web.cluster.api_server_health import ApiServerHealth
from navarch.web.cluster.cluster_state import STEP, ClusterState
from navarch.web.cluster.start_forecast import StartForecast
from navarch.web.cluster.watched_cluster import WatchedCluster
from navarch.web.scheduler.link import SchedulerLink
from navarch.web.scheduler.policy_follower import LOOK_SECONDS, PolicyFollower
from navarch.web.security.cluster_login import ClusterLogin
from navarch.web.security.hosts import HostCheck
from navarch.web.security.token_login import TokenLogin
from navarch.web.stream.change_log import Changed
from navarch.web.tables.jobs import NAMESPACE
from navarch.web.work.limits import WorkLimits
from navarch.web.work.requests import Explain, Forecast
from navarch.web.work.runner import WorkRunner

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.1
"""Events of watches are read together for this long; rows are made once a second."""


@dataclass(frozen=True)
class WebOptions:
    listen: str = "127.0.0.1:8090"
    login: str = "token"
    """`token`: one that is printed. `cluster`: bearer tokens that the API server reviews."""
    tls: ssl.SSLContext | None = None
    hosts: Sequence[str] = ()
    """Names besides `localhost` and IP addresses that browsers may call this server by."""
    scheduler_names: Sequence[str] = ("navarch",)
    names_given: bool = False
    """Whether the user named them; else those of the running scheduler are followed."""
    namespace_as_queue: bool = False
    scheduler: str = ""
    """Address of the scheduler's metrics port; empty: it is read through the API server."""
    state: StateAddress = field(default_factory=StateAddress)
    """Where the scheduler publishes its leader and its policy."""
    history: Path | None = None
    """Past run times, a basis of start times."""
    simulations: Path | None = None
    recordings: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    plugin_dirs: Sequence[Path] = ()
    """With these a working process finds the same cluster and the same plugins."""
    limits: WorkLimits = field(default_factory=WorkLimits)
    step: float = STEP
    """Seconds between two versions at least."""
    look_seconds: float = LOOK_SECONDS
    """Seconds between two looks at the published policy."""
    seed: int | None = None
    patience: Patience = field(default_factory=lambda: Patience(gather=GATHER_SECONDS))


@dataclass(frozen=True)
class Follow:
    """Follow the published policy. `state`: what is shown at first; None: nothing was published yet."""

    state: PublishedState | None


class WebServer:
    """`await server.start()`, then `await server.run()` until cancelled, then `await server.stop()`."""

    def __init__(
        self,
        endpoint: Endpoint,
        policy: Policy,
        registry: Registry,
        options: WebOptions,
        settings: Settings | None = None,
        access: AccessReview | None = None,
        follow: Follow | None = None,
    ) -> None:
        """`settings`: how objects are read; None: as policy and options say. `access`: reviews tokens; None: the API server does.
        `follow`: the published state that the policy comes from; None: the policy is the user's and stays."""
        self.options = options
        self._names = sorted(options.scheduler_names)
        self.client = Client(endpoint)
        self.watched = WatchedCluster(settings or settings_for(policy, self._names, options.namespace_as_queue))
        self.state = ClusterState(self.watched, policy, registry, frozenset(self._names), step=options.step)
        self.informers = self.watched.watch(self.client, random.Random(options.seed), options.patience)
        self._read_again = asyncio.Event()
        """Objects are read in another way from now on."""
        self.token_login = TokenLogin()
        self.login: Login = self.token_login
        if options.login == "cluster":
            self.login = ClusterLogin(access or AccessReview(self.client, time.monotonic), self._namespaces, time.monotonic)
        self.scheduler = SchedulerLink(self.client, options.scheduler, options.state)
        self.scheduler.on_change = lambda: self.state.add(Changed(cycles=True))
        self.scheduler.on_usage = self.state.add_usage
        self.starts = StartForecast(self.state, WorkRunner(options.limits), self._forecast, options.history)
        self.follower: PolicyFollower | None = None
        if follow is not None:
            self.follower = PolicyFollower(self.scheduler.pages, registry, self._use, follow.state, options.look_seconds)
        self.health = ApiServerHealth(self.client)
        context = Context(self.state, self.scheduler, self.login.viewer, self.health, self.starts.viewers.looked, self._reading)
        plugin_dirs = [str(each) for each in options.plugin_dirs]
        sources = Sources(self.client, self._explain, options.recordings, options.simulations, plugin_dirs)
        found = handlers(context, WorkRunner(options.limits), sources)
        self._app = application(self.login, HostCheck(options.hosts), found, lambda: self.state.ready)
        self._runner: web.AppRunner | None = None
        self._listener: Listener | None = None
        self.port = 0

    def _use(self, running: RunningPolicy) -> None:
        """Show the cluster under another policy."""
        self._names = sorted(self.options.scheduler_names if self.options.names_given else running.scheduler_names) or self._names
        settings = running.settings(self._names, self.options.namespace_as_queue)
        if settings == self.watched.settings:
            self.state.use_policy(running.policy)
            return
        self.watched = WatchedCluster(settings)
        self.informers = self.watched.watch(self.client, random.Random(self.options.seed), self.options.patience)
        self.state.begin_again(self.watched, running.policy, frozenset(self._names))
        self._read_again.set()

    def _explain(self) -> Explain:
        """How a working process reads the same cluster; the job is filled in for each request."""
        return Explain(job="", trials=0, seconds=0.0, **self._as_watched())

    def _forecast(self) -> Forecast:
        history = self.options.history
        return Forecast(seconds=self.options.limits.seconds, history=str(history or ""), **self._as_watched())

    def _as_watched(self) -> dict[str, Any]:
        options, settings = self.options, self.watched.settings
        return {
            "policy": dict(self.state.policy.document),
            "scheduler_names": self._names,
            "kubeconfig": str(options.kubeconfig or ""),
            "context": options.context or "",
            "namespace_as_queue": settings.namespace_as_queue,
            "node_pool_label_key": settings.node_pool_key,
            "partition_label_value": settings.node_pool if settings.node_pool_key else "",
            "plugin_dirs": [str(each) for each in options.plugin_dirs],
        }

    @property
    def address(self) -> str:
        """The address for the user's browser, with the token where it takes one."""
        host, _ = split_address(self.options.listen)
        shown = f"[{host}]" if host and ":" in host else host or "127.0.0.1"
        query = f"?token={self.token_login.token}" if self.login is self.token_login else ""
        return f"{'http' if self.options.tls is None else 'https'}://{shown}:{self.port}/{query}"

    def _reading(self) -> str:
        """What is missing while the cluster is being read."""
        if self.health.reason:
            return f"the cluster cannot be read: {self.health.reason}"
        missing = self.informers.group.failures
        if not missing:
            return "the cluster is being read"
        others = f"; {len(missing) - 1} other kinds cannot be read either" if len(missing) > 1 else ""
        return f"the cluster cannot be read: {missing[0]}{others}"

    def _namespaces(self) -> set[str]:
        rows = self.state.jobs.rows.values()
        return {*self.state.cluster.namespaces, *(row[NAMESPACE] for row in rows)}

    async def start(self) -> None:
        """Listen. Raises ListenError for an address that cannot be used."""
        host, port = split_address(self.options.listen)
        self._runner = web.AppRunner(
            self._app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0, keepalive_timeout=BOUNDS.silent_seconds
        )
        await self._runner.setup()
        self._listener = Listener(self._runner, host, port, self.options.tls, BOUNDS)
        try:
            await self._listener.start()
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(f"{self.options.listen}: expected an address that is free: {error.strerror or error}") from error
        self.port = self._listener.port

    async def run(self) -> None:
        """Read the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(), name="cluster")
            tasks.create_task(self.scheduler.run(), name="scheduler link")
            tasks.create_task(self.starts.run(), name="start times")
            tasks.create_task(self.health.run(), name="API server")
            if self.follower is not None:
                tasks.create_task(self.follower.run(), name="policy")

    async def _read(self) -> None:
        """Again from the beginning, whenever objects are to be read in another way."""
        while True:
            self._read_again.clear()
            reading = asyncio.create_task(self._read_once(), name="reading")
            again = asyncio.create_task(self._read_again.wait(), name="read again")
            try:
                await asyncio.wait((reading, again), return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    reading.result()
            finally:
                for task in (reading, again):
                    task.cancel()
                await asyncio.gather(reading, again, return_exceptions=True)

    async def _read_once(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.informers.run(), name="informers")
            tasks.create_task(self.state.run(self.informers.wait_for_sync), name="state")

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.stop()
        if self._runner is not None:
            await self._runner.cleanup()
        self.state.close()
        await self.client.close()
