"""The load of nodes out of Elasticsearch, from the documents of Metricbeat.

One search covers many nodes: documents of the period are grouped by the name of the host, and averaged. The figures are fractions.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from navarch.kube.json_http import JsonServer, ServerError, unverified
from navarch.live.node_load.source import TIMEOUT, LoadConfig, LoadError, Percents

CPU, MEMORY = "host.cpu.usage", "system.memory.actual.used.pct"
AT_ONCE: Final = 1000
"""Nodes of one search."""


class _Average(msgspec.Struct, frozen=True):
    value: float | None = None


class _Bucket(msgspec.Struct, frozen=True):
    key: str
    cpu: _Average = _Average()
    mem: _Average = _Average()


class _Hosts(msgspec.Struct, frozen=True):
    buckets: list[_Bucket] = []


class _Aggregations(msgspec.Struct, frozen=True):
    hosts: _Hosts


class _Answer(msgspec.Struct, frozen=True):
    aggregations: _Aggregations


_DECODER: Final = msgspec.json.Decoder(_Answer)


class ElasticsearchLoad:
    def __init__(self, config: LoadConfig) -> None:
        if not config.address:
            raise LoadError("metrics.address: found nothing, expected the URL of the Elasticsearch server")
        self._config = config
        headers = {}
        if config.username:
            account = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
            headers["Authorization"] = f"Basic {account}"
        tls = unverified() if config.insecure else None
        self._server = JsonServer(config.address, timeout=TIMEOUT, tls=tls, headers=headers)

    async def fetch(self, nodes: Sequence[str], period: str, now: float) -> Percents:
        found: dict[str, tuple[float | None, float | None]] = dict.fromkeys(nodes, (None, None))
        for start in range(0, len(nodes), AT_ONCE):
            some = list(nodes[start : start + AT_ONCE])
            for bucket in await self._search(some, period):
                if bucket.key in found:
                    found[bucket.key] = _percent(bucket.cpu.value), _percent(bucket.mem.value)
        return found

    async def close(self) -> None:
        await self._server.close()

    async def _search(self, nodes: list[str], period: str) -> list[_Bucket]:
        body = msgspec.json.encode(self.query(nodes, period))
        try:
            answer = await self._server.post(f"{quote(self._config.index, safe='*,')}/_search", body)
        except ServerError as error:
            raise LoadError(f"Elasticsearch at {error}") from None
        try:
            return _DECODER.decode(answer).aggregations.hosts.buckets
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            where = self._server.name
            raise LoadError(f"Elasticsearch at {where}: found {answer[:80]!r}, expected the answer to a search ({error})") from None

    def query(self, nodes: list[str], period: str) -> dict[str, Any]:
        """The body of a search over these nodes."""
        field = self._config.host_field
        recent = {"range": {"@timestamp": {"gte": f"now-{period}", "lt": "now"}}}
        averages = {"cpu": {"avg": {"field": CPU}}, "mem": {"avg": {"field": MEMORY}}}
        return {
            "size": 0,
            "query": {"bool": {"must": [recent, {"terms": {field: nodes}}]}},
            "aggs": {"hosts": {"terms": {"field": field, "size": len(nodes)}, "aggs": averages}},
        }


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction
