"""Usage from a Prometheus server, by its HTTP API.

What queues hold and what the cluster has are each summed over the window, at one resolution and with the same decay. The first sum
is divided by the second. Each kind of window becomes one instant query over a sub-query: a window that began at a known time is as
long as the time since then. Several series of one queue (a restarted exporter, two replicas of it) count once at each instant.

The environment names the proxy, as for the API server (`kube/proxy.py`).
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import msgspec

from navarch.kube.errors import ConfigError
from navarch.kube.json_http import MOST_BYTES, ServerError, read_bounded, without_account
from navarch.kube.proxy import Proxy, choose_proxy
from navarch.live.usage.params import UsageParams
from navarch.live.usage.source import RESOURCES, Usage, UsageError, ratio

QUEUE_LABEL: Final = "queue_name"


class PrometheusSample(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: list[PrometheusSample]


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: str = ""
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


_DECODER: Final = msgspec.json.Decoder(_Answer, strict=False)


class PrometheusClient:
    """Instant queries. `address` is the server's, with whatever path it lives under: `http://prometheus:9090`."""

    def __init__(self, address: str, timeout: float, tls: ssl.SSLContext | None = None) -> None:
        self.address = address.rstrip("/")
        self.host = without_account(self.address)
        """The address for messages: without user and password."""
        self._timeout = timeout
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._proxy: Proxy | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _through(self) -> Proxy | None:
        try:
            return choose_proxy(self.host, os.environ)
        except (ConfigError, ValueError) as error:  # a variable, or the address itself
            raise UsageError(f"Prometheus at {self.host}: {error}") from None

    async def query(self, expression: str, now: float) -> list[PrometheusSample]:
        """The samples of a vector. Raises UsageError."""
        timeout = self._timeout
        form: Mapping[str, Any] = {"query": expression, "time": f"{now:.3f}", "timeout": _milliseconds(timeout)}
        if self._session is None:
            self._proxy = self._through()
            self._session = aiohttp.ClientSession()
        proxy = self._proxy
        account = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization else {}
        tunnel = self.address.lower().startswith("https:")  # a proxy does not see what is inside a tunnel
        try:
            async with self._session.post(
                f"{self.address}/api/v1/query",
                data=form,
                timeout=aiohttp.ClientTimeout(total=timeout),
                proxy=str(proxy) if proxy else None,
                proxy_headers=account if tunnel else None,
                headers=None if tunnel else account,
                ssl=self._tls if self._tls is not None else True,
            ) as response:
                body, status = await read_bounded(response, MOST_BYTES, f"Prometheus at {self.host}"), response.status
        except TimeoutError:
            raise UsageError(f"Prometheus at {self.host}: no answer within {timeout:g} s to {expression}") from None
        except aiohttp.ClientError as error:
            raise UsageError(f"Prometheus at {self.host}: {error}") from error
        except ServerError as error:
            raise UsageError(str(error)) from None
        try:
            answer = _DECODER.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(
                f"Prometheus at {self.host}: status {status}, found {body[:80]!r}, expected the answer to a query ({error})"
            ) from None
        if answer.status != "success" or answer.data is None:
            raise UsageError(f"Prometheus at {self.host}: {answer.error_type}: {answer.error} in {expression}")
        if answer.data.result_type != "vector":
            raise UsageError(f"Prometheus at {self.host}: found a {answer.data.result_type}, expected a vector: {expression}")
        return answer.data.result


class PrometheusSource:
    """`address`: see `PrometheusClient`."""

    def __init__(self, address: str, params: UsageParams) -> None:
        self.client = PrometheusClient(address, params.query_timeout)
        self.params = params

    async def fetch(self, now: float) -> Usage:
        expressions = [
            expression
            for resource in RESOURCES
            for expression in (
                self.held(f"max by ({QUEUE_LABEL}) ({self.params.metrics[f'{resource}AllocationMetric']})", now),
                self.held(self.params.metrics[f"{resource}CapacityMetric"], now),
            )
        ]
        answers = await asyncio.gather(*(self.client.query(expression, now) for expression in expressions))
        usage: dict[str, dict[str, float]] = {}
        for i, resource in enumerate(RESOURCES):
            capacity = sum(float(sample.value[1]) for sample in answers[2 * i + 1])
            for sample in answers[2 * i]:
                queue = sample.metric.get(QUEUE_LABEL)
                if queue:
                    usage.setdefault(queue, {})[resource] = ratio(float(sample.value[1]), capacity)
        return usage

    def held(self, metric: str, now: float) -> str:
        """The query for a metric's sum over the window that ends at `now`."""
        window = self.params.window
        if window.half_life is not None:
            metric = f"({metric}) * 0.5 ^ (({now:.3f} - time()) / {window.half_life:.3f})"
        length = max(now - window.begin(now), self.params.resolution)
        return f"sum_over_time(({metric})[{_milliseconds(length)}:{_milliseconds(self.params.resolution)}])"

    async def close(self) -> None:
        await self.client.close()


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"
