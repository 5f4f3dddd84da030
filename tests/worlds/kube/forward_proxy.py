"""A proxy as companies have them: CONNECT and nothing else, with an account or without, over TLS or not."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import yaml

NAME = "api.company.invalid"
"""An API server's name that no machine resolves but the proxy."""
TARGET = f"{NAME}:6443"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def behind(kubeconfig: Path, cluster: dict[str, Any]) -> Path:
    """Change a kubeconfig so that its server is called by `NAME`; its certificate is for localhost."""
    document = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    changes = {"server": f"https://{TARGET}", "tls-server-name": "localhost", **cluster}
    document["clusters"][0]["cluster"].update(changes)
    copy = kubeconfig.with_name("behind-a-proxy")
    copy.write_text(yaml.safe_dump(document), encoding="utf-8")
    return copy


class ForwardProxy:
    """`routes` says where names lead that only the proxy can resolve. All that was asked for is in `asked`."""

    def __init__(self, routes: dict[str, int] | None = None, ssl_context: ssl.SSLContext | None = None) -> None:
        self.routes = routes or {}
        self.wanted = ""
        """The `Proxy-Authorization` that is asked for; empty for none."""
        self.instead: bytes | None = None
        """Sent instead of opening a tunnel, and then it hangs up. None: it opens one."""
        self.mute = False
        """It takes connections and says nothing."""
        self.established = ESTABLISHED
        """How it says yes; some are of the last century."""
        self.asked: list[tuple[str, str]] = []
        """(target, Proxy-Authorization) of each CONNECT."""
        self.carried = bytearray()
        """All that went through the tunnels towards servers."""
        self.shown: list[object] = []
        """For each connection to it the certificate that it was shown."""
        self.tunnels = 0
        self.port = 0
        self._ssl = ssl_context
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self._ssl else 'http'}://{self.address}"

    async def __aenter__(self) -> ForwardProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._ssl)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """End all tunnels that are open."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        self.shown.append(writer.get_extra_info("peercert"))
        try:
            await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            return  # the client has gone
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in lines)}
        method, target, version = line.split(" ")
        assert (method, version, headers["host"]) == ("CONNECT", "HTTP/1.1", target)
        self.asked.append((target, headers.get("proxy-authorization", "")))
        if self.mute:
            await reader.read()
        elif self.instead is not None:
            await _hang_up_with(writer, self.instead)
        elif headers.get("proxy-authorization", "") != self.wanted:
            await _hang_up_with(writer, b"HTTP/1.1 407 Go away\r\nProxy-Authenticate: Basic\r\nContent-Length: 9\r\n\r\n<p>No</p>")
        else:
            await self._join(target, reader, writer)

    async def _join(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = target.rpartition(":")
        if target in self.routes:
            host, port = "127.0.0.1", str(self.routes[target])
        try:
            answers, server = await asyncio.open_connection(host, int(port))
        except OSError:
            await _hang_up_with(writer, b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        self._writers.add(server)
        self.tunnels += 1
        try:
            await _say(writer, self.established)
            back = asyncio.create_task(_pass_on(answers, writer))
            await _pass_on(reader, server, self.carried)
            await back
        finally:
            server.transport.abort()
            self._writers.discard(server)


async def _say(writer: asyncio.StreamWriter, what: bytes) -> None:
    writer.write(what)
    await writer.drain()


async def _hang_up_with(writer: asyncio.StreamWriter, what: bytes) -> None:
    writer.write(what)
    writer.close()
    await writer.wait_closed()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, copy: bytearray | None = None) -> None:
    """Until either end is gone; then the other one goes as well."""
    try:
        while piece := await reader.read(64 * 1024):
            if copy is not None:
                copy += piece
            await _say(writer, piece)
    except OSError:
        return
    finally:
        writer.close()
