"""A cluster for a test: an API server, nodes, pods, groups, and schedulers that run in this process or in one of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypedDict

import yaml
from msgspec.structs import replace
from tests.worlds.live.history import History

from navarch.embedded.api.server import ApiServer
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import NotFound
from navarch.kube.resources import PODS, Resource
from navarch.kube.watch.patience import Patience
from navarch.live.run_options import RunOptions
from navarch.live.scheduler import Scheduler

NODES = Resource("", "v1", "nodes", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
EVENTS = Resource("events.k8s.io", "v1", "events")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets")
LEFT_BEHIND = [
    BUDGETS,
    GROUPS,
    Resource("scheduling.run.ai", "v2alpha2", "podgroups"),
    Resource("scheduling.run.ai", "v1alpha2", "bindrequests"),
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups"),
    Resource("scheduling.k8s.io", "v1alpha2", "podgroups"),
    Resource("scheduling.incubator.k8s.io", "v1alpha1", "podgroups"),
    Resource("scheduling.sigs.dev", "v1alpha2", "podgroups"),
    Resource("resource.k8s.io", "v1", "resourceclaims"),
    Resource("", "v1", "persistentvolumeclaims"),
]


class LeaseOptions(TypedDict, total=False):
    """The options of a scheduler that elects a leader."""

    leader_elect: bool
    lock_namespace: str
    lease_duration: float
    renew_deadline: float
    retry_period: float


def lasting(lock_namespace: str = "default") -> LeaseOptions:
    """A lease that no slow machine loses: the next leader leads because the lease was given back."""
    return LeaseOptions(
        leader_elect=True, lock_namespace=lock_namespace, lease_duration=3600.0, renew_deadline=1800.0, retry_period=0.2
    )


IMPATIENT = Patience(retry_first=0.02, retry_longest=0.5, absent_longest=0.5)
OPTIONS = RunOptions(listen="", leader_elect=False, seed=7)


class World:
    """One namespace of a server. `capacity` is what each node made here has."""

    def __init__(self, kubeconfig: Path, namespace: str, folder: Path) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.folder = folder
        self.client = Client(self.endpoint())
        self.capacity: dict[str, dict[str, str]] = {}
        self.history: History | None = None
        self.server: ApiServer | None = None
        """The server itself, where it is the embedded one."""
        self._without_namespace: list[tuple[Resource, str]] = []
        self._processes: list[asyncio.subprocess.Process] = []

    def endpoint(self, port: int = 0) -> Endpoint:
        """The server, or a wire to it that listens on another port."""
        found = connect(self.kubeconfig)
        return replace(found, server=f"https://127.0.0.1:{port}") if port else found

    async def watch(self) -> History:
        """Record from now on; nodes have to be there already."""
        self.history = History(Client(self.endpoint()), self.namespace, self.capacity)
        await self.history.start()
        return self.history

    async def clean(self) -> None:
        """Take away what outlives the test on a shared server, and what a scheduler of another test would look at."""
        await self._end_processes()
        for pod in (await self.client.list(PODS, namespace=self.namespace)).items:
            with contextlib.suppress(NotFound):
                await self.client.delete(PODS, pod["metadata"]["name"], namespace=self.namespace, grace_period=0)
        for resource in LEFT_BEHIND:
            with contextlib.suppress(NotFound):  # not served here
                for found in (await self.client.list(resource, namespace=self.namespace)).items:
                    name = found["metadata"]["name"]
                    with contextlib.suppress(NotFound):
                        if found["metadata"].get("finalizers"):  # whose controllers are not there
                            free = {"metadata": {"finalizers": None}}
                            await self.client.patch(resource, name, free, PatchType.MERGE, namespace=self.namespace)
                        await self.client.delete(resource, name, namespace=self.namespace)
        for resource, name in [*self._without_namespace, *((NODES, name) for name in self.capacity)]:
            with contextlib.suppress(NotFound):
                await self.client.delete(resource, name)

    async def close(self) -> None:
        await self._end_processes()
        if self.history is not None:
            await self.history.stop()
        await self.client.close()

    async def _end_processes(self) -> None:
        for process in self._processes:
            await end(process, signal.SIGKILL)

    # objects

    async def clusterwide(self, resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
        """An object that has no namespace, which is taken away where others use the server after us."""
        made: dict[str, Any] = await self.client.create(resource, body)
        self._without_namespace.append((resource, made["metadata"]["name"]))
        return made

    async def node(self, name: str, *, cpu: str = "4", memory: str = "32Gi", pods: str = "110", **labels: str) -> None:
        capacity = {"cpu": cpu, "memory": memory, "pods": pods}
        self.capacity[name] = capacity
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
        await self.client.create(NODES, body)

    async def pod(self, name: str, *, cpu: str = "1", group: str = "", scheduler: str = "navarch", **spec: Any) -> dict[str, Any]:
        body = self.pod_body(name, cpu, group, scheduler, **spec)
        made: dict[str, Any] = await self.client.create(PODS, body, namespace=self.namespace)
        return made

    def pod_body(self, name: str, cpu: str, group: str, scheduler: str, **spec: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name, "namespace": self.namespace}
        if group:
            metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
        if "labels" in spec:
            metadata["labels"] = spec.pop("labels")
        container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container], **spec},
        }

    async def group(self, name: str, members: int, *, queue: str = "default", **spec: Any) -> None:
        body = {
            "apiVersion": GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"minMember": members, "queue": queue, **spec},
        }
        await self.client.create(GROUPS, body, namespace=self.namespace)

    async def gang(self, name: str, members: int, *, cpu: str = "1", **spec: Any) -> None:
        """A group and all its pods."""
        await self.group(name, members)
        await asyncio.gather(*(self.pod(f"{name}-{i}", cpu=cpu, group=name, **spec) for i in range(members)))

    async def get_pod(self, name: str) -> dict[str, Any]:
        return await self.client.get(PODS, name, namespace=self.namespace)

    async def get_group(self, name: str) -> dict[str, Any]:
        return await self.client.get(GROUPS, name, namespace=self.namespace)

    async def events(self, name: str) -> list[tuple[str, str, str]]:
        """(type, reason, note) of what was said about an object."""
        found = (await self.client.list(EVENTS, namespace=self.namespace)).items
        return [(e["type"], e["reason"], e["note"]) for e in found if e["regarding"]["name"] == name]

    async def eventually(self, ask: Any, holds: Any, timeout: float = 120.0) -> Any:
        """Ask the server until the answer is right. For what pods do not show; its pace is no part of what is tested."""
        answer = None
        try:
            async with asyncio.timeout(timeout):
                while not holds(answer := await ask()):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not within {timeout:g} s; the last answer was {answer}") from None
        return answer

    # schedulers

    @contextlib.asynccontextmanager
    async def scheduler(
        self, port: int = 0, kubeconfig: str | Path | None = None, clock: Callable[[], float] = time.time, **options: Any
    ) -> AsyncIterator[Scheduler]:
        """A scheduler in this process, stopped at the end of the block; as another user than the admin if given, and by
        another clock."""
        endpoint = connect(kubeconfig) if kubeconfig is not None else self.endpoint(port)
        made = Scheduler(endpoint, replace(OPTIONS, **options), clock=clock, patience=IMPATIENT)
        task = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            made.stop()
            await task

    async def process(self, *arguments: str, name: str = "") -> asyncio.subprocess.Process:
        """A scheduler in a process of its own, which can be killed. With a name it speaks as that user and has its own log."""
        kubeconfig = self.speaking_as(name) if name else self.kubeconfig
        command = [sys.executable, "-m", "navarch.cli.run", f"--kubeconfig={kubeconfig}", "--listen=", *arguments]
        log = self.log_of(name).open("ab")
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, env=dict(os.environ))
        log.close()
        self._processes.append(process)
        return process

    def log_of(self, name: str) -> Path:
        return self.folder / f"{name or 'scheduler'}.log"

    async def said(self, name: str, text: str, timeout: float = 120.0) -> None:
        """Wait until the log of a process holds this."""
        log = self.log_of(name)
        try:
            async with asyncio.timeout(timeout):
                while text not in log.read_text(encoding="utf-8"):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{name} did not say {text!r}: {log.read_text(encoding='utf-8')[-1500:]}") from None

    def speaking_as(self, name: str) -> Path:
        """The same kubeconfig by impersonation, which names the speaker in every request."""
        document = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        for user in document["users"]:
            user["user"].update({"as": name, "as-groups": ["system:masters"]})
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return path


class Clock:
    """A wall clock that a test sets."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class StillClock:
    """A wall clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


async def end(process: asyncio.subprocess.Process, number: int = signal.SIGTERM) -> int:
    if process.returncode is None:
        process.send_signal(number)
    return await process.wait()
