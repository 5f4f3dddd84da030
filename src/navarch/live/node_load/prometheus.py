"""The load of nodes out of a Prometheus server, from the metrics of node-exporter.

One query a resource covers all nodes. The label `instance` is the name of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from navarch.kube.json_http import unverified
from navarch.live.node_load.source import TIMEOUT, LoadConfig, LoadError, Percents, percent
from navarch.live.usage.prometheus import PrometheusClient, PrometheusSample
from navarch.live.usage.source import UsageError

INSTANCE = "instance"
CPU = 'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)[%s:30s])'
MEMORY = "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[%s:30s])"


class PrometheusLoad:
    def __init__(self, config: LoadConfig) -> None:
        if not config.address:
            raise LoadError("metrics.address: found nothing, expected the URL of the Prometheus server")
        self._client = PrometheusClient(config.address, TIMEOUT, unverified() if config.insecure else None)

    async def fetch(self, nodes: Sequence[str], period: str, now: float) -> Percents:
        try:
            cpu, memory = await asyncio.gather(self._client.query(CPU % period, now), self._client.query(MEMORY % period, now))
        except UsageError as error:
            raise LoadError(str(error)) from None
        cpus, memories = _by_node(cpu), _by_node(memory)
        return {node: (cpus.get(node), memories.get(node)) for node in nodes}

    async def close(self) -> None:
        await self._client.close()


def _by_node(samples: list[PrometheusSample]) -> dict[str, float | None]:
    """The first sample of each node."""
    found: dict[str, float | None] = {}
    for sample in samples:
        try:
            found.setdefault(sample.metric.get(INSTANCE, ""), percent(float(sample.value[1])))
        except ValueError:
            raise LoadError(f"Prometheus: {sample.metric}: found {sample.value[1]!r}, expected a number") from None
    return found
