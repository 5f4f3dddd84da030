"""One connection of the write pool: what its requests look like, and which bytes are an answer to them."""

from __future__ import annotations

import asyncio

import pytest
from tests.worlds.kube.raw_server import Request, reply
from tests.worlds.kube.write_pool import Rotating, endless_backoff, nonsense, pooled, post, until

from navarch.kube.auth.credentials import StaticCredentials
from navarch.kube.auth.tls import Tls
from navarch.kube.connect import Endpoint
from navarch.kube.errors import Conflict, OutcomeUnknown
from navarch.kube.write.connection import RequestHead


def sent(endpoint: Endpoint, content_type: str = "application/json") -> Request:
    head = RequestHead(endpoint)
    assert head.current() is not None
    lines, _, body = head.request("PATCH", "/api/v1/x", content_type, b'{"a": 1}').partition(b"\r\n\r\n")
    return Request(lines, body, 0)


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://api.example.com", "api.example.com"),
        ("https://api.example.com:443", "api.example.com"),
        ("https://api.example.com:6443", "api.example.com:6443"),
        ("https://api.example.com:80", "api.example.com:80"),
        ("http://api.example.com", "api.example.com"),
        ("http://api.example.com:443", "api.example.com:443"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
        ("https://[fd00::1]", "[fd00::1]"),
    ],
)
def test_the_host_is_named_as_in_the_url(server: str, host: str) -> None:
    tls = Tls(insecure=True) if server.startswith("https") else None
    assert sent(Endpoint(server, tls=tls)).headers["host"] == host


def test_a_request_has_all_that_others_need_to_let_it_through() -> None:
    """The path prefix of a proxy, the impersonated user, the credential, and the media types."""
    headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "dev"))
    endpoint = Endpoint(
        "http://rancher/k8s/clusters/c-1/", headers=headers, user_agent="navarch/1", credentials=StaticCredentials.token("t")
    )
    request = sent(endpoint, "application/merge-patch+json")
    assert (request.method, request.path, request.body) == ("PATCH", "/k8s/clusters/c-1/api/v1/x", b'{"a": 1}')
    assert request.headers == {
        "host": "rancher",
        "accept": "application/json",
        "user-agent": "navarch/1",
        "impersonate-user": "jane",
        "impersonate-group": "dev",
        "authorization": "Bearer t",
        "content-type": "application/merge-patch+json",
        "content-length": "8",
    }


def test_no_authorization_header_is_sent_without_a_credential() -> None:
    assert "authorization" not in sent(Endpoint("http://h")).headers


async def test_each_request_has_the_credential_of_its_time_and_no_other() -> None:
    credentials = Rotating()
    head = RequestHead(Endpoint("http://h", credentials=credentials))
    assert head.current() is None
    for number in (1, 2):
        credentials.rejected()
        await head.fetch()
        assert head.current() is not None
        request = head.request("POST", "/", "application/json", b"")
        assert request.count(b"Authorization: ") == 1 and f"Authorization: Bearer {number}\r\n".encode() in request


async def test_unrequested_bytes_answer_no_write() -> None:
    """A 201 that comes too late, or twice, must not be taken for the answer to the next binding."""
    more = asyncio.Event()

    async def twice(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(200))
        await more.wait()
        writer.write(reply(201))
        await writer.drain()

    def answer(request: Request) -> bytes:
        return reply(409, b'{"kind": "Status", "code": 409}')

    async with pooled(lambda request: twice if request.path.endswith("first") else answer(request), connections=1) as (pool, server):
        assert (await pool.request(post("first"))).status == 200
        await until(lambda: pool.idle == 1)
        more.set()
        await until(lambda: pool.idle == 0)
        with pytest.raises(Conflict):
            await pool.request(post("second"))
        assert [request.connection for request in server.requests] == [0, 1]


async def test_bytes_that_are_no_reply_end_the_wait() -> None:
    """Rather than that the write's time runs out."""
    async with pooled(lambda _: nonsense) as (pool, _):
        with pytest.raises(OutcomeUnknown, match=r"expected an HTTP/1\.1 status line"):
            await pool.request(post())


async def test_a_server_whose_replies_end_with_their_connections_is_no_server_in_trouble() -> None:
    """HTTP as it was before lengths: each write has a connection, and none waits as if the one before it had failed."""

    async def until_the_end(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 201 Created\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with pooled(lambda _: until_the_end, connections=1, backoff=endless_backoff()) as (pool, server), asyncio.timeout(60):
        for _ in range(3):
            found = await pool.request(post())
            assert (found.status, found.body) == (201, b"{}")
        assert len(server.connections) == 3
