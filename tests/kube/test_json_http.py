"""JSON over HTTP to servers that may be slow, wrong or malicious."""

from __future__ import annotations

import pytest
from aiohttp import web
from tests.worlds.kube.json_server import Handler, endless, hanging, saying, serving

from navarch.kube.json_http import JsonServer, ServerError


async def failure(handler: Handler, *, timeout: float = 30.0, most: int = 1 << 20) -> str:
    async with serving(handler) as served:
        server = JsonServer(served.address.replace("//", "//me:secret@"), timeout=timeout, most_bytes=most)
        try:
            with pytest.raises(ServerError) as caught:
                await server.post("verb", b"{}")
        finally:
            await server.close()
    assert "secret" not in str(caught.value)
    return str(caught.value)


async def test_a_post_returns_the_body_of_the_answer() -> None:
    async with serving(saying({"a": 1})) as served:
        server = JsonServer(f"{served.address}/base//", timeout=30.0)
        assert await server.post("verb", b'{"q":2}') == b'{"a":1}'
        await server.close()
    assert served.requests == [("POST", "/base/verb", {"q": 2})]
    assert served.headers[0]["Content-Type"] == "application/json"


@pytest.mark.parametrize("status", [204, 404, 500])
async def test_another_status_is_an_error(status: int) -> None:
    assert f"status {status}, expected 200" in await failure(saying(b"", status))


async def test_a_redirect_is_not_followed() -> None:
    async def away(request: web.Request, body: object) -> web.StreamResponse:
        raise web.HTTPFound("http://127.0.0.1:1/elsewhere")

    assert "status 302" in await failure(away)


async def test_a_hanging_server_has_a_time_out() -> None:
    assert "no answer within 0.2 s" in await failure(hanging(), timeout=0.2)


async def test_an_endless_answer_is_not_read_to_its_end() -> None:
    assert "larger than 100000 bytes" in await failure(endless(), most=100_000)


async def test_a_server_that_is_not_there() -> None:
    server = JsonServer("http://127.0.0.1:1", timeout=30.0)
    with pytest.raises(ServerError, match=r"127\.0\.0\.1"):
        await server.post("verb", b"{}")
    await server.close()


async def test_an_address_that_is_none() -> None:
    server = JsonServer("nowhere", timeout=30.0)
    with pytest.raises(ServerError):
        await server.post("verb", b"{}")
    await server.close()
