"""Requests, watches and writes through a real proxy to an API server with TLS; and what is said when the proxy does not help."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import shutil
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
import yaml
from msgspec.structs import replace
from tests.envtest.certificates import Authority
from tests.worlds.kube.forward_proxy import NAME, TARGET, ForwardProxy, behind
from tests.worlds.kube.ports import hold_port
from tests.worlds.kube.raw_server import RawServer, reply
from tests.worlds.kube.servers import NODES, Live, open_live
from tests.worlds.kube.small_api import SmallApi

from navarch.embedded.api.server import ApiServer
from navarch.kube.auth.kubeconfig import load_kubeconfig
from navarch.kube.auth.tls import Tls
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import Unreachable
from navarch.kube.proxy import Proxy
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Write, WritePool

SECRET = "s3cret/of:the@proxy"
SPELLED = "s3cret%2Fof%3Athe%40proxy"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(taint_new_nodes=False) as started:
        yield started


@pytest.fixture
async def proxy(server: ApiServer) -> AsyncIterator[ForwardProxy]:
    async with ForwardProxy({TARGET: server.port}) as started:
        yield started


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    (tmp_path / "authority").mkdir()
    return Authority(tmp_path / "authority")


def serving(authority: Authority) -> ssl.SSLContext:
    certificate, key = authority.server()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate_file))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(certificate, key)
    return context


def kubeconfig(server: ApiServer, folder: Path, cluster: dict[str, Any]) -> Path:
    return behind(server.kubeconfig(folder / "kubeconfig"), cluster)


async def bind_and_watch(path: Path) -> None:
    """A pod is made and watched by requests of the client and bound by the pool of writes."""
    async with open_live(path) as live:
        await live.node("n1")
        pool = WritePool(live.endpoint, connections=2)
        seen = asyncio.create_task(_bound(live))
        made = await live.pod("p")
        await pool.bind(live.namespace, "p", uid=made["metadata"]["uid"], node="n1")
        assert await seen == "n1"
        await pool.close()


async def _bound(live: Live) -> str:
    """The node of the first pod that gets one, as a watch tells."""
    stream = live.client.transport.stream(PODS.path(live.namespace), {"watch": 1}, idle_timeout=lambda: 60.0)
    told = b""
    async with asyncio.timeout(60), contextlib.aclosing(stream):
        async for piece in stream:
            told += piece
            if b'"nodeName":"n1"' in told:
                return "n1"
    raise AssertionError(f"the watch ended: {told[-500:]!r}")


async def test_requests_watches_and_writes_go_through_the_proxy(server: ApiServer, proxy: ForwardProxy, tmp_path: Path) -> None:
    await bind_and_watch(kubeconfig(server, tmp_path, {"proxy-url": proxy.url}))
    assert proxy.tunnels >= 3 and set(proxy.asked) == {(TARGET, "")}
    assert b"HTTP/1.1" not in proxy.carried and server.token.encode() not in proxy.carried, "it carries what it cannot read"


async def test_the_environment_names_it(
    server: ApiServer, proxy: ForwardProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig(server, tmp_path, {})
    monkeypatch.setenv("HTTPS_PROXY", proxy.address)
    monkeypatch.setenv("NO_PROXY", "")
    await bind_and_watch(path)
    assert proxy.tunnels >= 3
    asked = len(proxy.asked)
    await bind_and_watch(server.kubeconfig(tmp_path / "direct"))
    assert len(proxy.asked) == asked, "the way to this machine itself needs no proxy"


async def test_a_proxy_url_holds_for_this_machine_as_well(server: ApiServer, proxy: ForwardProxy, tmp_path: Path) -> None:
    await bind_and_watch(kubeconfig(server, tmp_path, {"proxy-url": proxy.url, "server": server.url}))
    assert set(proxy.asked) == {(f"127.0.0.1:{server.port}", "")}


async def test_an_account_of_the_proxy(
    server: ApiServer, proxy: ForwardProxy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    proxy.wanted = "Basic " + base64.b64encode(f"fernando q:{SECRET}".encode()).decode()
    path = kubeconfig(server, tmp_path, {"proxy-url": f"http://fernando%20q:{SPELLED}@{proxy.address}"})
    await bind_and_watch(path)
    assert proxy.tunnels >= 3
    path = kubeconfig(server, tmp_path, {"proxy-url": f"http://fernando%20q:{SPELLED}wrong@{proxy.address}"})
    said = await told_by_both(connect(path))
    assert all(f"proxy {proxy.url} refused CONNECT: 407 Proxy Authentication Required" in each for each in said)
    everything = "\n".join((*said, caplog.text, repr(connect(path)), str(connect(path))))
    assert proxy.address in everything
    for hidden in (SECRET, SPELLED, "fernando q", "fernando%20q", proxy.wanted.removeprefix("Basic ")):
        assert hidden not in everything


async def told_by_both(endpoint: Endpoint) -> tuple[str, str]:
    """What a request and a write say when no connection can be had. Nothing was sent, and both know that."""
    async with Client(endpoint, attempts=1) as client:
        with pytest.raises(Unreachable) as by_client:
            await client.create(NODES, {"metadata": {"name": "never"}})
    pool = WritePool(endpoint)
    try:
        waiting = asyncio.create_task(pool.request(Write("POST", NODES.path(), b"{}", timeout=3600.0)))
        async with asyncio.timeout(60):
            while pool.counters.connections_failed < 2:
                await asyncio.sleep(0.01)
    finally:
        await pool.close()
    with pytest.raises(Unreachable):
        await waiting
    return str(by_client.value), pool.last_connect_error


@pytest.mark.parametrize(
    ("instead", "expected"),
    [
        (b"HTTP/1.1 403 s3cret\r\nContent-Length: 0\r\n\r\n", "refused CONNECT: 403 Forbidden"),
        (b"HTTP/1.0 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n", "refused CONNECT: 503 Service Unavailable"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://log.in\r\n\r\n", "refused CONNECT: 302 Found"),
        (b"HTTP/1.1 599 \r\n\r\n", "refused CONNECT: 599"),
        (b"", "no answer to CONNECT: it hung up"),
        (b"HTTP/1.1 200 Con", "no answer to CONNECT: it hung up"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "no answer to CONNECT: expected an HTTP/1.1 status line, found b'SSH"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "no TLS with the server in the tunnel: "),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 400 Bad Request\r\n\r\n", "no TLS with the server in the tunnel: "),
    ],
)
async def test_a_proxy_that_gives_no_tunnel_is_named(
    server: ApiServer, proxy: ForwardProxy, tmp_path: Path, instead: bytes, expected: str
) -> None:
    proxy.instead = instead
    said = await told_by_both(connect(kubeconfig(server, tmp_path, {"proxy-url": proxy.url})))
    for each in said:
        assert f"proxy {proxy.url}" in each and expected in each and "s3cret" not in each
    assert said[0].startswith(f"POST /api/v1/nodes: cannot connect to {TARGET}: proxy ")


async def test_a_proxy_that_is_not_there(server: ApiServer, tmp_path: Path) -> None:
    with hold_port() as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        for each in await told_by_both(connect(kubeconfig(server, tmp_path, {"proxy-url": url}))):
            assert f"proxy {url}: it cannot be reached: " in each


async def test_a_mute_proxy_costs_time_and_no_doubt(
    server: ApiServer, proxy: ForwardProxy, tmp_path: Path, ahead: Callable[[float], None]
) -> None:
    """Nothing was sent, so it is no lost answer."""
    proxy.mute = True
    endpoint = connect(kubeconfig(server, tmp_path, {"proxy-url": proxy.url}))
    pool = WritePool(endpoint)
    async with Client(endpoint, attempts=1) as client, asyncio.timeout(3600):
        write = asyncio.create_task(pool.request(Write("POST", NODES.path(), b"{}", timeout=3600.0)))
        request = asyncio.create_task(client.create(NODES, {"metadata": {"name": "never"}}))
        while len(proxy.asked) < 2:
            await asyncio.sleep(0.01)
        ahead(11)
        with pytest.raises(Unreachable) as said:
            await request
        while not pool.counters.connections_failed:
            await asyncio.sleep(0.01)
        await pool.close()
        with pytest.raises(Unreachable):
            await write
    for each in (str(said.value), pool.last_connect_error):
        assert f"proxy {proxy.url}: no connection within 10 s: no answer to CONNECT" in each


async def test_tunnels_that_are_cut_are_opened_anew(server: ApiServer, proxy: ForwardProxy, tmp_path: Path) -> None:
    path = kubeconfig(server, tmp_path, {"proxy-url": proxy.url})
    async with open_live(path) as live:
        pool = WritePool(live.endpoint, connections=1)
        node = b'{"metadata":{"name":"n1"}}'
        await pool.request(Write("POST", NODES.path(), node))
        before = proxy.tunnels
        proxy.cut()
        async with asyncio.timeout(60):
            while pool.idle:
                await asyncio.sleep(0.01)
        await pool.request(Write("PATCH", NODES.path(None, "n1"), b"{}", "application/merge-patch+json", repeatable=True))
        assert [each["metadata"]["name"] for each in (await live.client.list(NODES)).items] == ["n1"]
        assert proxy.tunnels >= before + 2
        await pool.close()


async def test_the_server_is_verified_inside_the_tunnel(
    server: ApiServer, proxy: ForwardProxy, authority: Authority, tmp_path: Path
) -> None:
    """The proxy leads to another server, as one does that inspects TLS."""
    path = kubeconfig(server, tmp_path, {"proxy-url": proxy.url})
    async with RawServer(lambda _: reply(201), serving(authority)) as impostor:
        proxy.routes[TARGET] = impostor.port
        for each in await told_by_both(connect(path)):
            assert f"proxy {proxy.url}: no TLS with the server in the tunnel: " in each
            assert "certificate verify failed" in each.lower()
        assert impostor.requests == []
    proxy.routes[TARGET] = server.port
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    del document["clusters"][0]["cluster"]["tls-server-name"]
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    for each in await told_by_both(connect(path)):
        assert f"certificate is not valid for '{NAME}'" in each, "the name is the server's, not the proxy's"


async def test_a_proxy_over_tls(server: ApiServer, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known to the system, not by the cluster's authority: a tunnel in TLS, and TLS with the server in the tunnel."""
    async with ForwardProxy({TARGET: server.port}, serving(authority)) as proxy:
        path = kubeconfig(server, tmp_path, {"proxy-url": proxy.url})
        for each in await told_by_both(connect(path)):
            assert f"proxy {proxy.url}: it cannot be reached: " in each and "certificate verify failed" in each.lower()
        assert proxy.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate_file))
        await bind_and_watch(path)
        assert proxy.tunnels >= 3 and server.token.encode() not in proxy.carried


async def test_a_proxy_over_tls_of_the_clusters_authority_sees_no_certificate_of_ours(authority: Authority, tmp_path: Path) -> None:
    """As kubectl trusts; and certificates that are replaced are shown in tunnels of their own."""
    api = await SmallApi(ssl_context=serving(authority)).start()
    async with ForwardProxy({TARGET: api.port}, serving(authority)) as proxy:
        _put(tmp_path, authority.user("alice", []))
        tls = Tls(authority=authority.certificate_file, certificate=tmp_path / "client.crt", key=tmp_path / "client.key")
        endpoint = replace(Endpoint(f"https://{TARGET}", tls, tls_server_name="localhost"), proxy=Proxy.parse(proxy.url, "test"))
        async with Client(endpoint, attempts=1) as client:
            await client.list(PODS)
            _put(tmp_path, authority.user("bob", []))
            await client.list(PODS)
        assert api.peers == ["alice", "bob"]
        assert len(proxy.shown) == 2 and not any(proxy.shown)
    await api.stop()
    api.close()


def _put(folder: Path, pair: tuple[Path, Path]) -> None:
    for source, name in zip(pair, ("client.crt", "client.key"), strict=True):
        shutil.copy(source, folder / "new")
        (folder / "new").rename(folder / name)


async def test_an_insecure_cluster_has_an_insecure_way_to_it(server: ApiServer, authority: Authority, tmp_path: Path) -> None:
    """As kubectl has it."""
    async with ForwardProxy({TARGET: server.port}, serving(authority)) as proxy:
        cluster = {"proxy-url": proxy.url, "certificate-authority-data": "", "insecure-skip-tls-verify": True}
        await bind_and_watch(kubeconfig(server, tmp_path, cluster))
        assert proxy.tunnels >= 3


async def test_a_server_without_tls(tmp_path: Path) -> None:
    api = await SmallApi().start()
    async with ForwardProxy({f"{NAME}:80": api.port}) as proxy:
        proxy.established = b"HTTP/1.0 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n"
        document = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://{NAME}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(document), encoding="utf-8")
        endpoint = load_kubeconfig([tmp_path / "config"], environ={"http_proxy": proxy.url, "HTTPS_PROXY": "http://wrong.invalid"})
        async with Client(endpoint, attempts=1) as client:
            await client.list(PODS)
        pool = WritePool(endpoint, connections=1)
        await pool.request(Write("POST", "/api/v1/namespaces/default/events", b"{}"))
        await pool.close()
        assert [target for target, _ in proxy.asked] == [f"{NAME}:80"] * 2
        assert [request.headers["Host"] for request in api.requests] == [NAME] * 2
    await api.stop()
    api.close()


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_uvloop_does_it_too(authority: Authority, tmp_path: Path, tls: bool) -> None:
    """`navarch run` turns on it where it is installed."""

    async def main() -> None:
        proxy = ForwardProxy(ssl_context=serving(authority) if tls else None)
        async with ApiServer(taint_new_nodes=False) as server, proxy:
            proxy.routes[TARGET] = server.port
            bundle = base64.b64encode(authority.certificate_file.read_bytes() + server.ca_pem).decode()
            path = kubeconfig(server, tmp_path, {"proxy-url": proxy.url, "certificate-authority-data": bundle})
            await bind_and_watch(path)
            assert proxy.tunnels >= 3
            proxy.instead = b"HTTP/1.1 200 OK\r\n\r\n"
            for each in await told_by_both(connect(path)):
                assert f"proxy {proxy.url}: no TLS with the server in the tunnel: " in each

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
