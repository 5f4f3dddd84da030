"""Which Host headers are answered.

A page that a browser loaded from elsewhere can point a name of its own at this machine (DNS rebinding). Its requests then carry that
name in the Host header. Only `localhost`, IP addresses and names that the administrator gave are answered.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from navarch.live.ops.health import names_this_machine
from navarch.web.errors import RequestError


class HostCheck:
    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in names)

    def check(self, request: web.Request) -> None:
        host = request.headers.get("Host", "").lower()
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        if name not in self._names and not names_this_machine(host):
            raise RequestError(403, "WrongHost", "this name is not one of this server's; --host adds one")
