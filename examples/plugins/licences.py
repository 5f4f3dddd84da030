"""A plugin of your own with a live side: a pod that needs a licence is bound only when a licence server has reserved one for it.

A pod names what it needs by the label `example.com/licence`. Before its binding is sent, the plugin asks the server for a licence. If
none is free the pod is not bound and waits; the pods of a gang get all their licences, or give back what they got. A pod that is not
bound after all gives its licence back. A pod that has ended is the business of the licence server, which watches pods, or of the job.

    python examples/licence_server.py --port 8090 solver=2 &
    navarch up --policy examples/licences.conf --plugin-dir examples/plugins
"""

from __future__ import annotations

from typing import Any

import aiohttp

from navarch.engine.arguments import Argument, Arguments
from navarch.engine.plugin import Plugin
from navarch.engine.points.bind_hooks import BindHooks, Placement, Refused

LABEL = "example.com/licence"


class LicenceHooks(BindHooks):
    """Reserves licences by the uid of the pod: asking twice for the same pod takes one licence."""

    timeout = 10.0

    def __init__(self, arguments: Arguments, client: Any) -> None:
        super().__init__(arguments, client)
        self._server = arguments.text("server").rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    def wants(self, placement: Placement) -> bool:
        return LABEL in placement.labels

    async def pre_bind(self, placement: Placement) -> None:
        async with self._http().put(self._lease(placement)) as answer:
            if answer.status == 409:
                raise Refused(f"no licence {placement.labels[LABEL]!r} is free")
            answer.raise_for_status()

    async def undo(self, placement: Placement) -> None:
        async with self._http().delete(self._lease(placement)) as answer:
            answer.raise_for_status()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _lease(self, placement: Placement) -> str:
        return f"{self._server}/licences/{placement.labels[LABEL]}/leases/{placement.uid}"

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session


class Licences(Plugin):
    """Binds a pod that needs a licence only when a licence server has reserved one"""

    name = "licences"
    arguments = (Argument("server", "str", "http://127.0.0.1:8090", "URL of the licence server"),)
    live = LicenceHooks
