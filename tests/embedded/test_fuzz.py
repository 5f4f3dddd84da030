"""Malformed requests of every kind: the server refuses them with a Status, never with a 500, and goes on serving.

Three generators: mutations of good requests (values replaced, removed, nested), bytes that are no HTTP body at all, and
raw bytes on the socket. After each round the server answers a good request and holds no watch or connection more.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.worlds.embedded.objects import config_map
from tests.worlds.embedded.server import Http, ServerThread
from tests.worlds.hostile import NAMESPACE, REQUESTS, check_answer, mutated, prepare

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def server() -> Any:
    thread = ServerThread()
    with thread:
        yield thread


@pytest.fixture(scope="module")
def api(server: ServerThread, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from tests.worlds.embedded.server import http_of

    assert server.server is not None
    client = http_of(server.server, tmp_path_factory.mktemp("fuzz"))
    prepare(client)
    yield client
    client.close()


def test_mutated_requests_are_refused_not_failed(api: Http, server: ServerThread) -> None:
    chance = random.Random(20260101)
    for _ in range(1200):
        method, path, body, kind = chance.choice(REQUESTS)
        sent = mutated(body, chance)
        answer = api(method, path, sent, content_type=f"application/{kind}")
        check_answer(answer.code, answer.body, (method, path, sent))
    assert api.get(f"{NAMESPACE}/configmaps/kept").code == 200
    assert server.server is not None
    assert not [watch for watch in server.server.store.watches() if watch.is_remote]


QUERIES = [
    "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "limit", "continue", "timeoutSeconds", "dryRun",
    "sendInitialEvents", "allowWatchBookmarks", "fieldManager", "fieldValidation", "propagationPolicy", "gracePeriodSeconds",
    "includeObject", "force", "orphanDependents",
]  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    parts=st.lists(
        st.sampled_from(["api", "apis", "v1", "apps", "namespaces", "default", "pods", "kept", "status", "watch", "scale"])
        | st.text(max_size=6),
        max_size=8,
    ),
    query=st.dictionaries(st.sampled_from(QUERIES), st.text(max_size=12) | st.sampled_from(["0", "1", "true", "a in (", "!"])),
    accept=st.sampled_from(["*/*", "application/json;as=Table;v=v1;g=meta.k8s.io", "a/b", "application/json;as=;v", ";;,"]),
    body=st.none() | st.binary(max_size=40) | st.sampled_from([b"{}", b"[]", b"null", b'{"a":', b"k8s\x00\n\x08", b"\xff\xfe"]),
    kind=st.sampled_from(["json", "yaml", "vnd.kubernetes.protobuf", "merge-patch+json", "apply-patch+yaml", "zz"]),
)
def test_random_requests(
    api: Http, method: str, parts: list[str], query: dict[str, str], accept: str, body: bytes | None, kind: str
) -> None:
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    if method == "DELETE" and path.rstrip("/").endswith(("pods", "default", "namespaces", "kept", "v1")):
        return
    answer = api(method, path, body, content_type=f"application/{kind}", query=query, Accept=accept)
    check_answer(answer.code, answer.body, (method, path, query, accept, body, kind))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(body=st.binary(max_size=120), kind=st.sampled_from(["Pod", "Namespace", "ConfigMap", "Lease", "Deployment"]))
def test_random_protobuf(api: Http, body: bytes, kind: str) -> None:
    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    version = "apps/v1" if kind == "Deployment" else "coordination.k8s.io/v1" if kind == "Lease" else "v1"
    envelope = b"k8s\x00" + field(1, field(1, version.encode()) + field(2, kind.encode())) + field(2, body)
    answer = api("POST", f"{NAMESPACE}/pods", envelope, content_type="application/vnd.kubernetes.protobuf")
    check_answer(answer.code, answer.body, body)


def test_bodies_that_are_too_much(api: Http) -> None:
    deep = b"[" * 5000 + b"]" * 5000
    assert api("POST", f"{NAMESPACE}/configmaps", deep).code == 400
    nested = b'{"a":' * 900 + b"1" + b"}" * 900
    assert api("POST", f"{NAMESPACE}/configmaps", b'{"metadata":{"name":"x"},"data":' + nested + b"}").code == 400
    large = json.dumps(config_map("large", {"a": "x" * (4 * 1024 * 1024)})).encode()
    refused = api("POST", f"{NAMESPACE}/configmaps", large)
    assert (refused.code, refused.reason) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/v1/nodes HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/v1/nodes HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET " + b"/" * 70000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request(api: Http, raw: bytes) -> None:
    parts = urlsplit(api.url)
    context = ssl.create_default_context(cadata=api.ca_pem.decode())
    assert parts.hostname is not None
    plain = socket.create_connection((parts.hostname, parts.port), timeout=60)
    with plain, context.wrap_socket(plain, server_hostname=parts.hostname) as wire:
        answer = b""
        # A server that refuses after the first bytes may hang up before it has read the last.
        with contextlib.suppress(ssl.SSLEOFError, ConnectionError):
            wire.sendall(raw)
            answer = wire.recv(200)
    assert not answer or b" 400 " in answer or b" 401 " in answer or b" 505 " in answer
    assert api.get("/readyz").code == 200
