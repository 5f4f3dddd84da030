"""From a kubeconfig or a service account to a request that the server accepts, over real TLS."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import ssl
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.envtest.certificates import Authority
from tests.worlds.kube.kubeconfigs import write
from tests.worlds.kube.small_api import SmallApi

from navarch.kube.auth.credentials import TOKEN_FILE_MAX_AGE, StaticCredentials, TokenFileCredentials
from navarch.kube.auth.exec_plugin import ExecCommand, ExecCredentials
from navarch.kube.auth.incluster import in_cluster, load_in_cluster
from navarch.kube.auth.kubeconfig import load_kubeconfig
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint, connect
from navarch.kube.errors import ConfigError, Unreachable
from navarch.kube.resources import PODS
from navarch.kube.write.pool import WritePool


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def tls_api(authority: Authority) -> AsyncIterator[SmallApi]:
    """A server with a certificate of `authority` that lets client certificates be shown."""
    certificate, key = authority.server()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate_file))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(certificate, key)
    server = await SmallApi(ssl_context=context).start()
    yield server
    await server.stop()
    server.close()


def b64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


async def seen_by(api: SmallApi, endpoint: Endpoint) -> tuple[str | None, str | None]:
    """What the server learns of us: the Authorization header and the client certificate's name."""
    async with Client(endpoint, attempts=1) as client:
        await client.list(PODS)
    request = api.requests[-1]
    return request.headers.get("Authorization"), api.peers[-1]


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "files"])
async def test_a_client_certificate_is_shown_to_the_server(
    tmp_path: Path, authority: Authority, tls_api: SmallApi, inline: bool
) -> None:
    certificate, key = authority.user("alice", ["team"])
    if inline:
        cluster = {"server": tls_api.url, "certificate-authority-data": b64(authority.certificate_file)}
        user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    else:  # relative to the file's folder
        cluster = {"server": tls_api.url, "certificate-authority": authority.certificate_file.name}
        user = {"client-certificate": certificate.name, "client-key": key.name}
    endpoint = connect(write(tmp_path, cluster, user))
    assert await seen_by(tls_api, endpoint) == (None, "alice")


async def test_data_in_lines_and_an_authority_with_a_name_beside_it(tmp_path: Path, authority: Authority, tls_api: SmallApi) -> None:
    """As `base64` prints it, and as bundles of authorities are written: kubectl takes both."""
    certificate, key = authority.user("alice", [])
    bundle = "# Autorité de démonstration\n".encode() + authority.certificate_file.read_bytes()
    cluster = {"server": tls_api.url, "certificate-authority-data": base64.encodebytes(bundle).decode()}
    user = {
        "client-certificate-data": base64.encodebytes(certificate.read_bytes()).decode(),
        "client-key-data": base64.encodebytes(key.read_bytes()).decode().replace("\n", "\r\n"),
    }
    assert await seen_by(tls_api, connect(write(tmp_path, cluster, user))) == (None, "alice")


async def test_a_token_and_a_password(tmp_path: Path, api: SmallApi) -> None:
    endpoint = connect(write(tmp_path, {"server": api.url}, {"token": "secret"}))
    assert (await seen_by(api, endpoint))[0] == "Bearer secret"
    endpoint = connect(write(tmp_path, {"server": api.url}, {"username": "u", "password": "p"}))
    assert (await seen_by(api, endpoint))[0] == "Basic dTpw"


async def test_a_token_file_is_read_again(tmp_path: Path, api: SmallApi) -> None:
    (tmp_path / "token").write_text("one\n", encoding="utf-8")
    endpoint = connect(write(tmp_path, {"server": api.url}, {"tokenFile": "token", "token": "not this"}))
    assert (await seen_by(api, endpoint))[0] == "Bearer one"
    (tmp_path / "token").write_text("two\n", encoding="utf-8")
    assert (await seen_by(api, endpoint))[0] == "Bearer one"
    api.script.append((401, {}, {"reason": "Unauthorized", "code": 401}))
    assert (await seen_by(api, endpoint))[0] == "Bearer two"


async def test_a_token_file_grows_old(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "token"
    path.write_text("one", encoding="utf-8")
    credentials = TokenFileCredentials(path, clock=lambda: now[0])
    assert credentials.cached() is None
    assert await credentials.authorization() == "Bearer one" == credentials.cached()
    path.write_text("two", encoding="utf-8")
    now[0] = TOKEN_FILE_MAX_AGE
    assert credentials.cached() is None and await credentials.authorization() == "Bearer two"
    path.write_bytes(b"\xff\xfe")
    now[0] *= 2
    assert await credentials.authorization() == "Bearer two", "and when the file is being written"
    path.write_text("half\nand half", encoding="utf-8")
    now[0] *= 2
    assert await credentials.authorization() == "Bearer two", "and when it holds what no header can"
    path.unlink()
    now[0] *= 2
    assert await credentials.authorization() == "Bearer two", "a token in hand is kept when the file is gone"


async def test_the_server_is_verified(tmp_path: Path, tls_api: SmallApi) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    other = Authority(stranger)
    for cluster in ({"server": tls_api.url}, {"server": tls_api.url, "certificate-authority": str(other.certificate_file)}):
        endpoint = connect(write(tmp_path, cluster, {}))
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await seen_by(tls_api, endpoint)


async def test_an_authority_is_whatever_is_named_as_one(tmp_path: Path, authority: Authority, tls_api: SmallApi) -> None:
    """As kubectl has it: signed by an unknown authority, and without the key usage that RFC 5280 asks for."""
    name = x509.load_pem_x509_certificate(authority.certificate_file.read_bytes()).subject
    now = datetime.datetime.now(datetime.UTC)
    stranger = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority that no client trusts")])
    key = serialization.load_pem_private_key((authority.folder / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(stranger).public_key(key.public_key())
    builder = builder.serial_number(7).not_valid_before(now - datetime.timedelta(hours=1))
    builder = builder.not_valid_after(now + datetime.timedelta(hours=1))
    builder = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    (tmp_path / "subordinate.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    endpoint = connect(write(tmp_path, {"server": tls_api.url, "certificate-authority": "subordinate.crt"}, {}))
    assert await seen_by(tls_api, endpoint) == (None, None)
    assert endpoint.ssl_context is not None and not endpoint.ssl_context.verify_flags & ssl.VERIFY_X509_STRICT


async def test_the_name_is_verified(tmp_path: Path, authority: Authority, tls_api: SmallApi) -> None:
    ca = {"certificate-authority": str(authority.certificate_file)}
    wrong = {"server": tls_api.url, "tls-server-name": "kubernetes.example.com", **ca}
    with pytest.raises(Unreachable, match=r"kubernetes\.example\.com"):
        await seen_by(tls_api, connect(write(tmp_path, wrong, {})))
    right = {"server": tls_api.url, "tls-server-name": "localhost", **ca}
    assert await seen_by(tls_api, connect(write(tmp_path, right, {}))) == (None, None)


async def test_insecure_is_honoured_when_said_and_only_then(
    tmp_path: Path, authority: Authority, tls_api: SmallApi, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = connect(write(tmp_path, {"server": tls_api.url, "insecure-skip-tls-verify": True}, {}))
    assert "verification of the API server is off" in caplog.text
    assert await seen_by(tls_api, endpoint) == (None, None)
    both = {"server": tls_api.url, "insecure-skip-tls-verify": True, "certificate-authority": str(authority.certificate_file)}
    with pytest.raises(ConfigError, match="found both"):
        connect(write(tmp_path, both, {}))


def test_contexts_namespaces_and_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path, {"server": "http://one"}, {"token": "1"}, namespace="team")
    second = tmp_path / "second"
    second.write_text(
        textwrap.dedent("""
        current-context: ignored-since-the-first-file-has-one
        clusters: [{name: c, cluster: {server: 'http://shadowed'}}, {name: d, cluster: {server: 'http://two'}}]
        contexts: [{name: there, context: {cluster: d, user: u}}]
        """),
        encoding="utf-8",
    )
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    assert (connect().base, connect().namespace) == ("http://one", "team")
    assert (connect(context="there").base, connect(context="there").namespace) == ("http://two", "default")
    with pytest.raises(ConfigError, match=r"context 'nowhere' is not there; found \['here', 'there'\]"):
        connect(context="nowhere")


async def test_impersonation_is_sent_as_headers(tmp_path: Path, api: SmallApi) -> None:
    endpoint = connect(write(tmp_path, {"server": api.url}, {"as": "bob", "as-groups": ["g1", "g2"]}))
    await seen_by(api, endpoint)
    headers = api.requests[-1].headers
    assert headers["Impersonate-User"] == "bob" and headers.getall("Impersonate-Group") == ["g1", "g2"]
    extra = {"scopes": ["view", "edit"], "example.com/team": ["a"]}
    await seen_by(api, connect(write(tmp_path, {"server": api.url}, {"as": "bob", "as-user-extra": extra})))
    headers = api.requests[-1].headers
    assert headers.getall("Impersonate-Extra-scopes") == ["view", "edit"]
    assert headers["Impersonate-Extra-example.com%2Fteam"] == "a"


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({}, {}, "server: expected a URL"),
        ({"server": "ftp://x"}, {}, "expected an http"),
        ({"server": 7}, {}, "cluster 'c': Expected `str`"),
        ({"server": "http://x", "proxy-url": "socks5://p"}, {}, "proxy-url: expected http://"),
        ({"server": "https://x", "certificate-authority-data": "%%"}, {}, "expected base64"),
        ({"server": "https://x", "certificate-authority": "none.crt"}, {}, "none.crt: expected PEM"),
        ({"server": "https://x"}, {"client-certificate": "a"}, "found one of them"),
        ({"server": "http://x"}, {"auth-provider": {"name": "gcp"}}, "auth-provider 'gcp' was removed"),
        ({"server": "http://x"}, {"exec": {"command": "x", "apiVersion": "v9"}}, "exec.apiVersion: expected one of"),
        ({"server": "http://x"}, {"as-groups": ["g"]}, "expected `as`"),
        ({"server": "http://x"}, {"as-user-extra": {"a": ["b"]}}, "expected `as`"),
        ({"server": "http://x"}, {"token": "two\nlines"}, "token: expected a token in one line"),
        ({"server": "http://x"}, {"token": "caffè"}, "token: expected a token in one line"),
        ("http://x", {}, "cluster 'c': expected a mapping, found str"),
    ],
)
def test_unusable_kubeconfigs_are_named(tmp_path: Path, cluster: Any, user: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        connect(write(tmp_path, cluster, user))


@pytest.mark.parametrize(
    ("text", "message"),
    [("[1, 2]", "expected a mapping"), ("a: [", "expected YAML"), ("clusters: {}\nusers: 3", "users: expected a list")],
)
def test_files_that_are_no_kubeconfig(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_kubeconfig([path])
    with pytest.raises(ConfigError, match="no such file"):
        load_kubeconfig([tmp_path / "missing"])


async def test_a_pod_connects_by_its_service_account(tmp_path: Path, authority: Authority, tls_api: SmallApi) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(tls_api.port)}
    assert not in_cluster(tmp_path, environ)
    (tmp_path / "token").write_text("from the kubelet", encoding="utf-8")
    (tmp_path / "namespace").write_text("navarch-system", encoding="utf-8")
    assert in_cluster(tmp_path, environ)
    endpoint = load_in_cluster(tmp_path, environ)
    assert endpoint.namespace == "navarch-system"
    assert (await seen_by(tls_api, endpoint))[0] == "Bearer from the kubelet"
    with pytest.raises(ConfigError, match="not in a pod"):
        load_in_cluster(tmp_path, {})
    v6 = load_in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert (v6.base, v6.host, v6.port) == ("https://[fd00::1]:443", "fd00::1", 443)


# Exec plugins: a real program, run by a real shell.


def plugin(folder: Path, status: dict[str, Any], *, count: str = "runs") -> dict[str, Any]:
    """A program that prints a credential and writes down each run with what it was told."""
    script = folder / "plugin.py"
    script.write_text(
        textwrap.dedent(f"""
        import json, os, sys
        with open({str(folder / count)!r}, "a") as runs:
            runs.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
        number = len(open({str(folder / count)!r}).readlines())
        status = json.loads(sys.argv[1])
        if "token" in status:
            status["token"] += str(number)
        print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}}))
        """),
        encoding="utf-8",
    )
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script), json.dumps(status)],
        "provideClusterInfo": True,
        "env": [{"name": "EXTRA", "value": "1"}],
    }


async def test_an_exec_plugin_is_run_once_and_again_after_401(tmp_path: Path, api: SmallApi) -> None:
    user = {"exec": plugin(tmp_path, {"token": "t"})}
    endpoint = connect(write(tmp_path, {"server": api.url}, user))
    assert (await seen_by(api, endpoint))[0] == "Bearer t1"
    assert (await seen_by(api, endpoint))[0] == "Bearer t1"
    api.script.append((401, {}, {"reason": "Unauthorized", "code": 401}))
    assert (await seen_by(api, endpoint))[0] == "Bearer t2"
    told = json.loads((tmp_path / "runs").read_text(encoding="utf-8").splitlines()[0])
    assert told["spec"] == {"interactive": False, "cluster": {"server": api.url}}


async def test_an_exec_plugin_is_told_what_the_cluster_has_for_it(tmp_path: Path, api: SmallApi) -> None:
    audience = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "prod"}}
    cluster = {"server": api.url, "extensions": [{"name": "other", "extension": 1}, audience]}
    await seen_by(api, connect(write(tmp_path, cluster, {"exec": plugin(tmp_path, {"token": "t"})})))
    told = json.loads((tmp_path / "runs").read_text(encoding="utf-8"))
    assert told["spec"]["cluster"] == {"server": api.url, "config": {"audience": "prod"}}


async def test_an_exec_token_that_has_run_out_already_is_the_servers_to_refuse(tmp_path: Path, api: SmallApi) -> None:
    """A program with a cache and a clock that was set: running it again and again before any request would send none."""
    spec = plugin(tmp_path, {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"})
    endpoint = connect(write(tmp_path, {"server": api.url}, {"exec": spec}))
    pool = WritePool(endpoint)
    async with asyncio.timeout(120):
        await pool.bind("default", "p", uid="u", node="n")
    await pool.close()
    assert api.requests[-1].headers["Authorization"].startswith("Bearer t")


async def test_an_exec_token_that_expires_is_renewed_before(tmp_path: Path) -> None:
    spec = plugin(tmp_path, {"token": "t", "expirationTimestamp": "2026-01-01T00:10:00Z"})
    now = [1767225600.0]  # 2026-01-01T00:00:00Z
    credentials = ExecCredentials(ExecCommand(spec["command"], tuple(spec["args"])), None, wall_clock=lambda: now[0])
    assert await credentials.authorization() == "Bearer t1" == credentials.cached()
    now[0] += 595
    assert credentials.cached() is None
    assert await credentials.authorization() == "Bearer t2"


async def test_an_exec_plugin_that_gives_a_certificate(tmp_path: Path, authority: Authority, tls_api: SmallApi) -> None:
    certificate, key = authority.user("carol", [])
    status = {"clientCertificateData": certificate.read_text(), "clientKeyData": key.read_text()}
    cluster = {"server": tls_api.url, "certificate-authority": str(authority.certificate_file)}
    endpoint = connect(write(tmp_path, cluster, {"exec": plugin(tmp_path, status)}))
    assert await seen_by(tls_api, endpoint) == (None, "carol")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "print('hello')"], "expected an ExecCredential"),
        (["-c", "import sys; sys.exit('no session')"], "exit code 1: no session"),
        (["-c", 'print(\'{"kind": "ExecCredential"}\')'], "expected ExecCredential of"),
        (["-c", "import time; time.sleep(60)"], "no answer within 0.2 s"),
    ],
)
async def test_exec_plugins_that_fail_say_why(arguments: list[str], message: str) -> None:
    credentials = ExecCredentials(ExecCommand(sys.executable, arguments, timeout=60 if "time" not in arguments[1] else 0.2), None)
    with pytest.raises(ConfigError, match=message):
        await credentials.authorization()


async def test_an_exec_plugin_that_is_not_installed() -> None:
    credentials = ExecCredentials(ExecCommand("/no/such/plugin", install_hint="see https://example.com"), None)
    with pytest.raises(ConfigError, match=r"could not be started.*see https://example.com"):
        await credentials.authorization()


def test_nothing_configured_says_what_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="expected --kubeconfig"):
        connect()
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube", {"server": "http://home"}, {})
    assert connect().base == "http://home"


def test_static_credentials_need_no_waiting() -> None:
    assert StaticCredentials.token("x").cached() == "Bearer x"
    assert StaticCredentials().cached() == ""
