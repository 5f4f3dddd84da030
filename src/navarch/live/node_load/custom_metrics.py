"""The load of nodes through the custom metrics API of the cluster, which the Prometheus adapter serves.

The adapter names its metrics in its own rules: `node_cpu_usage_avg` and `node_memory_usage_avg`, fractions of the capacity. They are
the average that the adapter computes, so they count for every period.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from navarch.kube.client import Client
from navarch.kube.errors import KubeError, NotFound
from navarch.live.node_load.source import TIMEOUT, LoadError, Percents
from navarch.model.quantity import Quantity, QuantityError, parse_nano

GROUP: Final = "/apis/custom.metrics.k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
CPU, MEMORY = "node_cpu_usage_avg", "node_memory_usage_avg"


class _Object(msgspec.Struct, frozen=True):
    name: str = ""


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    described_object: _Object = _Object()
    value: str | int | float = 0


class _Values(msgspec.Struct, frozen=True):
    items: list[_Value] = []


_DECODER: Final = msgspec.json.Decoder(_Values)


class CustomMetricsLoad:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._version = VERSIONS[0]

    async def fetch(self, nodes: Sequence[str], period: str, now: float) -> Percents:
        cpu, memory = await asyncio.gather(self._metric(CPU), self._metric(MEMORY))
        return {node: (cpu.get(node), memory.get(node)) for node in nodes}

    async def close(self) -> None:
        """The client belongs to the scheduler."""

    async def _metric(self, name: str) -> dict[str, float]:
        """Node -> percent."""
        for version in dict.fromkeys((self._version, *VERSIONS)):
            path = f"{GROUP}/{version}/nodes/*/{name}"
            try:
                body = await self._client.transport.request("GET", path, timeout=TIMEOUT, attempts=1)
            except NotFound:
                continue
            except KubeError as error:
                raise LoadError(f"custom metrics API: {error}") from None
            self._version = version
            try:
                return {each.described_object.name: 100 * _number(each.value) for each in _DECODER.decode(body).items}
            except (msgspec.DecodeError, UnicodeDecodeError, QuantityError) as error:
                raise LoadError(f"custom metrics API: {path}: found {body[:80]!r}, expected a MetricValueList ({error})") from None
        raise LoadError(f"custom metrics API: the API server does not serve {GROUP}/{VERSIONS[0]}/nodes/*/{name}")


def _number(value: Quantity) -> float:
    return parse_nano(value) / 1e9
