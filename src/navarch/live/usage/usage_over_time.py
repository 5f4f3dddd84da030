"""Usage over time, if the policy asks for it: opened with the policy, recorded after cycles, put into the cluster.

The leader starts it and records what queues hold, which the scheduler's own history needs. The newest answer becomes an object of
the cluster, so that a recorded cycle replays with it. The modules beside this one know where usage comes from.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from navarch.engine.record import CycleRecord
from navarch.kube.supervision import Supervise, run_once
from navarch.live.usage.feed import UsageFeed, open_source
from navarch.live.usage.history import HistorySource
from navarch.live.usage.params import UsageConfig, UsageConfigError, read_config
from navarch.live.usage.source import UsageError, put_usage
from navarch.model.cluster import Cluster

log = logging.getLogger(__name__)


class UsageOverTime:
    def __init__(self, clock: Callable[[], float], supervise: Supervise = run_once) -> None:
        self._clock = clock
        self._supervise = supervise
        self._config: UsageConfig | None = None
        self._feed: UsageFeed | None = None

    async def open(self, usage: Mapping[str, object]) -> None:
        """Open the source that the policy names. A source that cannot be opened is reported, and scheduling goes on."""
        try:
            config = read_config(usage, os.environ)
        except UsageConfigError as error:
            log.error("usage over time is left out: %s", error)
            config = None
        if config == self._config and (self._feed is not None or config is None):
            return
        await self.close()
        self._config = config
        if config is None:
            return
        try:
            self._feed = UsageFeed(open_source(config), config.params, self._clock, self._supervise)
        except (UsageConfigError, UsageError) as error:
            log.error("usage over time is left out: %s", error)
            return
        self._feed.start()

    async def close(self) -> None:
        if self._feed is not None:
            feed, self._feed = self._feed, None
            await feed.close()

    def put_into(self, cluster: Cluster) -> None:
        """The newest answer, old as it may be."""
        if self._feed is not None:
            put_usage(cluster, self._feed.reading().usage)

    def record(self, decided: CycleRecord, cluster: Cluster) -> None:
        """What queues hold from now on, for a history of our own."""
        if self._feed is None or not isinstance(self._feed.source, HistorySource):
            return
        held = {figures.queue: _by_resource(figures.allocated) for figures in decided.queues}
        total = cluster.nodes.allocatable.sum(axis=1)
        capacity = {name: float(total[i]) for i, name in enumerate(cluster.space.names) if i < len(total)}
        self._feed.source.record(self._clock(), held, _by_resource(capacity))

    def problem(self) -> str:
        """What is wrong with it, in a sentence; empty while all is well."""
        return "" if self._feed is None else str(self._feed.reading())


def _by_resource(amounts: Mapping[str, float]) -> dict[str, float]:
    """cpu, memory, and all kinds of GPUs together.

    >>> _by_resource({"cpu": 2000, "nvidia.com/gpu": 1000, "pods": 3})
    {'cpu': 2000.0, 'gpu': 1000.0, 'memory': 0.0}
    """
    gpus = sum(amount for name, amount in amounts.items() if name.endswith("/gpu"))
    return {"cpu": float(amounts.get("cpu", 0)), "gpu": float(gpus), "memory": float(amounts.get("memory", 0))}
