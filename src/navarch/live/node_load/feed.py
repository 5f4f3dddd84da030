"""The load of nodes at hand: asks the server that the policy names, every interval, and lays the answers into the cluster.

A cycle never waits for the server. It works with the last answer, and figures of a server that stopped answering grow old: rules do
not count them after some minutes. What went wrong is logged once for as long as it lasts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from navarch.engine.policy import Policy
from navarch.kube.client import Client
from navarch.kube.supervision import Supervise, run_once
from navarch.live.node_load.custom_metrics import CustomMetricsLoad
from navarch.live.node_load.elasticsearch import ElasticsearchLoad
from navarch.live.node_load.prometheus import PrometheusLoad
from navarch.live.node_load.source import LoadConfig, LoadError, LoadSource, Percents, read_config
from navarch.live.ops.fetch_errors import FetchErrors
from navarch.model.cluster import Cluster
from navarch.model.node_load import NodeLoad, put_loads

log = logging.getLogger(__name__)


class NodeLoadFeed:
    """`clock` gives seconds since the epoch. `on_change` is called after figures of the cluster changed."""

    def __init__(
        self,
        client: Client,
        cluster: Callable[[], Cluster],
        clock: Callable[[], float],
        on_change: Callable[[], None],
        supervise: Supervise = run_once,
    ) -> None:
        self._supervise = supervise
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._on_change = on_change
        self._config: LoadConfig | None = None
        self._source: LoadSource | None = None
        self._task: asyncio.Task[None] | None = None
        self._errors = FetchErrors(log, "the load of nodes")

    async def open(self, policy: Policy) -> None:
        """Ask the server that this policy names from now on. A configuration that cannot be used is logged, and scheduling goes on."""
        config = read_config(policy)
        if config == self._config:
            return
        await self.close()
        self._config = config
        if config is None:
            put_loads(self._cluster(), {})
            return
        try:
            self._source = open_source(config, self._client)
        except LoadError as error:
            log.error("the load of nodes is not fetched: %s", error)
            return
        self._task = asyncio.create_task(self._supervised(config, self._source), name="load of nodes")

    async def close(self) -> None:
        self._config = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._source is not None:
            source, self._source = self._source, None
            await source.close()

    def problem(self) -> str:
        """What is wrong, in a sentence; empty while all is well."""
        return self._errors.text

    async def _supervised(self, config: LoadConfig, source: LoadSource) -> None:
        await self._supervise("load of nodes", lambda: self._run(config, source))

    async def _run(self, config: LoadConfig, source: LoadSource) -> None:
        while True:
            await self.fetch(config, source)
            await asyncio.sleep(config.interval)

    async def fetch(self, config: LoadConfig, source: LoadSource) -> bool:
        """One attempt. On failure the figures stay as they are."""
        cluster, asked = self._cluster(), self._clock()
        nodes = sorted(cluster.nodes.rows.of)

        async def fetched() -> list[Percents]:
            return [await source.fetch(nodes, period, asked) for period in config.periods]

        answers = await self._errors.attempt(LoadError, fetched())
        if answers is None:
            return False
        if put_loads(self._cluster(), loads_of(nodes, config, answers, asked)):
            self._on_change()
        return True


def loads_of(nodes: Sequence[str], config: LoadConfig, answers: Sequence[Percents], now: float) -> dict[str, NodeLoad]:
    """The figures of each node over the periods. A node without any figure is left out."""
    found: dict[str, NodeLoad] = {}
    for node in nodes:
        cpu: dict[str, float] = {}
        memory: dict[str, float] = {}
        for period, answer in zip(config.periods, answers, strict=True):
            of_cpu, of_memory = answer.get(node, (None, None))
            if of_cpu is not None:
                cpu[period] = of_cpu
            if of_memory is not None:
                memory[period] = of_memory
        if cpu or memory:
            found[node] = NodeLoad(cpu, memory, now)
    return found


def open_source(config: LoadConfig, client: Client) -> LoadSource:
    """The source that a policy names. Raises LoadError."""
    match config.type:
        case "prometheus":
            return PrometheusLoad(config)
        case "prometheus_adaptor":
            return CustomMetricsLoad(client)
        case "elasticsearch":
            return ElasticsearchLoad(config)
    raise LoadError(f"metrics.type: found {config.type!r}, expected prometheus, prometheus_adaptor or elasticsearch")
