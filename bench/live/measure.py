"""What every measurement shares, and two of them: a backlog bound as fast as it goes, and a steady stream."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

from tests.envtest.server import UPSTREAM_GROUPS, KubeApiServer

from bench.live import objects
from bench.live.contenders import Contender, Usage
from bench.live.observer import Observer
from bench.live.wire import Pool, Target
from navarch import manifests

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LOAD_CONNECTIONS = 16
IDLE_LOOK = 1.0
IDLE_SHARE = 0.1
"""A process is idle if it uses less than this share of a core between two looks, `IDLE_LOOK` seconds apart."""
SERVER_FLAGS = ("--max-requests-inflight=3000", "--max-mutating-requests-inflight=2000", *UPSTREAM_GROUPS)


@dataclass(frozen=True)
class Throughput:
    """Binds a second between the first and the last pod seen bound; `wall` counts from the start of the process."""

    contender: str
    nodes: int
    pods: int
    rate: float
    wall: float
    cpu: float
    memory: float
    server_cpu: float


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the API server's answer to the create until the pod is seen bound."""

    contender: str
    nodes: int
    shape: str
    pods: int
    p50: float
    p99: float
    worst: float
    cpu: float


Row = TypeVar("Row", bound="DataclassInstance")


def medians(rows: list[Row], *by: str) -> list[Row]:
    """One row for all that agree in these fields, in order of first appearance: the median of each figure."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, name) for name in by), []).append(row)
    figures = [each.name for each in fields(rows[0]) if each.type == "float"] if rows else []
    return [
        replace(alike[0], **{name: statistics.median(getattr(row, name) for row in alike) for name in figures})
        for alike in groups.values()
    ]


def server() -> KubeApiServer:
    return KubeApiServer(SERVER_FLAGS)


async def prepare(running: KubeApiServer, nodes: int) -> None:
    """The namespace, Volcano's CRDs with their default queue, and the nodes: the same for every contender."""
    running.request("POST", "/api/v1/namespaces", {"metadata": {"name": objects.NAMESPACE}})
    group = "scheduling.volcano.sh"
    for crd in manifests.crds():
        if crd["spec"]["group"] == group:
            running.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    queue = {"apiVersion": f"{group}/v1beta1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    async with asyncio.timeout(30):
        while True:
            try:
                running.request("POST", f"/apis/{group}/v1beta1/queues", queue)
                break
            except RuntimeError:  # not served yet: a CRD needs a moment to be established
                await asyncio.sleep(0.2)
    async with Pool(Target.read(running.kubeconfig), LOAD_CONNECTIONS) as pool:
        await pool.post_all((objects.NODES, objects.node(index)) for index in range(nodes))


async def settle(running: KubeApiServer) -> None:
    """Until the server is idle: after a start and after CRDs it works on its OpenAPI documents for seconds."""
    used = server_cpu(running)
    for _ in range(60):
        await asyncio.sleep(0.5)
        before, used = used, server_cpu(running)
        if used - before < 0.05:
            return


async def idle(process_id: int, longest: float, *, at_least: float = 0.0) -> None:
    """Until a process uses next to no CPU, or for `longest` seconds."""
    await asyncio.sleep(at_least)
    used = Usage.of(process_id).cpu
    for _ in range(int(longest / IDLE_LOOK)):
        await asyncio.sleep(IDLE_LOOK)
        before, used = used, Usage.of(process_id).cpu
        if used - before < IDLE_SHARE * IDLE_LOOK:
            return


def server_cpu(running: KubeApiServer) -> float:
    return sum(Usage.of(process_id).cpu for process_id in running.process_ids)


async def create_backlog(running: KubeApiServer, contender: Contender, pods: int) -> None:
    async with Pool(Target.read(running.kubeconfig), LOAD_CONNECTIONS) as pool:
        await pool.post_all((objects.PODS, objects.pod(f"pod-{index:05d}", contender.scheduler_name)) for index in range(pods))


@dataclass(frozen=True)
class Trial:
    """One contender at work on one server."""

    contender: Contender
    server: KubeApiServer
    observer: Observer
    process: subprocess.Popen[bytes]
    nodes: int
    timeout: float

    async def backlog(self, pods: int, started: float) -> Throughput:
        """Wait until the backlog is bound. A rate from first to last leaves out start-up, which `wall` shows."""
        server_before = server_cpu(self.server)
        await self._all_bound(pods)
        times = sorted(self.observer.bound.values())
        usage = Usage.of(self.process.pid)
        return Throughput(
            contender=self.contender.name,
            nodes=self.nodes,
            pods=pods,
            rate=(pods - 1) / (times[-1] - times[0]) if pods > 1 else 0.0,
            wall=times[-1] - started,
            cpu=usage.cpu,
            memory=usage.memory,
            server_cpu=server_cpu(self.server) - server_before,
        )

    async def steady(self, rate: float, seconds: float, gang: int) -> Latency:
        """`rate` pods a second for `seconds`, one by one or as gangs that arrive whole."""
        cpu_before = Usage.of(self.process.pid).cpu
        bound_before = len(self.observer.bound)
        created: dict[str, float] = {}
        async with Pool(Target.read(self.server.kubeconfig), LOAD_CONNECTIONS) as pool:
            start = time.monotonic()
            arrivals = []
            for index in range(int(rate * seconds / gang)):
                await asyncio.sleep(max(0.0, start + index * gang / rate - time.monotonic()))
                arrivals.append(asyncio.create_task(self._arrive(pool, f"steady-{gang}-{index:05d}", gang, created)))
            await asyncio.gather(*arrivals)
            await self._all_bound(bound_before + len(created))
        waits = _waits(created.items(), self.observer.bound)
        return Latency(
            contender=self.contender.name,
            nodes=self.nodes,
            shape="single pods" if gang == 1 else f"gangs of {gang}",
            pods=len(created),
            p50=statistics.median(waits),
            p99=waits[min(len(waits) - 1, int(len(waits) * 0.99))],
            worst=waits[-1],
            cpu=Usage.of(self.process.pid).cpu - cpu_before,
        )

    async def _arrive(self, pool: Pool, stem: str, gang: int, created: dict[str, float]) -> None:
        group = stem if gang > 1 else None
        upstream = self.contender.upstream_gangs
        if group is not None:
            await pool.post(*objects.group(group, gang, upstream=upstream))

        async def create(name: str) -> None:
            body = objects.pod(name, self.contender.scheduler_name, group=group, upstream=upstream)
            await pool.post(objects.PODS, body)
            created[name] = time.monotonic()

        await asyncio.gather(*(create(f"{stem}-{member}") for member in range(gang)))

    async def _all_bound(self, count: int) -> None:
        await self.observer.wait_for(count, self.timeout, self._check_alive)

    def _check_alive(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.contender.name} ended with {self.process.returncode}")


def _waits(created: Iterable[tuple[str, float]], bound: dict[str, float]) -> list[float]:
    """Sorted waits in milliseconds; a watch may outrun the answer to the create, which counts as no wait."""
    return sorted(max(0.0, bound[name] - moment) * 1000 for name, moment in created)
