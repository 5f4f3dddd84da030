"""Sources of node load against servers that speak their API."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from tests.worlds.kube.json_server import Handler, saying, serving

from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.live.node_load.custom_metrics import CustomMetricsLoad
from navarch.live.node_load.elasticsearch import ElasticsearchLoad
from navarch.live.node_load.prometheus import PrometheusLoad
from navarch.live.node_load.source import LoadConfig, LoadError, Percents

NOW = 1_700_000_000.0


def vector(*samples: tuple[str, str]) -> dict[str, Any]:
    result = [{"metric": {"instance": node}, "value": [NOW, value]} for node, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


async def prometheus(handler: Handler) -> Percents:
    async with serving(handler) as served:
        source = PrometheusLoad(LoadConfig("prometheus", served.address))
        try:
            return await source.fetch(["n1", "n2"], "10m", NOW)
        finally:
            await source.close()


async def test_prometheus_is_asked_once_a_resource_for_all_nodes() -> None:
    asked: list[str] = []

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        query = parse_qs(body)["query"][0]
        asked.append(query)
        found = vector(("n1", "12.5"), ("other", "3")) if "cpu" in query else vector(("n1", "40"), ("n2", "NaN"))
        return web.json_response(found)

    assert await prometheus(answer) == {"n1": (12.5, 40.0), "n2": (None, None)}
    assert len(asked) == 2
    assert any('rate(node_cpu_seconds_total{mode="idle"}[5m])' in query and "[10m:30s]" in query for query in asked)
    assert any("node_memory_MemAvailable_bytes" in query and "[10m:30s]" in query for query in asked)


@pytest.mark.parametrize(
    "body", [b"no json", {"status": "error", "errorType": "bad_data", "error": "parse error"}, vector(("n1", "x"))]
)
async def test_a_malformed_answer_of_prometheus_is_an_error(body: Any) -> None:
    with pytest.raises(LoadError):
        await prometheus(saying(body))


def elasticsearch(address: str, **more: Any) -> ElasticsearchLoad:
    return ElasticsearchLoad(LoadConfig("elasticsearch", address, **more))


async def test_elasticsearch_averages_by_host() -> None:
    buckets = [{"key": "n1", "doc_count": 3, "cpu": {"value": 0.25}, "mem": {"value": 0.5}}]
    buckets.append({"key": "n2", "doc_count": 0, "cpu": {"value": None}, "mem": {"value": 0.1}})
    async with serving(saying({"took": 1, "aggregations": {"hosts": {"buckets": buckets}}})) as served:
        source = elasticsearch(served.address, username="me", password="secret", index="mine-*", host_field="node")
        found = await source.fetch(["n1", "n2", "n3"], "10m", NOW)
        await source.close()
    assert found == {"n1": (25.0, 50.0), "n2": (None, 10.0), "n3": (None, None)}
    ((method, path, body),) = served.requests
    assert (method, path) == ("POST", "/mine-*/_search")
    recent, hosts = body["query"]["bool"]["must"]
    assert recent == {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}} and hosts == {"terms": {"node": ["n1", "n2", "n3"]}}
    assert body["aggs"]["hosts"]["aggs"]["cpu"] == {"avg": {"field": "host.cpu.usage"}}
    assert served.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize("body", [b"no json", {"aggregations": {}}, {"error": "index_not_found"}])
async def test_a_malformed_answer_of_elasticsearch_is_an_error(body: Any) -> None:
    async with serving(saying(body)) as served:
        source = elasticsearch(served.address)
        with pytest.raises(LoadError, match="expected the answer to a search"):
            await source.fetch(["n1"], "10m", NOW)
        await source.close()


def values(*items: tuple[str, Any]) -> dict[str, Any]:
    found = [
        {"describedObject": {"kind": "Node", "name": node}, "timestamp": "2026-01-01T00:00:00Z", "value": value}
        for node, value in items
    ]
    return {"kind": "MetricValueList", "items": found}


async def custom(handler: Handler) -> tuple[Percents, list[str]]:
    async with serving(handler) as served, Client(Endpoint(served.address)) as client:
        found = await CustomMetricsLoad(client).fetch(["n1", "n2"], "10m", NOW)
    return found, [path for _, path, _ in served.requests]


async def test_the_custom_metrics_api_has_fractions() -> None:
    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        return web.json_response(values(("n1", "250m"), ("n2", "1")) if "cpu" in request.path else values(("n1", "0.5")))

    found, paths = await custom(answer)
    assert found == {"n1": (25.0, 50.0), "n2": (100.0, None)}
    assert sorted(paths) == [
        "/apis/custom.metrics.k8s.io/v1beta2/nodes/*/node_cpu_usage_avg",
        "/apis/custom.metrics.k8s.io/v1beta2/nodes/*/node_memory_usage_avg",
    ]


async def test_an_older_version_of_the_custom_metrics_api_is_found() -> None:
    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        return web.json_response(values(("n1", "1")), status=404 if "v1beta2" in request.path else 200)

    found, _ = await custom(answer)
    assert found["n1"] == (100.0, 100.0)


@pytest.mark.parametrize("body", [b"no json", {"items": [{"describedObject": {"name": "n1"}, "value": "much"}]}])
async def test_a_malformed_answer_of_the_custom_metrics_api_is_an_error(body: Any) -> None:
    with pytest.raises(LoadError, match="expected a MetricValueList"):
        await custom(saying(body))


@pytest.mark.parametrize("kind", ["prometheus", "elasticsearch"])
def test_a_source_without_an_address(kind: str) -> None:
    with pytest.raises(LoadError, match=r"metrics\.address: found"):
        (PrometheusLoad if kind == "prometheus" else ElasticsearchLoad)(LoadConfig(kind))
