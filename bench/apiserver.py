"""The embedded API server beside a real kube-apiserver: creates, binds and watch events a second, and memory.

    python -m bench.apiserver               3,000 pods, ours in memory and durable, and the real one where `make envtest` built it
    python -m bench.apiserver --large       5,000 nodes and 50,000 pods in ours: full list and memory
    python -m bench.apiserver --alone       without the real one

Every server runs in a process of its own and is driven by the same client over HTTPS with 32 connections.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import aiohttp

from bench.report import Figure, show
from navarch.embedded.api.server import ApiServer

CONNECTIONS = 32
WATCHERS = 10
PODS = "/api/v1/namespaces/default/pods"


@dataclass
class Target:
    """A server to drive."""

    url: str
    token: str
    ca_pem: str
    processes: list[int] = field(default_factory=list)

    def memory_mib(self) -> float:
        """Resident memory of its processes."""
        kib = 0
        for process in self.processes:
            status = Path(f"/proc/{process}/status").read_text()
            kib += int(status.split("VmRSS:")[1].split()[0])
        return kib / 1024


@dataclass
class Measured:
    """Microseconds each, and megabytes."""

    create: float = 0.0
    bind: float = 0.0
    event: float = 0.0
    list_pod: float = 0.0
    memory: float = 0.0
    pods: int = 0


def pod(name: str) -> bytes:
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "resources": {"requests": {"cpu": "900m", "memory": "1Gi"}},
        "env": [{"name": "RANK", "value": "0"}],
    }
    metadata = {"name": name, "labels": {"app": "bench", "job": name[:-2]}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}).encode()


def node(name: str) -> bytes:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}).encode()


def binding(name: str, to: str) -> bytes:
    return json.dumps({"metadata": {"name": name}, "target": {"kind": "Node", "name": to}}).encode()


# -- servers --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def embedded(data_dir: str = "") -> Iterator[Target]:
    """Our server in a child process."""
    command = [sys.executable, "-m", "bench.apiserver", "--serve", data_dir]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        told = json.loads(child.stdout.readline())
        yield Target(told["url"], told["token"], told["ca"], [child.pid])
    finally:
        child.terminate()
        child.wait()


async def serve(data_dir: str) -> None:
    """What the child does."""
    async with ApiServer(data_dir=Path(data_dir) if data_dir else None, taint_new_nodes=False) as server:
        print(json.dumps({"url": server.url, "token": server.token, "ca": server.ca_pem.decode()}), flush=True)
        await asyncio.Event().wait()


@contextlib.contextmanager
def real() -> Iterator[Target | None]:
    """A real kube-apiserver with its etcd, or None where there is none."""
    from tests.envtest import assets
    from tests.envtest.server import KubeApiServer

    try:
        binaries = assets.find()
    except assets.Unavailable:
        yield None
        return
    with KubeApiServer(binaries=binaries) as server:
        yield Target(server.url, server.token, server.ca_file.read_text(), server.process_ids)


# -- client ---------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def session_to(target: Target) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cadata=target.ca_pem)
    connector = aiohttp.TCPConnector(limit=CONNECTIONS + WATCHERS, ssl=context)
    headers = {"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"}
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(target.url, connector=connector, headers=headers, timeout=timeout) as session:
        yield session


async def spread(count: int, work: Callable[[int], Awaitable[None]]) -> float:
    """Run work(0..count-1) over all connections; seconds."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    started = perf_counter()
    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
    return perf_counter() - started


async def post(session: aiohttp.ClientSession, path: str, body: bytes) -> None:
    async with session.post(path, data=body) as answer:
        if answer.status != 201:
            raise RuntimeError(f"POST {path}: {answer.status} {await answer.text()}")
        await answer.read()


async def measure(target: Target, pods: int, nodes: int) -> Measured:
    found = Measured(pods=pods)
    async with session_to(target) as session:
        await spread(nodes, lambda number: post(session, "/api/v1/nodes", node(f"n{number}")))
        seconds = await spread(pods, lambda number: post(session, PODS, pod(f"p-{number:06d}")))
        found.create = seconds / pods * 1e6
        async with session.get(PODS, params={"limit": 1}) as answer:
            start = (await answer.json())["metadata"]["resourceVersion"]

        async def bind(number: int) -> None:
            name = f"p-{number:06d}"
            await post(session, f"{PODS}/{name}/binding", binding(name, f"n{number % nodes}"))

        events = min(pods, 10_000)
        found.bind = await spread(events, bind) / events * 1e6
        started = perf_counter()
        await asyncio.gather(*(read_events(session, start, events) for _ in range(WATCHERS)))
        found.event = (perf_counter() - started) / (events * WATCHERS) * 1e6
        found.list_pod = min([await list_all(session) for _ in range(3)]) / pods * 1e6
    found.memory = target.memory_mib()
    return found


async def list_all(session: aiohttp.ClientSession) -> float:
    """Seconds of one full list."""
    started = perf_counter()
    async with session.get(PODS) as answer:
        await answer.read()
    return perf_counter() - started


async def read_events(session: aiohttp.ClientSession, since: str, count: int) -> None:
    """Read a watch from the past until `count` lines came."""
    parameters: dict[str, Any] = {"watch": "true", "resourceVersion": since}
    seen = 0
    async with session.get(PODS, params=parameters) as answer:
        async for chunk in answer.content.iter_any():
            seen += chunk.count(b"\n")
            if seen >= count:
                answer.close()
                return
    raise RuntimeError(f"the watch ended after {seen} of {count} events")


# -- report ---------------------------------------------------------------------------------------------------------------


def figures(ours: Measured, beside: Measured | None, label: str) -> list[Figure]:
    rows = [
        ("create a pod", ours.create, beside.create if beside else None),
        ("bind a pod", ours.bind, beside.bind if beside else None),
        (f"event to one of {WATCHERS} watchers", ours.event, beside.event if beside else None),
        (f"one pod in a list of {ours.pods:,}", ours.list_pod, beside.list_pod if beside else None),
    ]
    name = "kube-apiserver"
    made = [
        Figure(f"{what}, {label}", value, "us", target=other, beside=other, beside_what=name, note=f"{1e6 / value:,.0f}/s")
        for what, value, other in rows
    ]
    memory = beside.memory if beside else None
    made.append(Figure(f"memory with {ours.pods:,} pods, {label}", ours.memory, "MiB", beside=memory, beside_what=name))
    return made


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.apiserver")
    parser.add_argument("--large", action="store_true", help="5,000 nodes and 50,000 pods")
    parser.add_argument("--alone", action="store_true", help="leave the real kube-apiserver out")
    parser.add_argument("--serve", metavar="DATA_DIR", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    with contextlib.suppress(ImportError):  # the standard loop does; uvloop is an extra
        import uvloop

        uvloop.install()
    if options.serve is not None:
        asyncio.run(serve(options.serve))
        return
    pods, nodes = (50_000, 5_000) if options.large else (3_000, 300)
    beside: Measured | None = None
    if not options.alone and not options.large:
        with real() as target:
            beside = asyncio.run(measure(target, pods, nodes)) if target is not None else None
    with embedded() as target:
        rows = figures(asyncio.run(measure(target, pods, nodes)), beside, "in memory")
    if not options.large:
        with tempfile.TemporaryDirectory() as folder, embedded(folder) as target:
            rows += figures(asyncio.run(measure(target, pods, nodes)), beside, "durable")
    show(f"embedded API server: {nodes:,} nodes, {pods:,} pods, {CONNECTIONS} connections", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
