"""A proxy answers in the API server's place: it is believed nothing, and what is unknown is asked for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.worlds.live.cluster import World
from tests.worlds.live.false_proxy import FalseProxy
from tests.worlds.live.priority_classes import classes

from navarch.live.scheduler import Scheduler

pytestmark = pytest.mark.live

HTML = b"<html><body>Bad gateway</body></html>"


def failure(code: int, reason: str, **details: str) -> bytes:
    said: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "said"}
    return json.dumps({**said, "reason": reason, "code": code, **({"details": details} if details else {})}).encode()


LIES = {
    "404 with a page": (404, HTML),
    "404 in plain text": (404, b"404 page not found\n"),
    "404 without details": (404, failure(404, "NotFound")),
    "404 about another pod": (404, failure(404, "NotFound", name="other", kind="pods")),
    "404 about another kind": (404, failure(404, "NotFound", name="a", kind="services")),
    "409 with a page": (409, HTML),
    "410": (410, failure(410, "Expired")),
    "403 with a page": (403, HTML),
    "422": (422, failure(422, "Invalid", name="a", kind="Pod")),
    "502 with a page": (502, HTML),
    "302": (302, b""),
    "200 with a page": (200, HTML),
    "200 with nothing": (200, b""),
    "200 with a refusal": (200, failure(409, "Conflict")),
    "201 with a pod": (201, b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}'),
    "201 cut off": (201, b'{"kind":"Status","apiVersion":"v1","status":"Suc'),
}


def settled(scheduler: Scheduler) -> Any:
    return lambda: asyncio.sleep(0, (dict(scheduler.assumed.binds), len(scheduler.resync)))


class Lied:
    """One pod whose binding is carried out and whose answers are false, and watches that are late from then on."""

    def __init__(self, proxy: FalseProxy, world: World, lie: str, *, reads: int) -> None:
        status, body = LIES[lie]
        self.proxy = proxy
        self.path = f"/api/v1/namespaces/{world.namespace}/pods/a"
        proxy.answer(self._is_binding, status, body, times=1, carried_out=True)
        self.read = proxy.answer(lambda method, path: (method, path) == ("GET", self.path), status, body, times=reads)

    def _is_binding(self, method: str, path: str) -> bool:
        if path != f"{self.path}/binding":
            return False
        self.proxy.hold_watches()
        return True

    def bindings(self) -> list[str]:
        return [path for _, path in self.proxy.seen if path.endswith("/binding")]


@pytest.mark.parametrize("lie", list(LIES))
async def test_a_place_is_kept_while_the_binding_may_stand(any_world: World, lie: str) -> None:
    """What is told of the binding is false, and so is what is told of the pod when it is asked for."""
    world = any_world
    await world.node("n0", cpu="1")
    history = await world.watch()
    await world.pod("a", cpu="1")
    await world.pod("b", cpu="1")
    async with FalseProxy(world) as proxy:
        lied = Lied(proxy, world, lie, reads=2)
        async with world.scheduler(kubeconfig=proxy.kubeconfig) as scheduler:
            await world.eventually(
                lambda: asyncio.sleep(0, (lied.read.told, lied.bindings())), lambda seen: seen[0] == 2 or len(seen[1]) > 1
            )
            proxy.release_watches()
            await world.eventually(settled(scheduler), lambda left: left == ({}, 0))
        assert lied.bindings() == [f"{lied.path}/binding"]
    assert history.broken == []


@pytest.mark.parametrize("lie", ["200 with a page", "200 with nothing", "200 with a refusal", "201 with a pod"])
async def test_a_success_that_was_none_is_written_again_at_once(any_world: World, lie: str) -> None:
    """The server has not heard of the binding: its gang would stay half bound."""
    world = any_world
    for number in range(2):
        await world.node(f"n{number}", cpu="1")
    history = await world.watch()
    status, body = LIES[lie]
    async with FalseProxy(world) as proxy:
        proxy.answer(lambda method, path: path.endswith("/pods/g-0/binding"), status, body, times=1)
        async with world.scheduler(kubeconfig=proxy.kubeconfig):
            await world.gang("g", 2)
            await history.until_bound(2, timeout=20)
    history.check([("g-", 2)])


@pytest.mark.parametrize("policy", ["navarch", "kube-scheduler"], ids=["by the Eviction API", "by deletion"])
@pytest.mark.parametrize("lie", [name for name in LIES if name.startswith(("404", "200"))])
async def test_an_eviction_that_did_not_happen_is_asked_for_again(any_world: World, lie: str, policy: str) -> None:
    world = any_world
    status, body = LIES[lie]
    await world.node("n0", cpu="1")
    history = await world.watch()
    await classes(world)
    async with FalseProxy(world) as proxy:
        path = f"/api/v1/namespaces/{world.namespace}/pods/low"
        evicting = {"navarch": ("POST", f"{path}/eviction"), "kube-scheduler": ("DELETE", path)}[policy]
        proxy.answer(lambda *asked: asked == evicting, status, body, times=1)
        proxy.answer(lambda *asked: asked == ("PATCH", f"{path}/status"), status, body, times=1)
        async with world.scheduler(kubeconfig=proxy.kubeconfig, policy=policy):
            await world.pod("low", cpu="1", priorityClassName=f"low-{world.namespace}")
            await history.until_bound(1, "low")
            await world.pod("high", cpu="1", priorityClassName=f"high-{world.namespace}")
            await history.until_bound(1, "high", timeout=30)
    assert history.broken == []
