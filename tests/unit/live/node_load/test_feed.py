"""The feed of node load: from the policy to the cluster, beside cycles."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from tests.worlds.kube.json_server import saying, serving

from navarch.engine.policy import Policy
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.live.node_load.feed import NodeLoadFeed, loads_of
from navarch.live.node_load.source import LoadConfig, read_config
from navarch.model.cluster import Cluster
from navarch.model.node_load import load_columns
from navarch.model.spec import NodeSpec
from navarch.offline.policies import read_policy

NOW = 5000.0
USAGE = [{"name": "usage"}]
RESCHEDULING = [{"name": "rescheduling", "arguments": {"metricsPeriod": "15m"}}]


def policy(plugins: list[dict[str, Any]], **metrics: Any) -> Policy:
    document = {"actions": "allocate", "tiers": [{"plugins": plugins}], "metrics": metrics}
    return read_policy(document, installed())


def test_load_is_fetched_only_where_a_plugin_reads_it() -> None:
    assert read_config(policy(USAGE)) is None
    assert read_config(policy([{"name": "gang"}], type="prometheus", address="http://p")) is None
    config = read_config(policy(RESCHEDULING, type="prometheus", address="http://p", interval="5s"))
    assert config == LoadConfig("prometheus", "http://p", interval=5.0, periods=("10m", "15m"))


def test_a_node_without_figures_is_left_out() -> None:
    assert loads_of(["n2"], LoadConfig("prometheus"), [{"n2": (None, None)}], NOW) == {}


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_figures_reach_the_cluster_and_failures_leave_them() -> None:
    cluster, changes, broken = Cluster(), list[int](), list[bool]()
    cluster.put_node(NodeSpec("n1"))

    async def answer(request: web.Request, body: Any) -> web.StreamResponse:
        if broken:
            return web.Response(status=500)
        buckets = [{"key": "n1", "cpu": {"value": 0.25}, "mem": {"value": 0.5}}]
        return web.json_response({"aggregations": {"hosts": {"buckets": buckets}}})

    async with serving(answer) as served, Client(Endpoint(served.address)) as client:
        feed = NodeLoadFeed(client, lambda: cluster, lambda: NOW, lambda: changes.append(1))
        await feed.open(policy(USAGE, type="elasticsearch", address=served.address, interval="10ms"))
        await until(lambda: changes)
        assert load_columns(cluster.snapshot(), "10m").percent[:, 0].tolist() == [25.0, 50.0]
        broken.append(True)
        await until(lambda: "status 500" in feed.problem())
        assert load_columns(cluster.snapshot(), "10m").percent[:, 0].tolist() == [25.0, 50.0]
        broken.clear()
        await until(lambda: not feed.problem())
        await feed.open(policy(USAGE))
        assert load_columns(cluster.snapshot(), "10m").percent[:, 0].tolist() == [0.0, 0.0]
        await feed.close()


async def test_a_source_that_cannot_be_opened_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(saying({})) as served, Client(Endpoint(served.address)) as client:
        feed = NodeLoadFeed(client, Cluster, lambda: NOW, lambda: None)
        await feed.open(policy(USAGE, type="prometheus"))
        await feed.close()
    assert "metrics.address: found nothing" in caplog.text
