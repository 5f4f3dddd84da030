"""A cluster of any size on the embedded API server, and the dashboard of it, in a thread. No scheduler runs: pods are bound from the
beginning, or wait. So the same objects are there in each run, and the dashboard has no scheduler to ask."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.worlds.browser.api import until
from tests.worlds.embedded.server import ServerThread

from navarch.embedded.api.server import ApiServer
from navarch.embedded.node_sets import NodeSet
from navarch.installed import installed
from navarch.kube.connect import connect
from navarch.object_types import Manifest
from navarch.offline.policies import read_policy
from navarch.simulator.report.write import write_report
from navarch.simulator.simulate import simulate
from navarch.web.server import WebOptions, WebServer

T = TypeVar("T")


@dataclass(frozen=True)
class Size:
    """Pods that run have six of the eight GPUs of a node each; those that wait ask for `asked`. `walltime`: seconds after which all of
    them end, so that start times can be told; 0: none is known."""

    nodes: int
    running: int
    waiting: int
    asked: int = 9
    walltime: int = 0


@contextlib.contextmanager
def served_cluster(folder: Path, size: Size) -> Iterator[str]:
    """The address of the dashboard, when it has read the cluster."""
    thread = ServerThread(taint_new_nodes=False)
    with thread as server:
        thread.run(lambda: _fill(server, size))
        config = server.kubeconfig(folder / "kubeconfig")
        registry = installed(())

        async def start() -> tuple[WebServer, asyncio.Task[None]]:
            options = WebOptions(listen="127.0.0.1:0", simulations=_simulations(folder), kubeconfig=config)
            web = WebServer(connect(config, None), read_policy("navarch", registry), registry, options)
            await web.start()
            return web, asyncio.create_task(web.run())

        web, running = _on(thread, start())

        async def stop() -> None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await web.stop()

        try:
            until(web.address, "overview", lambda found: found["nodes"]["total"] == size.nodes)
            if size.walltime:
                _on(thread, web.starts.forecast())
            yield web.address
        finally:
            _on(thread, stop())


def _on(thread: ServerThread, work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine on the loop of the thread."""
    assert thread.loop is not None
    return asyncio.run_coroutine_threadsafe(work, thread.loop).result(120)


def _simulations(folder: Path) -> Path:
    """A folder with the report of one short simulation, `two-policies`. Its last job is larger than the cluster."""
    trace = folder / "trace.jsonl"
    kinds = [
        {"duration": 600, "pods": [{"count": 1, "gpus": 4}], "queue": "vision"},
        {"duration": 1800, "pods": [{"count": 2, "gpus": 8}], "queue": "speech"},
    ]
    lines = [{"name": f"job-{i}", "submit": f"2026-01-01T08:{i:02d}:00Z", **kinds[i % 2]} for i in range(30)]
    lines.append({"name": "huge", "submit": "2026-01-01T09:00:00Z", "duration": 60, "pods": [{"gpus": 9}]})
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reports = folder / "reports"
    write_report(simulate(f"jsonl:{trace}", "a=2x8gpu", ["fifo", "easy"]), reports / "two-policies", "two policies")
    return reports


def _fill(server: ApiServer, size: Size) -> None:
    operations = server.operations

    def create(resource: str, namespace: str, body: Manifest) -> None:
        operations.create(operations.kind(resource), namespace, body)

    nodes = list(NodeSet(name="gpu", count=size.nodes, gpus=8, zones=4, racks=-(-size.nodes // 32)).manifests())
    for node in nodes:
        create("nodes", "", node)
    for namespace in ("vision", "speech"):
        create("namespaces", "", {"metadata": {"name": namespace}})
        queue: Manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": namespace}}
        create("queues.scheduling.volcano.sh", "", {**queue, "spec": {"weight": 1}})
    for number in range(size.running + size.waiting):
        namespace = ("vision", "speech")[number % 2]
        node_name = nodes[number]["metadata"]["name"] if number < size.running else ""
        create("pods", namespace, _pod(f"train-{number:04d}", namespace, node_name, size))


def _pod(name: str, queue: str, node: str, size: Size) -> Manifest:
    resources: Manifest = {"limits": {"nvidia.com/gpu": "6" if node else str(size.asked)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.volcano.sh/queue-name": queue}, "labels": {"user": "ann"}},
        "spec": {
            "schedulerName": "navarch",
            **({"nodeName": node} if node else {}),
            **({"activeDeadlineSeconds": size.walltime} if size.walltime else {}),
            "containers": [{"name": "main", "image": "example.com/train:1", "resources": resources}],
        },
    }
