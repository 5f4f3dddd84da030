"""What the dashboard costs: memory, and CPU with ten viewers while pods come and go, beside a bare informer.

    python -m bench.web                                  5,000 nodes, 100,000 pods, 100 pods a second for 30 s
    python -m bench.web --nodes 500 --pods 10000 --seconds 10

An embedded API server with objects in memory is in this process. `navarch web` and the bare informer are processes of their own; their
CPU time is what counts, so a busy machine changes little. The bare informer lists and watches pods, decodes them and keeps their
names: less than anything that shows pods can do. Each pod that comes is created, bound and started, and the oldest one ends and is
deleted: five events of the watch a pod. Every tenth pod begins a new gang of ten. Viewers hold streams with all topics open.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import aiohttp

from bench.report import Figure, show
from navarch.embedded.api.server import ApiServer
from navarch.object_types import Manifest

GANG, QUEUES, NAMESPACES = 10, 40, 50
RELIST_SECONDS = 15.0
"""After these all pods have been listed again."""
BARE = """
import asyncio, sys
from navarch.apis.core.pod_objects import Pod
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.resources import PODS
from navarch.kube.watch.informer import Informer

class Names:
    def added(self, new): informer.store[new.metadata.namespace, new.metadata.name] = Pod(metadata=new.metadata)
    def updated(self, old, new): self.added(new)
    def deleted(self, old): pass

async def main():
    global informer
    async with Client(connect(sys.argv[1])) as client:
        informer = Informer(client, PODS, Pod, Names())
        task = asyncio.create_task(informer.run())
        await informer.wait_for_sync()
        print("synced", flush=True)
        await task

try:
    import uvloop
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
except ImportError:
    runner = asyncio.Runner()
runner.run(main())
"""


class Load:
    """The cluster: nodes, queues, gangs of running pods, some gangs that wait; and pods that come and go."""

    def __init__(self, server: ApiServer, nodes: int, pods: int, waiting: int) -> None:
        self.store, self.nodes = server.store, nodes
        self.number = 0
        self.running: deque[tuple[str, str]] = deque()
        for number in range(nodes):
            self.store.create("nodes", _node(number))
        for number in range(QUEUES):
            spec = {"weight": 1 + number % 3}
            body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": f"q{number}"}, "spec": spec}
            self.store.create("queues.scheduling.volcano.sh", body)
        for number in range(NAMESPACES):
            self.store.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}})
        for _ in range(pods - waiting):
            self.start(self.create())
        for _ in range(waiting):
            self.create(gpus=9)  # more than a node has

    def create(self, gpus: int = 0) -> tuple[str, str]:
        gang, member = divmod(self.number, GANG)
        namespace, group = f"team-{gang % NAMESPACES}", f"train-{gang:06d}"
        if member == 0:
            self.store.create("podgroups.scheduling.volcano.sh", _group(namespace, group, gang))
        self.number += 1
        name = f"{group}-worker-{member}"
        self.store.create("pods", _pod(namespace, name, group, gpus))
        return namespace, name

    @property
    def last_gang(self) -> str:
        return f"train-{(self.number - 1) // GANG:06d}"

    def start(self, pod: tuple[str, str]) -> None:
        node = f"node-{self.number % self.nodes:05d}"
        self.store.modify("pods", *pod, lambda found: _bound(found, node))
        self.store.modify("pods", *pod, _started)
        self.running.append(pod)

    def end(self) -> None:
        pod = self.running.popleft()
        self.store.modify("pods", *pod, _ended)
        self.store.delete("pods", *pod)
        if pod[1].endswith(f"-{GANG - 1}"):
            self.store.delete("podgroups.scheduling.volcano.sh", pod[0], pod[1].rsplit("-worker-", 1)[0])


def _node(number: int) -> Manifest:
    name = f"node-{number:05d}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"z{number % 5}",
        "topology.example/rack": f"r{number % 200}",
    }
    capacity = {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "250"}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def _group(namespace: str, name: str, gang: int) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    spec = {"minMember": GANG, "queue": f"q{gang % QUEUES}"}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Inqueue"},
    }


def _pod(namespace: str, name: str, group: str, gpus: int) -> Manifest:
    requests = {"cpu": "4", "memory": "16Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": "train", "job": group, "user": f"user-{hash(group) % 200}"},
            "annotations": {"scheduling.k8s.io/group-name": group},
        },
        "spec": {
            "schedulerName": "navarch",
            "containers": [{"name": "main", "image": "registry.example.com/train:v1", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def _bound(pod: Manifest, node: str) -> Manifest:
    pod["spec"]["nodeName"] = node
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-16T06:00:00Z"}]
    return pod


def _started(pod: Manifest) -> Manifest:
    pod["status"] |= {"phase": "Running", "startTime": "2026-11-16T06:00:01Z"}
    more = ("Initialized", "ContainersReady", "Ready")
    pod["status"]["conditions"] += [{"type": each, "status": "True", "lastTransitionTime": "2026-11-16T06:00:01Z"} for each in more]
    return pod


def _ended(pod: Manifest) -> Manifest:
    pod["status"]["phase"] = "Succeeded"
    return pod


class Measured:
    """A process whose CPU and memory are measured."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.line = ""

    @classmethod
    async def start(cls, *command: str) -> Measured:
        pipe = asyncio.subprocess.PIPE
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        found = cls(await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, env=environment))
        assert found.process.stdout is not None
        found.line = (await found.process.stdout.readline()).decode().strip()
        return found

    def cpu(self) -> float:
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, which: str = "VmRSS") -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{which}:")) / 1024

    async def stop(self) -> None:
        self.process.terminate()
        await self.process.wait()


class Viewers:
    """Streams that are read and counted, each with one load of every list before it."""

    def __init__(self, address: str, count: int) -> None:
        self.origin, _, query = address.partition("/?")
        self.token = query.removeprefix("token=")
        self.count, self.bytes, self.events = count, 0, 0
        self.first_load = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(self.origin, headers={"Authorization": f"Bearer {self.token}"}, timeout=timeout)
        await self._ready()
        started = time.perf_counter()
        for path in ("overview", "jobs", "nodes", "queues"):
            async with self._session.get(f"/api/v1/{path}") as answer:
                await answer.read()
        self.first_load = time.perf_counter() - started
        self._tasks = [asyncio.create_task(self._follow()) for _ in range(self.count)]

    async def _ready(self) -> None:
        while True:
            async with self._session.get("/readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.2)

    async def shown(self, job: str) -> None:
        """Wait until the dashboard has caught up: it shows this job, and viewers have been told."""
        found = 0
        while not found:
            await asyncio.sleep(1.0)
            async with self._session.get("/api/v1/jobs", params={"text": job, "limit": "1"}) as answer:
                found = (await answer.json())["matched"]
        await asyncio.sleep(2.0)

    async def _follow(self) -> None:
        async with self._session.get("/api/v1/events") as answer:
            async for chunk in answer.content.iter_any():
                self.bytes += len(chunk)
                self.events += chunk.count(b"event: change")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._session.close()


async def measure(nodes: int, pods: int, waiting: int, rate: float, seconds: float, viewers: int) -> None:
    with tempfile.TemporaryDirectory(prefix="navarch-bench-") as folder:
        async with ApiServer(taint_new_nodes=False) as server:
            load = Load(server, nodes, pods, waiting)
            kubeconfig = str(server.kubeconfig(Path(folder, "kubeconfig")))
            bare = await Measured.start("-c", BARE, kubeconfig)
            web = await Measured.start(
                "-m", "navarch.cli.main", "web", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", "--scheduler-name", "navarch"
            )
            watching = Viewers(web.line, viewers)
            try:
                await watching.open()
                await asyncio.sleep(3)
                idle = await _spent((bare, web), 5.0)
                before = [each.cpu() for each in (bare, web)]
                came = await _churn(load, rate, seconds)
                await watching.shown(load.last_gang)
                spent = [each.cpu() - was for each, was in zip((bare, web), before)]
                memory = [each.memory() for each in (bare, web)]
                server.faults.expire_history()
                server.faults.cut_watches()
                for _ in range(GANG):
                    load.start(load.create())
                await watching.shown(load.last_gang)
                await asyncio.sleep(RELIST_SECONDS)
                _tell(web, bare, watching, spent, idle, came, memory)
            finally:
                await watching.close()
                await web.stop()
                await bare.stop()


async def _spent(processes: tuple[Measured, ...], seconds: float) -> list[float]:
    """Part of a core that each takes while nothing happens."""
    before = [each.cpu() for each in processes]
    await asyncio.sleep(seconds)
    return [(each.cpu() - was) / seconds for each, was in zip(processes, before)]


async def _churn(load: Load, rate: float, seconds: float) -> int:
    """Pods come at this rate and as many end. Returns how many came."""
    came, started = 0, time.perf_counter()
    while (now := time.perf_counter() - started) < seconds:
        while came < rate * now:
            pod = load.create()
            load.start(pod)
            load.end()
            came += 1
        await asyncio.sleep(0.02)
    return came


def _tell(
    web: Measured, bare: Measured, watching: Viewers, spent: list[float], idle: list[float], came: int, memory: list[float]
) -> None:
    percent = [100 * each / came * 100 for each in spent]  # of a core, at 100 pods a second
    streams = f"{watching.events / watching.count:.0f} events a viewer, {watching.bytes / watching.count / 1e6:.1f} MB"
    figures = [
        Figure("memory", memory[1], "MB", 300, memory[0], "bare informer"),
        Figure(
            "memory after all was listed again",
            web.memory(),
            "MB",
            None,
            bare.memory(),
            "bare informer",
            f"peak {web.memory('VmHWM'):.0f} MB",
        ),
        Figure("CPU at 100 pods/s", percent[1], "% of a core", 5, percent[0], "bare informer", f"{came} pods came; {streams}"),
        Figure("CPU when nothing happens", 100 * idle[1], "% of a core", None, 100 * idle[0], "bare informer"),
        Figure("overview, jobs, nodes and queues", watching.first_load, "s", 1, None, "", "one after another, wall time"),
    ]
    show(f"the dashboard with {watching.count} viewers", figures)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.web")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--viewers", type=int, default=10)
    given = parser.parse_args(argv)
    asyncio.run(measure(given.nodes, given.pods, given.waiting, given.rate, given.seconds, given.viewers))


if __name__ == "__main__":
    main()
