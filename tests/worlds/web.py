"""A dashboard over an API server, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientTimeout
from tests.worlds.live.cluster import IMPATIENT, World

from navarch.installed import installed
from navarch.kube.auth.access_review import AccessReview
from navarch.kube.connect import connect
from navarch.offline.policies import read_policy
from navarch.web.server import Follow, WebOptions, WebServer

PATIENCE = 60.0


class Dashboard:
    """`server` and a session with its token."""

    def __init__(self, server: WebServer, session: ClientSession) -> None:
        self.server, self.session = server, session
        self.origin = f"http://127.0.0.1:{server.port}"

    async def get(self, path: str, status: int = 200, **params: Any) -> Any:
        async with self.session.get(f"/api/v1/{path}", params=params or None) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return json.loads(text)

    async def rows(self, **params: Any) -> dict[str, dict[str, Any]]:
        """Jobs by id, each by column."""
        found = await self.get("jobs", **params)
        return {row[0]: dict(zip(found["columns"], row, strict=True)) for row in found["rows"]}

    async def until(self, path: str, holds: Callable[[Any], bool], **params: Any) -> Any:
        """Ask until the answer is right."""
        answer: Any = None
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds(answer := await self.get(path, **params)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not within {PATIENCE:g} s; the last answer was {answer}") from None
        return answer

    async def ready(self) -> None:
        """Wait until the cluster has been read."""
        async with asyncio.timeout(PATIENCE):
            while not self.server.state.ready:
                await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def events(self, **params: Any) -> AsyncIterator[EventReader]:
        headers = {"Last-Event-ID": params.pop("last")} if "last" in params else {}
        async with self.session.get("/api/v1/events", params=params, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.content_type == "text/event-stream"
            yield EventReader(answer.content)


class EventReader:
    def __init__(self, content: asyncio.StreamReader | Any) -> None:
        self._content = content

    async def next(self) -> tuple[str, str, Any]:
        """Name, id and data of the next event."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._content:
                text = line.decode().rstrip("\n")
                if not text and "data" in fields:
                    return fields["event"], fields["id"], json.loads(fields["data"])
                name, _, value = text.partition(": ")
                fields[name] = value
        raise AssertionError("the stream ended")

    async def until(self, holds: Callable[[str, Any], bool]) -> Any:
        """The data of the first event for which this holds."""
        async with asyncio.timeout(PATIENCE):
            while True:
                name, _, data = await self.next()
                if holds(name, data):
                    return data


@contextlib.asynccontextmanager
async def dashboard(
    world: World,
    kubeconfig: Path | None = None,
    policy: str = "navarch",
    access: AccessReview | None = None,
    follow: Follow | None = None,
    **options: Any,
) -> AsyncIterator[Dashboard]:
    """A dashboard of the world's cluster, once it has read all of it. `access` reviews tokens instead of the API server."""
    registry = installed()
    endpoint = connect(kubeconfig) if kubeconfig is not None else world.endpoint()
    given = WebOptions(
        listen="127.0.0.1:0", seed=1, step=0.05, patience=IMPATIENT, kubeconfig=kubeconfig or world.kubeconfig, **options
    )
    server = WebServer(endpoint, read_policy(policy, registry), registry, given, access=access, follow=follow)
    await server.start()
    running = asyncio.create_task(server.run())
    headers = {"Authorization": f"Bearer {server.token_login.token}"}
    try:
        async with ClientSession(f"http://127.0.0.1:{server.port}", headers=headers, timeout=ClientTimeout(PATIENCE)) as session:
            made = Dashboard(server, session)
            async with asyncio.timeout(PATIENCE):
                while not server.state.ready and not running.done():
                    await asyncio.sleep(0.02)
            if running.done():
                await running
            yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop()
