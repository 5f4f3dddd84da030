"""Hooks around a binding in a live cluster: the licence example, hooks with faults, and a scheduler that is killed in a hook."""

from __future__ import annotations

import asyncio
import importlib.util
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.live.cluster import World, end

from navarch.kube.resources import PODS

pytestmark = pytest.mark.live

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FAULTY = """
import asyncio
from navarch.engine.plugin import Plugin
from navarch.engine.points.bind_hooks import BindHooks, Refused


class FaultyHooks(BindHooks):
    timeout = 0.5

    def wants(self, placement):
        return "hook" in placement.labels

    async def pre_bind(self, placement):
        match placement.labels["hook"]:
            case "hangs":
                await asyncio.Event().wait()
            case "raises":
                raise RuntimeError("broken")
            case "exits":
                raise SystemExit(1)
            case "is-cancelled":
                raise asyncio.CancelledError
            case "refuses":
                raise Refused("not today")


class Faulty(Plugin):
    "Fails as the pod says"

    name = "faulty"
    live = FaultyHooks
"""


def policy(world: World, plugin: str, arguments: str = "") -> str:
    file = world.folder / "hooks.yaml"
    plugins = f"[{{name: gang}}, {{name: predicates}}, {{name: {plugin}{arguments}}}]"
    file.write_text(f'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: {plugins}\n', encoding="utf-8")
    return str(file)


@contextmanager
def licence_server(**counts: int) -> Iterator[tuple[Any, str]]:
    spec = importlib.util.spec_from_file_location("licence_server", EXAMPLES / "licence_server.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    licences = module.Licences(dict(counts))
    server = module.server(licences)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield licences, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)


async def labelled(world: World, name: str, group: str = "", **labels: str) -> None:
    body = world.pod_body(name, "1", group, "navarch")
    body["metadata"].setdefault("labels", {}).update(labels)
    await world.client.create(PODS, body, namespace=world.namespace)


async def test_a_pod_waits_for_a_licence(world: World) -> None:
    await world.node("n1", cpu="8")
    history = await world.watch()
    with licence_server(solver=1) as (licences, url):
        chosen = policy(world, "licences", f", arguments: {{server: '{url}'}}")
        async with world.scheduler(policy=chosen, plugin_dirs=(EXAMPLES / "plugins",)):
            await labelled(world, "first", **{"example.com/licence": "solver"})
            await history.until_bound(1)
            await labelled(world, "second", **{"example.com/licence": "solver"})
            await world.pod("free")
            await history.until_bound(2)
            told = await world.eventually(lambda: world.get_pod("second"), lambda pod: "no licence" in str(pod["status"]))
            assert "plugin licences refuses: no licence 'solver' is free" in str(told["status"])
            licences.give_back("solver", licences.leases["solver"][0])
            await history.until_bound(3)
    assert len(licences.leases["solver"]) == 1


async def test_a_gang_gets_all_its_licences_or_none(world: World) -> None:
    await world.node("n1", cpu="8")
    history = await world.watch()
    with licence_server(solver=2) as (licences, url):
        chosen = policy(world, "licences", f", arguments: {{server: '{url}'}}")
        async with world.scheduler(policy=chosen, plugin_dirs=(EXAMPLES / "plugins",)):
            await world.group("gang", 3)
            for number in range(3):
                await labelled(world, f"gang-{number}", "gang", **{"example.com/licence": "solver"})
            await world.eventually(lambda: world.get_pod("gang-0"), lambda pod: "licence" in str(pod["status"]))
            await world.eventually(_nothing, lambda _: licences.leases["solver"] == [])
            assert not [task for task in history.tasks.values() if task.node]
            licences.counts["solver"] = 3
            await history.until_bound(3)
    assert len(licences.leases["solver"]) == 3


async def _nothing() -> None:
    return None


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("hangs", "plugin faulty: pre_bind took longer than 0.5 s"),
        ("raises", "plugin faulty: pre_bind failed: RuntimeError: broken"),
        ("exits", "plugin faulty: pre_bind failed: SystemExit: 1"),
        ("is-cancelled", "plugin faulty: pre_bind was cancelled"),
        ("refuses", "plugin faulty refuses: not today"),
    ],
)
async def test_a_hook_with_a_fault_costs_its_pod_alone(world: World, fault: str, text: str) -> None:
    (world.folder / "plugins").mkdir()
    (world.folder / "plugins" / "faulty.py").write_text(FAULTY, encoding="utf-8")
    await world.node("n1", cpu="8")
    history = await world.watch()
    async with world.scheduler(policy=policy(world, "faulty"), plugin_dirs=(world.folder / "plugins",)):
        await labelled(world, "faulty", hook=fault)
        await world.eventually(lambda: world.get_pod("faulty"), lambda pod: text in str(pod["status"]))
        await world.pod("other")
        await history.until_bound(1)
    assert [task.name for task in history.tasks.values() if task.node] == ["other"]


async def test_a_scheduler_killed_in_a_hook_is_continued_by_the_next(world: World) -> None:
    await world.node("n1", cpu="8")
    history = await world.watch()
    with licence_server(solver=1) as (licences, url):
        holding = licences.reserve
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        release = threading.Event()

        def reserve(name: str, holder: str) -> bool:
            found = bool(holding(name, holder))
            loop.call_soon_threadsafe(asked.set)
            release.wait(60)
            return found

        licences.reserve = reserve
        chosen = policy(world, "licences", f", arguments: {{server: '{url}'}}")
        options = ("--no-leader-elect", f"--policy={chosen}", f"--plugin-dir={EXAMPLES / 'plugins'}")
        first = await world.process(*options)
        await labelled(world, "a", **{"example.com/licence": "solver"})
        async with asyncio.timeout(120):
            await asked.wait()
        await end(first, signal.SIGKILL)
        release.set()
        second = await world.process(*options)
        await history.until_bound(1)
        await end(second)
    assert len(licences.leases["solver"]) == 1, "the licence of the killed attempt is the same one"
