"""Faults of the embedded API server, seeded: in the end the handler's books and the server's agree."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.worlds.kube.servers import Live
from tests.worlds.kube.watching import Pod, Recorder, informing

from navarch.kube.client import Client
from navarch.kube.errors import ApiError, OutcomeUnknown, TransportError, Unreachable
from navarch.kube.resources import PODS
from navarch.kube.write.http1 import Reply
from navarch.kube.write.pool import Outcome, WritePool, bind_write

pytestmark = pytest.mark.live


class Churn:
    """Creates, binds and deletes pods. It never reads, so that faults on reads strike the informer only."""

    def __init__(self, live: Live, seed: int) -> None:
        self.live = live
        self.rng = random.Random(seed)
        self.unbound: dict[str, str] = {}
        """The uid of each pod that is there and not yet bound."""
        self.names: list[str] = []

    async def step(self) -> None:
        client, namespace = self.live.client, self.live.namespace
        draw = self.rng.random()
        if draw < 0.5 or not self.names:
            # Few names, so that many a pod is deleted and made again under the same one.
            name = self.rng.choice([f"p{number}" for number in range(40) if f"p{number}" not in self.names])
            made = await self.live.pod(name)
            self.names.append(name)
            self.unbound[name] = made["metadata"]["uid"]
        elif draw < 0.75 and self.unbound:
            name = self.rng.choice(sorted(self.unbound))
            await client.bind(namespace, name, uid=self.unbound.pop(name), node="n1")
        else:
            name = self.rng.choice(self.names)
            self.names.remove(name)
            self.unbound.pop(name, None)
            await client.delete(PODS, name, namespace=namespace, grace_period=0)


async def truth(live: Live) -> dict[str, str]:
    listing = await live.client.list(PODS, Pod, namespace=live.namespace)
    return {pod.metadata.uid: pod.metadata.resource_version for pod in listing.items}


def told(seen: Recorder) -> dict[str, str]:
    return {uid: pod.metadata.resource_version for uid, pod in seen.alive.items()}


@pytest.mark.parametrize("seed", range(4))
async def test_an_informer_through_cut_watches_lost_history_and_refusals(embedded: Live, seed: int) -> None:
    server, seen, rng = embedded.embedded, Recorder(), random.Random(seed)
    assert server is not None
    churn = Churn(embedded, seed)
    async with informing(embedded.client, seen, namespace=embedded.namespace) as informer:
        for _ in range(60):
            await churn.step()
            draw = rng.random()
            if draw < 0.15:
                server.faults.cut_watches()
            elif draw < 0.25:
                server.faults.expire_history()
                server.faults.cut_watches()
            elif draw < 0.35:
                code = rng.choice([429, 500, 503, 504])
                server.faults.errors(code, method="GET", path="/pods", times=rng.randrange(1, 3))
                server.faults.cut_watches()
            elif draw < 0.4:
                server.faults.delay(0.05, path="/pods", method="GET", times=1)
        server.faults.clear()
        expected = await truth(embedded)
        await seen.until(lambda: told(seen) == expected)
        assert {key[1] for key in informer.store} == set(churn.names)


async def test_an_informer_through_restarts(embedded: Live) -> None:
    server, seen = embedded.embedded, Recorder()
    assert server is not None
    churn = Churn(embedded, 9)
    async with informing(embedded.client, seen, namespace=embedded.namespace):
        for _ in range(5):
            for _ in range(5):
                await churn.step()
            await server.faults.restart(down=0.05)
        expected = await truth(embedded)
        await seen.until(lambda: told(seen) == expected)


@pytest.mark.parametrize("seed", range(3))
async def test_every_binding_has_one_true_outcome(embedded: Live, seed: int) -> None:
    """Restarts and refusals in the midst of binding: what the pool says is what the server did."""
    server, rng = embedded.embedded, random.Random(seed)
    assert server is not None
    pods = [await embedded.pod(f"p{number}") for number in range(80)]
    server.faults.errors(429, path="/binding", rate=0.1, seed=seed)
    server.faults.errors(500, path="/binding", rate=0.1, seed=seed + 1)
    server.faults.delay(0.02, path="/binding", rate=0.3, seed=seed + 2)
    pool = WritePool(embedded.endpoint, connections=8, rng=random.Random(seed))
    outcomes: dict[str, list[Outcome]] = {}

    def submit(pod: dict[str, dict[str, str]]) -> None:
        metadata = pod["metadata"]
        write = bind_write(embedded.namespace, metadata["name"], metadata["uid"], "n1")
        write.timeout = 60.0
        pool.submit(write, outcomes.setdefault(metadata["name"], []).append)

    for start in range(0, len(pods), 20):
        for pod in pods[start : start + 20]:
            submit(pod)
        await asyncio.sleep(0.01 * rng.random())
        await server.faults.restart(down=0.02)
    assert await pool.drain(timeout=120)
    await pool.close()
    server.faults.clear()
    listing = await embedded.client.list(PODS, Pod, namespace=embedded.namespace)
    bound = {pod.metadata.name for pod in listing.items if pod.spec.node_name}
    for name, (outcome,) in outcomes.items():  # exactly one each
        if isinstance(outcome, Reply):
            assert name in bound
        elif isinstance(outcome, (ApiError, Unreachable)):
            assert name not in bound, f"{name} was said to be refused: {outcome}"
        else:
            assert isinstance(outcome, OutcomeUnknown)
    assert len(outcomes) == 80
    assert sum(isinstance(outcome, Reply) for (outcome,) in outcomes.values()) > 20


async def test_a_client_waits_for_a_server_that_restarts(embedded: Live) -> None:
    server = embedded.embedded
    assert server is not None
    await embedded.pod("p")
    restarting = asyncio.create_task(server.faults.restart(down=0.3))
    await asyncio.sleep(0)
    async with Client(embedded.endpoint, attempts=12) as client:  # a slow machine is away for longer
        for _ in range(20):
            try:
                pod = await client.get(PODS, "p", namespace=embedded.namespace)
            except TransportError as error:  # pragma: no cover - would be a failure of the retries
                pytest.fail(f"a read was not repeated: {error}")
            assert pod["metadata"]["name"] == "p"
    await restarting
