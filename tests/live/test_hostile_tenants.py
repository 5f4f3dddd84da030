"""Two replicas beside tenants that would stop a careless scheduler: both stay, and the pods of others are bound by either of them.

The replicas are processes of their own, because one of the traps hangs: hostile device claims, objects that are not UTF-8, a rule that
raises on one job, a rule that does not return from another one, and a rule whose call into C holds the interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.worlds.kube.ports import held_port
from tests.worlds.live.claims import DEVICE_CLASSES, HOSTILE_SELECTORS, RESOURCE_CLAIMS, SLICES
from tests.worlds.live.cluster import World, end

from navarch.kube.errors import KubeError
from navarch.kube.resources import LEASES

pytestmark = pytest.mark.live

POLICY = """
actions: "allocate, backfill"
tiers:
- plugins: [{name: trap}, {name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
PLUGIN = '''
import re
from pathlib import Path
from navarch.engine.plugin import Plugin

class Trap(Plugin):
    """Raises on one job, hangs on another one while a file exists, and holds the interpreter on a third one"""

    name = "trap"

    def job_order(self, job):
        if job.key.endswith("/raises"):
            raise RuntimeError("a trap")
        if job.key.endswith("/hangs"):
            Path("{folder}/reached").touch()
            while Path("{folder}/hold").exists():
                pass
        if job.key.endswith("/holds"):
            re.match("(a+)+$", "a" * 60 + "!")
        return 0
'''


class Replicas:
    """Two processes that take turns by a lease, each with its own port for health."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.hold, self.reached = world.folder / "hold", world.folder / "reached"
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self._ports = dict.fromkeys(("one", "two"), 0)
        self._shared: tuple[str, ...] = ()

    async def start(self, *arguments: str) -> None:
        plugins = self.world.folder / "plugins"
        plugins.mkdir()
        (plugins / "trap.py").write_text(PLUGIN.replace("{folder}", str(self.world.folder)))
        policy = self.world.folder / "policy.yaml"
        policy.write_text(POLICY)
        self._shared = (f"--policy={policy}", f"--plugin-dir={plugins}", f"--lock-namespace={self.world.namespace}", *arguments)
        for name in self._ports:
            with held_port() as port:
                self._ports[name] = port
            await self.start_one(name)
        for name in self._ports:
            await self.world.eventually(lambda name=name: self.page(name, "/readyz"), lambda answer: answer[0] == 200)

    async def start_one(self, name: str) -> None:
        """As kubelet starts a container, for the first time or again."""
        own = (f"--listen=127.0.0.1:{self._ports[name]}", f"--crash-dir={self.world.folder / name}")
        self.processes[name] = await self.world.process(*own, *self._shared, name=name)

    async def page(self, name: str, path: str) -> tuple[int, str]:
        """Status and text; 0 while nothing answers."""
        try:
            async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{self._ports[name]}{path}") as reply:
                return reply.status, await reply.text()
        except aiohttp.ClientError:
            return 0, ""

    async def lease(self) -> dict[str, Any]:
        found = await self.world.client.get(LEASES, "navarch", namespace=self.world.namespace)
        return dict(found["spec"])

    async def leading(self) -> str:
        """Which of them leads; empty if none does."""
        for name in self.processes:
            if self.processes[name].returncode is None and "navarch_leading 1.0" in (await self.page(name, "/metrics"))[1]:
                return name
        return ""


@contextlib.asynccontextmanager
async def replicas(world: World, *arguments: str) -> AsyncIterator[Replicas]:
    made = Replicas(world)
    await made.start(*arguments)
    yield made


async def hostile_claims(world: World, node: str) -> None:
    gpu = f"gpu-{world.namespace}"
    await world.clusterwide(DEVICE_CLASSES, {"metadata": {"name": gpu}, "spec": {}})
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": f"gpu-{i}"} for i in range(4)]}
    await world.clusterwide(SLICES, {"metadata": {"name": f"slice-{node}"}, "spec": spec})
    for name, expression in HOSTILE_SELECTORS.items():
        exactly = {"deviceClassName": gpu, "count": 1, "selectors": [{"cel": {"expression": expression}}]}
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}}
        await world.client.create(RESOURCE_CLAIMS, body, namespace=world.namespace)
        await world.pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": name}])
    await _not_utf8(world, gpu)


async def _not_utf8(world: World, gpu: str) -> None:
    """A claim whose opaque parameters hold bytes that are not UTF-8: a kube-apiserver keeps them as they are."""
    opaque = {"driver": "gpu.example.com", "parameters": {"kind": "BYTES"}}
    devices = {"requests": [{"name": "one", "exactly": {"deviceClassName": gpu}}], "config": [{"opaque": opaque}]}
    body = msgspec.json.encode(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "bytes"}, "spec": {"devices": devices}}
    )
    with contextlib.suppress(KubeError):  # the embedded server refuses it; a kube-apiserver answers with these bytes
        await world.client.create(RESOURCE_CLAIMS, body.replace(b"BYTES", b"\xff\xfe"), namespace=world.namespace)


@pytest.mark.parametrize("any_world", ["kube-apiserver"], indirect=True)
async def test_both_replicas_stay_and_the_pods_of_others_are_bound(any_world: World) -> None:
    world = any_world
    node = f"n-{world.namespace}"
    await world.node(node, cpu="32")
    history = await world.watch()
    async with replicas(world, "--cycle-timeout=1", "--lease-duration=4", "--renew-deadline=3", "--retry-period=0.3") as both:
        both.hold.touch()
        await hostile_claims(world, node)
        for name in ("raises", "hangs"):
            await world.gang(name, 1)
        for i in range(3):
            await world.pod(f"good-{i}")
        await history.until_bound(3)
        assert history.bound() == [f"{world.namespace}/good-{i}" for i in range(3)]
        await world.eventually(lambda: asyncio.sleep(0, both.reached.exists()), bool)
        await world.eventually(lambda: world.events("regex"), bool)
        for name, process in both.processes.items():
            assert process.returncode is None, world.log_of(name).read_text()[-2000:]
            assert await both.page(name, "/livez") == (200, "ok")

        # The standby meets the same objects when it leads.
        both.reached.unlink()
        first = await world.eventually(both.leading, bool)
        await end(both.processes[first], signal.SIGKILL)
        for i in range(3, 6):
            await world.pod(f"good-{i}")
        await history.until_bound(6)
        await world.eventually(lambda: asyncio.sleep(0, both.reached.exists()), bool)
        (second,) = both.processes.keys() - {first}
        assert both.processes[second].returncode is None, world.log_of(second).read_text()[-2000:]
    assert history.bound() == [f"{world.namespace}/good-{i}" for i in range(6)]
    assert history.broken == []


async def test_a_rule_that_hangs_stops_neither_livez_nor_the_lease(world: World) -> None:
    """No watchdog ends it here: the rule returns when the test says so."""
    await world.node(f"n-{world.namespace}", cpu="8")
    history = await world.watch()
    async with replicas(world, "--cycle-timeout=600", "--lease-duration=3600", "--renew-deadline=1800", "--retry-period=0.2") as both:
        leader = await world.eventually(both.leading, bool)
        both.hold.touch()
        await world.gang("hangs", 1)
        await world.eventually(lambda: asyncio.sleep(0, both.reached.exists()), bool)
        holder = (await both.lease())["holderIdentity"]
        for _ in range(3):
            before = await both.lease()
            assert await both.page(leader, "/livez") == (200, "ok")
            after = await world.eventually(both.lease, lambda lease, before=before: lease["renewTime"] != before["renewTime"])
            assert after["holderIdentity"] == holder
        assert history.bound() == []
        Path(both.hold).unlink()
        await history.until_bound(1)
    assert history.broken == []


@pytest.mark.parametrize("any_world", ["kube-apiserver"], indirect=True)
async def test_a_call_that_holds_the_interpreter_costs_one_process_and_no_other_job(any_world: World) -> None:
    """The process ends. The one that kubelet starts instead sets the job aside, and so does the replica that leads meanwhile."""
    world = any_world
    await world.node(f"n-{world.namespace}", cpu="32")
    history = await world.watch()
    async with replicas(world, "--cycle-timeout=1", "--lease-duration=3600", "--renew-deadline=1800", "--retry-period=0.2") as both:
        leader = await world.eventually(both.leading, bool)
        (standby,) = both.processes.keys() - {leader}
        await world.gang("holds", 1)
        assert await both.processes[leader].wait() == signal.SIGPROF, world.log_of(leader).read_text()[-2000:]
        for i in range(3):
            await world.pod(f"good-{i}")
        await both.start_one(leader)
        await history.until_bound(3)
        assert "holds, which is set aside" in world.log_of(leader).read_text()
        assert "trap.py:" in world.log_of(leader).read_text(), "the traceback has the line of the rule"
        told = await world.eventually(lambda: world.events("holds-0"), bool)
        assert any("trap.py:" in note and "the process was ended" in note for _, _, note in told)
        now = await world.eventually(both.leading, bool)
        assert now == standby, "the lease was given back, and the other replica had read the cluster already"
        page = (await both.page(now, "/metrics"))[1]
        assert 'navarch_job_failures_total{where="trap.py:' in page
        assert "1 job is set aside: trap.py:" in (await both.page(now, "/readyz"))[1]
        assert both.processes[standby].returncode is None, world.log_of(standby).read_text()[-2000:]

        # The process that was ended has read its own crash folder: it does not try the job either when it leads again.
        await end(both.processes[standby], signal.SIGTERM)
        for i in range(3, 6):
            await world.pod(f"good-{i}")
        await history.until_bound(6)
        assert await world.eventually(both.leading, bool) == leader
        assert both.processes[leader].returncode is None, world.log_of(leader).read_text()[-2000:]
    assert history.bound() == [f"{world.namespace}/good-{i}" for i in range(6)]
    assert history.broken == []
