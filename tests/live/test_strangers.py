"""Strangers who reach the port for operators: what they send takes neither the lease nor the place of others."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections import Counter
from contextlib import suppress

import aiohttp
import pytest
from tests.worlds.kube.ports import held_port
from tests.worlds.live.cluster import LeaseOptions, World, end
from tests.worlds.live.slow_proxy import SlowProxy

from navarch.live.scheduler import Scheduler

pytestmark = pytest.mark.live

SHORT = LeaseOptions(leader_elect=True, lease_duration=8.0, renew_deadline=6.0, retry_period=0.5)
FROM_AFAR = {"X-Forwarded-For": "192.0.2.1"}


async def until_leading(world: World, scheduler: Scheduler) -> str:
    await world.eventually(lambda: asyncio.sleep(0, scheduler.leading), bool)
    return f"http://127.0.0.1:{scheduler.operator_server.health.port}"


async def test_requests_with_random_tokens_do_not_take_the_lease(any_world: World, caplog: pytest.LogCaptureFixture) -> None:
    """600 at a time, for longer than the lease lasts; the API server takes two seconds for each token."""
    world = any_world
    caplog.set_level(logging.ERROR)
    lease = LeaseOptions(**SHORT, lock_namespace=world.namespace)
    async with (
        SlowProxy(world, "tokenreviews", 2.0) as proxy,
        world.scheduler(kubeconfig=proxy.kubeconfig, listen="127.0.0.1:0", **lease) as scheduler,
    ):
        url = await until_leading(world, scheduler)
        clock = asyncio.get_running_loop().time
        until, answers = clock() + 12.0, set[int]()

        async def stranger(session: aiohttp.ClientSession, number: int) -> None:
            turn = 0
            while clock() < until:
                turn += 1
                path = ("/state", "/debug/snapshot")[number % 2]
                headers = {**FROM_AFAR, "Authorization": f"Bearer {number}-{turn}"}
                async with session.get(url + path, headers=headers) as answer:
                    answers.add(answer.status)
                await asyncio.sleep(0.5)

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(stranger(session, number) for number in range(600)))
        assert scheduler.leading and answers <= {403, 503}
        assert proxy.slowed > 0
    assert not [record for record in caplog.records if "lost the lease" in record.getMessage()]


async def test_half_a_request_holds_no_descriptor_that_a_binding_needs(world: World) -> None:
    """A process that may open 200 files, and 400 connections that never finish their headers."""
    await world.node("n0")
    history = await world.watch()
    with held_port() as port:
        pass
    command = f"ulimit -n 200; exec {sys.executable} -m navarch.cli.run --kubeconfig={world.kubeconfig} --no-leader-elect"
    with world.log_of("").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", f"{command} --listen=127.0.0.1:{port}", stdout=log, stderr=log, env=dict(os.environ)
        )
    try:
        await world.pod("first")
        await history.until_bound(1)
        sockets = []
        for _ in range(400):
            made = socket.create_connection(("127.0.0.1", port))
            made.sendall(b"GET /metrics HTTP/1.1\r\nHost: x")
            sockets.append(made)
        await asyncio.to_thread(ended, sockets[0])
        await world.pod("second")
        await history.until_bound(2, timeout=30)
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/livez") as answer:
            assert answer.status == 200
        for each in sockets:
            each.close()
    finally:
        await end(process, signal.SIGTERM)
    lines = world.log_of("").read_text(encoding="utf-8").splitlines()
    assert max(Counter(line[24:] for line in lines).values()) < 20, "no line fills the disk"


def ended(connection: socket.socket) -> None:
    """Wait until the other side has closed it."""
    with suppress(ConnectionError):
        while connection.recv(100):
            pass
