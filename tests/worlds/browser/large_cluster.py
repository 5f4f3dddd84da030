"""A cluster of 5,000 nodes on the embedded API server, and the dashboard of it, in a thread. No scheduler runs: pods are bound from the
beginning, or wait. So the same objects are there in each run, and the dashboard has no scheduler to ask."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.worlds.embedded.server import ServerThread

from navarch.embedded.api.server import ApiServer
from navarch.embedded.node_sets import NodeSet
from navarch.installed import installed
from navarch.kube.connect import connect
from navarch.object_types import Manifest
from navarch.offline.plan import read_policy
from navarch.web.server import WebOptions, WebServer

NODES = 5_000
RUNNING = 2_000
WAITING = 500
GROUP = "scheduling.k8s.io/group-name"


@contextlib.contextmanager
def large_cluster(folder: Path) -> Iterator[str]:
    """The address of the dashboard."""
    thread = ServerThread(taint_new_nodes=False)
    with thread as server:
        thread.run(lambda: _fill(server))
        config = server.kubeconfig(folder / "kubeconfig")
        registry = installed(())

        async def start() -> tuple[WebServer, asyncio.Task[None]]:
            options = WebOptions(listen="127.0.0.1:0")
            web = WebServer(connect(config, None), read_policy("navarch", registry), registry, options, "navarch")
            await web.start()
            return web, asyncio.create_task(web.run())

        web, running = thread.run(start)

        async def stop() -> None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await web.stop()

        try:
            yield web.address
        finally:
            thread.run(stop)


def _fill(server: ApiServer) -> None:
    operations = server.operations

    def create(resource: str, namespace: str, body: Manifest) -> None:
        operations.create(operations.kind(resource), namespace, body)

    nodes = list(NodeSet(name="gpu", count=NODES, gpus=8, zones=4, racks=160).manifests())
    for node in nodes:
        create("nodes", "", node)
    for namespace in ("vision", "speech"):
        create("namespaces", "", {"metadata": {"name": namespace}})
        queue: Manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": namespace}}
        create("queues.scheduling.volcano.sh", "", {**queue, "spec": {"weight": 1}})
    for number in range(RUNNING + WAITING):
        namespace = ("vision", "speech")[number % 2]
        node_name = nodes[number]["metadata"]["name"] if number < RUNNING else ""
        create("pods", namespace, _pod(f"train-{number:04d}", namespace, node_name))


def _pod(name: str, queue: str, node: str) -> Manifest:
    resources: Manifest = {"limits": {"nvidia.com/gpu": "6"}} if node else {"limits": {"nvidia.com/gpu": "9"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.volcano.sh/queue-name": queue}, "labels": {"user": "ann"}},
        "spec": {
            "schedulerName": "navarch",
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "main", "image": "example.com/train:1", "resources": resources}],
        },
    }
