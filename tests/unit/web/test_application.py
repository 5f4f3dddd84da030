"""Over real HTTP: guards, headers, the login and the files of the pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from yarl import URL

from navarch.web.application import application, json_response
from navarch.web.pages import Pages
from navarch.web.security.headers import POLICY
from navarch.web.security.hosts import HostCheck
from navarch.web.security.token_login import TokenLogin
from navarch.web.security.viewer import Viewer


async def user_of(request: web.Request, viewer: Viewer) -> web.Response:
    return json_response(viewer.to_dict())


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    handlers = {("GET", "viewer"): user_of}
    server = TestServer(application(TokenLogin("secret"), HostCheck(["dash.example"]), handlers))
    await server.start_server()
    yield server
    await server.close()


@pytest.fixture
async def browser(server: TestServer) -> AsyncIterator[ClientSession]:
    async with ClientSession(server.make_url("/")) as session:
        yield session


async def test_the_printed_address_answers_200_and_sets_a_cookie_that_opens_the_api(browser: ClientSession) -> None:
    async with browser.get("/api/v1/viewer") as refused:
        assert refused.status == 401
        assert (await refused.json())["error"]["code"] == "Unauthorized"
    async with browser.get("/", params={"token": "secret"}) as page:
        assert page.status == 200
        assert page.content_type == "text/html"
        (cookie,) = page.headers.getall("Set-Cookie")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "secret" not in cookie
    # aiohttp keeps no cookies of IP addresses
    pair = cookie.partition(";")[0]
    async with browser.get("/api/v1/viewer", headers={"Cookie": pair}) as seen:
        assert await seen.json() == {"user": "you", "mode": "token", "namespaces": None, "seesNodes": True}


async def test_a_wrong_token_is_refused(browser: ClientSession) -> None:
    for path in ("/?token=", "/?token=Secret", "/jobs?token=secret2"):
        async with browser.get(path) as answer:
            assert answer.status == 401
            assert "Set-Cookie" not in answer.headers
    for value in ("Bearer other", "Basic secret", "Bearer \udcff"):
        async with browser.get("/api/v1/viewer", headers={"Authorization": value}) as answer:
            assert answer.status == 401


async def test_programs_send_the_token_as_bearer(browser: ClientSession) -> None:
    async with browser.get("/api/v1/viewer", headers={"Authorization": "Bearer secret"}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/", "/jobs/ml/bert?x=1", "/assets/nothing.js", "/api/v1/viewer", "/api/v1/nothing"])
async def test_every_answer_has_the_security_headers(browser: ClientSession, path: str) -> None:
    async with browser.get(path) as answer:
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Server" not in answer.headers
    assert "unsafe" not in POLICY
    assert "frame-ancestors 'none'" in POLICY


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8090", "localhost.evil.example", "127.0.0.1.evil.example:80", ""])
async def test_other_hosts_are_refused(browser: ClientSession, host: str) -> None:
    async with browser.get("/?token=secret", headers={"Host": host}) as answer:
        assert answer.status == 403
        assert (await answer.json())["error"]["code"] == "WrongHost"


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "[::1]:8090", "127.0.0.1", "dash.example", "Dash.Example:443"])
async def test_own_hosts_are_answered(browser: ClientSession, host: str) -> None:
    async with browser.get("/", headers={"Host": host}) as answer:
        assert answer.status == 200


async def test_pages_answer_get_alone(browser: ClientSession) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        async with browser.request(method, "/api/v1/viewer", headers={"Authorization": "Bearer secret"}) as answer:
            assert answer.status == 405


async def test_files_outside_of_the_folder_are_not_served(server: TestServer, browser: ClientSession) -> None:
    for path in ("/assets/../application.py", "/assets/%2e%2e/application.py", "/assets/..%2f..%2fversion.py", "/assets//etc/passwd"):
        async with browser.get(URL(f"http://127.0.0.1:{server.port}{path}", encoded=True)) as answer:
            assert "import" not in await answer.text()


@pytest.mark.parametrize("name", ["%00", "a%00.js", "a" * 5000 + ".js"])
async def test_a_name_that_no_file_can_have_is_not_found(server: TestServer, browser: ClientSession, name: str) -> None:
    async with browser.get(URL(f"http://127.0.0.1:{server.port}/assets/{name}", encoded=True)) as answer:
        assert answer.status == 404


async def test_a_file_is_sent_once_and_then_known(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("export const a = 1;\n")
    (tmp_path / "b.py").write_text("import os\n")
    app = web.Application()
    app.router.add_get("/assets/{path:.+}", Pages(TokenLogin("t"), tmp_path).asset)
    server = TestServer(app)
    await server.start_server()
    async with ClientSession(server.make_url("/")) as session:
        async with session.get("/assets/a.js") as first:
            assert first.content_type == "text/javascript"
            tag = first.headers["ETag"]
        async with session.get("/assets/a.js", headers={"If-None-Match": tag}) as second:
            assert second.status == 304
        async with session.get("/assets/b.py") as hidden:
            assert hidden.status == 500  # RequestError, which this application does not turn into an answer
    await server.close()


async def test_a_viewer_that_goes_away_is_no_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    async def gone(request: web.Request, viewer: Viewer) -> web.Response:
        raise ConnectionResetError("Cannot write to closing transport")

    server = TestServer(application(TokenLogin("secret"), HostCheck([]), {("GET", "gone"): gone}))
    await server.start_server()
    headers = {"Authorization": "Bearer secret"}
    async with ClientSession(server.make_url("/"), headers=headers) as session, session.get("/api/v1/gone") as answer:
        assert answer.status == 499
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    await server.close()
