"""Requests that a client should not send: each is refused as the client's mistake, and the server goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sqlite3
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.worlds.embedded.objects import binding, config_map, pod
from tests.worlds.embedded.server import Http, ServerThread

from navarch.embedded.api import server as server_module
from navarch.embedded.api.server import ApiServer
from navarch.embedded.api.writing import WriteOptions
from navarch.embedded.storage.sqlite_log import SqliteLog

pytestmark = pytest.mark.live
MAPS = "/api/v1/namespaces/default/configmaps"


def wire(api: Http) -> ssl.SSLSocket:
    parts = urlsplit(api.url)
    assert parts.hostname is not None
    plain = socket.create_connection((parts.hostname, parts.port), timeout=60)
    return ssl.create_default_context(cadata=api.ca_pem.decode()).wrap_socket(plain, server_hostname=parts.hostname)


def status_of(api: Http, head: bytes, body: bytes = b"") -> int:
    with wire(api) as connection:
        connection.sendall(head + b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        return int(connection.recv(4096).split()[1])


def test_a_token_that_is_not_text_is_refused(embedded: Http) -> None:
    assert status_of(embedded, b"GET /api/v1/pods HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \xff") == 401


def test_a_body_that_claims_to_be_compressed_is_refused(embedded: Http) -> None:
    token = embedded.token.encode()
    head = b"POST " + MAPS.encode() + b" HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nAuthorization: Bearer " + token
    assert status_of(embedded, head, json.dumps(config_map("zipped")).encode()) == 400


@pytest.mark.parametrize("metadata", [None, {}, {"name": None}, "x", 5, []])
def test_a_binding_without_a_name_is_refused(embedded: Http, metadata: Any) -> None:
    body = {"target": {"name": "n"}, **({} if metadata is None else {"metadata": metadata})}
    assert embedded.post("/api/v1/namespaces/default/bindings", body).code == 400


def test_a_binding_posted_to_the_collection_binds_its_pod(embedded: Http) -> None:
    assert embedded.post("/api/v1/namespaces/default/pods", pod("by-collection")).code == 201
    assert embedded.post("/api/v1/namespaces/default/bindings", binding("by-collection", "n")).code == 201
    assert embedded.get("/api/v1/namespaces/default/pods/by-collection").body["spec"]["nodeName"] == "n"


@pytest.mark.parametrize("query", ["limit", "timeoutSeconds", "resourceVersion", "continue", "gracePeriodSeconds"])
@pytest.mark.parametrize("value", ["9" * 5000, "²", "-1", "1:59:59"])
def test_numbers_that_are_none_are_refused(embedded: Http, query: str, value: str) -> None:
    method, path = ("DELETE", f"{MAPS}/none") if query == "gracePeriodSeconds" else ("GET", MAPS)
    assert embedded(method, path, query={query: value}).code in (400, 404, 410, 422, 504)


@pytest.mark.parametrize("kind", ["application/yaml", "application/json"])
def test_a_number_of_five_thousand_digits_is_refused(embedded: Http, kind: str) -> None:
    body = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "digits", "generation": ' + b"9" * 5000 + b"}}"
    assert embedded("POST", MAPS, body, content_type=kind).code == 400


def test_a_label_selector_compares_only_numbers_that_fit(embedded: Http) -> None:
    assert embedded.get(MAPS, labelSelector="a>" + "9" * 5000).code == 400


def test_a_connection_that_sends_no_headers_is_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server_module, "HEADER_SECONDS", 0.2)
    thread = ServerThread()
    with thread:
        assert thread.server is not None
        slow = Http(thread.server.url, thread.server.token, thread.server.ca_pem, tmp_path)
        with wire(slow) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n")
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                assert connection.recv(100) == b""
        assert slow.get("/version").code == 200
        slow.close()


async def test_a_server_whose_disk_is_full_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async with ApiServer(data_dir=tmp_path) as server:
        await server.store.settled()
        monkeypatch.setattr("navarch.embedded.storage.sqlite_log.SqliteLog.append_rows", full)
        kind = server.registry.find("", "v1", "configmaps")
        assert kind is not None
        server.operations.create(kind, "default", config_map("one"), WriteOptions())
        while server.store.failure is None:
            await asyncio.sleep(0)
        client = Http(server.url, server.token, server.ca_pem, tmp_path)
        answers = await asyncio.to_thread(lambda: [client.get(path).code for path in ("/readyz", "/healthz", "/livez")])
        client.close()
        assert answers == [500, 500, 200]


def test_the_stores_file_is_its_owners_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    log = SqliteLog(tmp_path / "store.db")
    try:
        modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    finally:
        asyncio.run(log.close())
    assert modes and not any(modes.values())
