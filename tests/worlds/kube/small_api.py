"""A small real HTTP server that lists and watches like an API server, and misbehaves on request.

Only what the tests of `navarch.kube` need: collections in memory with one counter of versions, paged lists, watches with
bookmarks and WatchList, and faults that a well-behaved server cannot be made to show at a chosen moment.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Any

import msgspec
from aiohttp import web
from tests.worlds.kube.ports import hold_port

from navarch.kube.answers import target_of

Object = dict[str, Any]
POD_LIST = "/api/v1/pods"


def status_body(code: int, reason: str, message: str = "", **extra: Any) -> Object:
    text = message or reason
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": text, **extra}


class Watcher:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.cut = False


class SmallApi:
    """`await SmallApi().start()`; `url` is where it listens."""

    def __init__(self, *, watch_list: bool = True, ssl_context: ssl.SSLContext | None = None) -> None:
        self.version = 100
        self.collections: dict[str, dict[tuple[str, str], Object]] = {POD_LIST: {}}
        self.history: dict[str, list[tuple[int, bytes]]] = {POD_LIST: []}
        self.compacted = 0
        self.watch_list = watch_list
        self.watch_list_code = 422
        self.unwatchable: tuple[int, Object] = (0, {})
        """Watches from versions up to this one are answered so."""
        self.end_initial = True
        self.watchers: list[tuple[str, Watcher]] = []
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.peers: list[str | None] = []
        """For each request the common name of the client's certificate, if it showed one."""
        self.run_out: set[str] = set()
        """Whose certificates have run out: an API server says so at each request, not only to new connections."""
        self.script: deque[tuple[int, dict[str, str], Any]] = deque()
        """Replies given in order before anything else: (status, headers, body). A body of bytes is sent as it is."""
        self.lost = False
        """A proxy that has lost its server answers for it."""
        self.refuse: dict[str, tuple[int, Any]] = {}
        """Paths that are always answered so: (status, body)."""
        self.watch_started = asyncio.Event()
        self._asked = asyncio.Event()
        self._ssl = ssl_context
        self._runner: web.AppRunner | None = None
        self._held = hold_port()
        self.port: int = self._held.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{self.port}"

    async def start(self) -> SmallApi:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._ssl)
        await site.start()
        return self

    async def restart(self, ssl_context: ssl.SSLContext) -> None:
        """The same port with other certificates."""
        await self.stop()
        self._ssl = ssl_context
        await self.start()

    async def stop(self) -> None:
        """Until it is started again, connections are refused."""
        self.cut_watches()
        assert self._runner is not None
        await self._runner.cleanup()

    def close(self) -> None:
        self._held.close()

    # What a test does to the cluster.

    async def asked(self, times: int) -> None:
        """Wait until this many requests have come."""
        async with asyncio.timeout(120):
            while len(self.requests) < times:
                self._asked.clear()
                await self._asked.wait()

    def put(self, name: str, *, namespace: str = "default", path: str = POD_LIST, uid: str = "", **fields: Any) -> Object:
        """Create or modify an object and tell the watchers."""
        self.version += 1
        key = (namespace, name)
        old = self.collections[path].get(key)
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": uid or (old["metadata"]["uid"] if old else f"uid-{name}"),
            "resourceVersion": str(self.version),
        }
        new = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **fields}
        self.collections[path][key] = new
        self._emit(path, "MODIFIED" if old else "ADDED", new)
        return new

    def remove(self, name: str, *, namespace: str = "default", path: str = POD_LIST, quietly: bool = False) -> None:
        self.version += 1
        old = self.collections[path].pop((namespace, name))
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        if not quietly:
            self._emit(path, "DELETED", last)

    def bookmark(self, path: str = POD_LIST, version: int | None = None) -> None:
        body = self.bookmark_line(version or self.version)
        self.send_raw(body, path)

    def send_raw(self, line: bytes, path: str = POD_LIST) -> None:
        for where, watcher in self.watchers:
            if where == path:
                watcher.queue.put_nowait(line)

    def cut_watches(self) -> None:
        """End every stream in the middle of nowhere, as a killed server does."""
        for _, watcher in self.watchers:
            watcher.cut = True
            watcher.queue.put_nowait(None)

    def end_watches(self) -> None:
        """End every stream properly, as a server does at `timeoutSeconds`."""
        for _, watcher in self.watchers:
            watcher.queue.put_nowait(None)

    def forget_history(self) -> None:
        """Compaction: every version up to now is too old to watch from."""
        self.compacted = self.version

    # How it answers.

    def _emit(self, path: str, kind: str, body: Object) -> None:
        line = msgspec.json.encode({"type": kind, "object": body}) + b"\n"
        self.history.setdefault(path, []).append((self.version, line))
        self.send_raw(line, path)

    @staticmethod
    def bookmark_line(version: int, *, end: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(version)}
        if end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        event = {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}
        return msgspec.json.encode(event) + b"\n"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.peers.append(_peer_name(request))
        self._asked.set()
        self.bodies.append(await request.read())
        if self.peers[-1] in self.run_out:
            return self._refuse(401, "Unauthorized")
        if self.lost:
            return web.Response(status=404, text="404 page not found\n")
        if self.script:
            status, headers, body = self.script.popleft()
            return web.Response(status=status, headers=headers, body=body if isinstance(body, bytes) else msgspec.json.encode(body))
        if request.path in self.refuse:
            status, body = self.refuse[request.path]
            return web.json_response(body, status=status)
        if request.method == "GET" and request.path in self.collections:
            if request.query.get("watch") == "true":
                return await self._watch(request)
            return self._list(request)
        if request.method == "GET" and (found := self._discovery(request.path)) is not None:
            return web.json_response(found)
        if request.method == "GET":
            target = target_of(request.path)
            return self._refuse(404, "NotFound", details={"name": target.name, "group": target.group, "kind": target.plural})
        return web.json_response({"kind": "Status", "status": "Success", "code": 201}, status=201)

    def _discovery(self, path: str) -> Object | None:
        """What the collections say of groups and kinds."""
        served = [each.removeprefix("/apis/").split("/") for each in self.collections if each.startswith("/apis/")]
        if path == "/apis":
            versions = [{"versions": [{"groupVersion": f"{group}/{version}"}]} for group, version, *_ in served]
            return {"kind": "APIGroupList", "groups": versions}
        kinds = [{"name": plural} for group, version, plural, *_ in served if path == f"/apis/{group}/{version}"]
        return {"kind": "APIResourceList", "resources": kinds} if kinds else None

    @staticmethod
    def _refuse(code: int, reason: str, message: str = "", **extra: Any) -> web.Response:
        return web.json_response(status_body(code, reason, message, **extra), status=code)

    def _list(self, request: web.Request) -> web.Response:
        items = [body for _, body in sorted(self.collections[request.path].items())]
        limit, start = int(request.query.get("limit", 0)), int(request.query.get("continue", 0))
        metadata: Object = {"resourceVersion": str(self.version)}
        if limit and start + limit < len(items):
            metadata["continue"] = str(start + limit)
        page = items[start : start + limit] if limit else items
        body = msgspec.json.encode({"kind": "PodList", "metadata": metadata, "items": page or None})
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        path, initial = request.path, request.query.get("sendInitialEvents") == "true"
        if initial and not self.watch_list:
            return self._refuse(self.watch_list_code, "Invalid", "sendInitialEvents is forbidden for watch")
        since = int(request.query.get("resourceVersion") or 0)
        if since and since <= self.unwatchable[0]:
            return web.json_response(self.unwatchable[1], status=self.unwatchable[1]["code"])
        if since and since < self.compacted:
            return self._refuse(410, "Expired", f"too old resource version: {since} ({self.compacted})")
        if since > self.version:
            return self._refuse(504, "Timeout", f"Too large resource version: {since}, current: {self.version}")
        reply = web.StreamResponse(headers={"Content-Type": "application/json"})
        reply.enable_chunked_encoding()
        await reply.prepare(request)
        watcher = Watcher()
        entry = (path, watcher)
        if initial:
            for _, body in sorted(self.collections[path].items()):
                watcher.queue.put_nowait(msgspec.json.encode({"type": "ADDED", "object": body}) + b"\n")
            if self.end_initial:
                watcher.queue.put_nowait(self.bookmark_line(self.version, end=True))
        else:
            for version, line in self.history.get(path, ()):
                if version > since:
                    watcher.queue.put_nowait(line)
        self.watchers.append(entry)
        self.watch_started.set()
        try:
            while (event := await watcher.queue.get()) is not None:
                await reply.write(event)
        finally:
            self.watchers.remove(entry)
        if watcher.cut and request.transport is not None:
            request.transport.abort()
        return reply


def _peer_name(request: web.Request) -> str | None:
    connection = request.get_extra_info("ssl_object")
    certificate = connection.getpeercert() if connection is not None else None
    if not certificate:
        return None
    return next(str(value) for part in certificate["subject"] for name, value in part if name == "commonName")
