"""Certificates that are replaced while we run, over real TLS: the next connection uses the new ones, and nothing the old."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.envtest.certificates import Authority
from tests.envtest.server import KubeApiServer
from tests.worlds.kube.kubeconfigs import write as kubeconfig
from tests.worlds.kube.small_api import SmallApi

from navarch.kube.auth.exec_plugin import ExecCommand, ExecCredentials
from navarch.kube.auth.incluster import load_in_cluster
from navarch.kube.auth.tls import Tls
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, Unauthorized, Unreachable
from navarch.kube.resources import PODS
from navarch.kube.write.pool import Write, WritePool

EVENTS = "/api/v1/namespaces/default/events"


def serving(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate_file))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(*authority.server())
    return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    (tmp_path / "first").mkdir()
    return Authority(tmp_path / "first")


@pytest.fixture
async def api(authority: Authority) -> AsyncIterator[SmallApi]:
    server = await SmallApi(ssl_context=serving(authority)).start()
    yield server
    await server.stop()
    server.close()


def replaced(source: Path, target: Path) -> None:
    """As programs that rotate do it: written beside, then renamed."""
    spare = target.with_suffix(".new")
    shutil.copy(source, spare)
    spare.rename(target)


class Speaker:
    """Both ways to speak to a server, each with connections that it keeps."""

    def __init__(self, endpoint: Endpoint, api: SmallApi) -> None:
        self.client = Client(endpoint, attempts=1)
        self.pool = WritePool(endpoint, connections=4)
        self._api = api

    async def by_client(self) -> str | None:
        """The user that the server sees."""
        await self.client.list(PODS)
        return self._api.peers[-1]

    async def by_pool(self, writes: int = 1) -> str | None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(self.pool.request(Write("POST", EVENTS, b"{}")) for _ in range(writes)))
        return self._api.peers[-1]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def speaking(endpoint: Endpoint, api: SmallApi) -> AsyncIterator[Speaker]:
    speaker = Speaker(endpoint, api)
    try:
        yield speaker
    finally:
        await speaker.pool.close()
        await speaker.client.close()


def with_files(folder: Path, api: SmallApi, authority: Authority) -> Endpoint:
    """A kubeconfig that names files: ca.crt, client.crt and client.key."""
    cluster = {"server": api.url, "certificate-authority": str(authority.certificate_file)}
    return connect(kubeconfig(folder, cluster, {"client-certificate": "client.crt", "client-key": "client.key"}))


def put_pair(folder: Path, pair: tuple[Path, Path]) -> None:
    replaced(pair[0], folder / "client.crt")
    replaced(pair[1], folder / "client.key")


async def test_a_replaced_client_certificate_is_shown_from_then_on(tmp_path: Path, authority: Authority, api: SmallApi) -> None:
    put_pair(tmp_path, authority.user("alice", []))
    async with speaking(with_files(tmp_path, api, authority), api) as we:
        assert (await we.by_client(), await we.by_pool(4)) == ("alice", "alice")
        put_pair(tmp_path, authority.user("bob", []))
        assert await we.by_client() == "bob", "a request does not go over a connection that was kept"
        await we.until(lambda: we.pool.idle == 0)
        asked = len(api.peers)
        await we.by_pool(8)
        assert set(api.peers[asked:]) == {"bob"}


async def test_a_certificate_that_has_run_out_is_refused_once_and_its_successor_used(
    tmp_path: Path, authority: Authority, api: SmallApi
) -> None:
    """Replaced too late: the server refuses the kept connections, and every write goes through nevertheless."""
    put_pair(tmp_path, authority.user("alice", []))
    async with speaking(with_files(tmp_path, api, authority), api) as we:
        assert (await we.by_client(), await we.by_pool(4)) == ("alice", "alice")
        put_pair(tmp_path, authority.user("bob", []))
        api.run_out.add("alice")
        asked = len(api.peers)
        assert (await we.by_pool(40), await we.by_client()) == ("bob", "bob")
        assert api.peers[asked:].count("alice") <= 4, "one refusal for each connection that was kept"


async def test_a_mounted_secret_is_swapped_by_its_link(tmp_path: Path, authority: Authority, api: SmallApi) -> None:
    for version, name in (("..1", "alice"), ("..2", "bob")):
        (tmp_path / version).mkdir()
        put_pair(tmp_path / version, authority.user(name, []))
    (tmp_path / "..data").symlink_to("..1")
    for name in ("client.crt", "client.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    async with speaking(with_files(tmp_path, api, authority), api) as we:
        assert await we.by_client() == "alice"
        (tmp_path / "..tmp").symlink_to("..2")
        (tmp_path / "..tmp").rename(tmp_path / "..data")
        assert await we.by_client() == "bob"


async def test_a_certificate_without_its_key_changes_nothing_until_the_key_is_there(
    tmp_path: Path, authority: Authority, api: SmallApi, caplog: pytest.LogCaptureFixture
) -> None:
    put_pair(tmp_path, authority.user("alice", []))
    async with speaking(with_files(tmp_path, api, authority), api) as we:
        assert await we.by_client() == "alice"
        certificate, key = authority.user("bob", [])
        replaced(certificate, tmp_path / "client.crt")
        assert [await we.by_client() for _ in range(3)] == ["alice"] * 3
        said = [record.getMessage() for record in caplog.records if "keeping the last ones" in record.getMessage()]
        assert len(said) == 1 and str(tmp_path / "client.crt") in said[0]
        replaced(key, tmp_path / "client.key")
        assert await we.by_client() == "bob"
        (tmp_path / "client.key").unlink()
        assert await we.by_client() == "bob"


@pytest.mark.parametrize("in_pod", [False, True], ids=["kubeconfig", "in a pod"])
async def test_a_replaced_authority_is_trusted_and_the_old_one_no_more(
    tmp_path: Path, authority: Authority, api: SmallApi, in_pod: bool
) -> None:
    (tmp_path / "second").mkdir()
    successor = Authority(tmp_path / "second")
    trusted = tmp_path / "ca.crt"
    replaced(authority.certificate_file, trusted)
    if in_pod:
        (tmp_path / "token").write_text("t", encoding="utf-8")
        where = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
        endpoint = load_in_cluster(tmp_path, where)
    else:
        endpoint = connect(kubeconfig(tmp_path, {"server": api.url, "certificate-authority": "ca.crt"}, {}))
    async with speaking(endpoint, api) as we:
        await we.by_client()
        await we.by_pool()
        await api.restart(serving(successor))
        with pytest.raises(Unreachable, match=r"(?i)certificate verify failed"):
            await we.by_client()
        waiting = asyncio.create_task(we.by_pool())
        await we.until(lambda: we.pool.counters.connections_failed > 0)
        assert not waiting.done()
        replaced(successor.certificate_file, trusted)
        await we.by_client()
        await waiting
        # An impostor with a certificate of the authority that was withdrawn.
        await api.restart(serving(authority))
        with pytest.raises(Unreachable, match=r"(?i)certificate verify failed"):
            await we.by_client()
        failed = we.pool.counters.connections_failed
        waiting = asyncio.create_task(we.by_pool())
        await we.until(lambda: we.pool.counters.connections_failed > failed)
        assert not waiting.done()
        waiting.cancel()


# Exec plugins.

PROGRAM = """
import json, sys
from pathlib import Path
folder = Path(sys.argv[1])
with (folder / "runs").open("a") as runs:
    runs.write("x")
number = len((folder / "runs").read_text())
status = {"clientCertificateData": (folder / f"user-run{number}.crt").read_text(),
          "clientKeyData": (folder / f"user-run{number}.key").read_text(),
          "expirationTimestamp": f"2026-01-01T00:{10 * number}:00Z"}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""
MIDNIGHT = 1767225600.0


def with_plugin(api: SmallApi, authority: Authority, now: list[float]) -> Endpoint:
    """Its n-th run gives a certificate of run<n> that holds until n times ten minutes after midnight."""
    for number in (1, 2, 3):
        authority.user(f"run{number}", [])
    tls = Tls(authority=authority.certificate_file)
    command = ExecCommand(sys.executable, ("-c", PROGRAM, str(authority.folder)))
    return Endpoint(api.url, tls, ExecCredentials(command, tls, wall_clock=lambda: now[0]))


async def test_a_certificate_of_an_exec_plugin_is_renewed_before_it_expires(authority: Authority, api: SmallApi) -> None:
    now = [MIDNIGHT]
    async with speaking(with_plugin(api, authority, now), api) as we:
        assert (await we.by_pool(4), await we.by_client()) == ("run1", "run1")
        now[0] += 595
        asked = len(api.peers)
        assert (await we.by_pool(8), await we.by_client()) == ("run2", "run2")
        assert set(api.peers[asked:]) == {"run2"}
        now[0] += 600
        assert await we.by_client() == "run3"
        await we.until(lambda: we.pool.idle == 0)
        assert await we.by_pool() == "run3"


async def test_a_certificate_of_an_exec_plugin_that_is_refused_is_fetched_anew(authority: Authority, api: SmallApi) -> None:
    async with speaking(with_plugin(api, authority, [MIDNIGHT]), api) as we:
        assert (await we.by_pool(4), await we.by_client()) == ("run1", "run1")
        api.run_out.add("run1")
        assert (await we.by_pool(20), await we.by_client()) == ("run2", "run2")
        assert (authority.folder / "runs").read_text() == "xx", "one run for all that were refused"


def test_a_pair_that_does_not_match_is_named(tmp_path: Path, authority: Authority) -> None:
    one, other = authority.user("one", []), authority.user("other", [])
    with pytest.raises(ConfigError, match=r"user-one\.crt.*other\.key.*expected a matching PEM pair"):
        Tls(authority=authority.certificate_file, certificate=one[0], key=other[1])
    tls = Tls(authority=authority.certificate_file, certificate=one[0], key=one[1])
    before = tls.context()
    with pytest.raises(ConfigError, match="given as data"):
        tls.show(one[0].read_bytes(), other[1].read_bytes())
    assert tls.context() is before
    with pytest.raises(ConfigError, match="found one of them"):
        Tls(certificate=one[0])


@pytest.mark.live
async def test_a_real_api_server_refuses_an_old_connection_and_takes_the_new_certificate(kube_apiserver: KubeApiServer) -> None:
    """kube-apiserver judges the certificate at each request. It runs out under a kept connection, and is replaced."""
    async with fleeting(kube_apiserver) as (client, pool):
        with pytest.raises(Unauthorized):
            async with asyncio.timeout(300):
                while True:
                    await pool.request(review())
        kube_apiserver.user("fleeting", "system:masters")
        assert (await pool.request(review())).status == 201
        await client.list(PODS, namespace="default")


@asynccontextmanager
async def fleeting(server: KubeApiServer) -> AsyncIterator[tuple[Client, WritePool]]:
    """Both let in with a certificate that lasts for seconds: as few as this machine is quick enough for."""
    for seconds in (8, 40, 200):
        endpoint = connect(server.user("fleeting", "system:masters", valid_for=timedelta(seconds=seconds)))
        async with Client(endpoint) as client:
            pool = WritePool(endpoint, connections=1)
            try:
                await pool.request(review())
                await client.list(PODS, namespace="default")
            except Unauthorized:
                continue
            else:
                yield client, pool
                return
            finally:
                await pool.close()
    raise AssertionError("not quick enough for a certificate of 200 seconds")


def review() -> Write:
    return Write("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW)


REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
