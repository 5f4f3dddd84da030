"""One line for each way in which a request to an API server fails."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import ssl
from datetime import UTC
from pathlib import Path

import pytest
from tests.envtest.certificates import Authority

from navarch.kube.auth.credentials import StaticCredentials
from navarch.kube.auth.tls import Tls
from navarch.kube.client import Client
from navarch.kube.connect import Endpoint
from navarch.kube.errors import Forbidden, KubeError, Status, Unauthorized
from navarch.kube.failure_advice import advice
from navarch.kube.resources import PODS

GONE = datetime.timedelta(days=-3)


def told(endpoint: Endpoint) -> str:
    async def fail() -> str:
        async with Client(endpoint, attempts=1) as client:
            with pytest.raises(KubeError) as failed:
                await client.list(PODS)
        return await asyncio.to_thread(advice, failed.value, endpoint)

    return asyncio.run(fail())


async def _quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def served(certificate: Path, key: Path, tls: Tls) -> str:
    async def run() -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = await asyncio.start_server(_quiet, "127.0.0.1", 0, ssl=context)
        async with server:
            endpoint = Endpoint(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", tls=tls)
            async with Client(endpoint, attempts=1) as client:
                try:
                    await client.list(PODS)
                except KubeError as error:
                    return (await asyncio.to_thread(advice, error, endpoint)).replace(endpoint.server, "SERVER")
        return ""

    return asyncio.run(run())


def test_a_server_that_is_down() -> None:
    found = told(Endpoint("http://127.0.0.1:1"))
    assert found == (
        "cannot reach http://127.0.0.1:1: Connection refused; is the cluster running, and is this its address (`kubectl config view`)?"
    )


def test_a_server_certificate_that_expired(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    found = served(*authority.server(valid_for=GONE), Tls(authority=authority.certificate_file))
    assert found.startswith("the certificate of SERVER expired on 20") and "3 days ago: an administrator has to renew it" in found


def test_a_certificate_of_another_authority(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    ours, theirs = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    found = served(*theirs.server(), Tls(authority=ours.certificate_file))
    assert found.startswith("the certificate of SERVER is not trusted: ") and "certificate-authority of the kubeconfig" in found


def test_a_client_certificate_that_expired(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.user("me", [], valid_for=GONE)
    endpoint = Endpoint("https://127.0.0.1:1", tls=Tls(certificate=certificate, key=key))
    found = advice(Unauthorized(Status(code=401, reason="Unauthorized", message="Unauthorized")), endpoint)
    assert found.startswith("the client certificate of this kubeconfig expired on 20") and "3 days ago" in found


def test_a_token_that_expired_and_one_that_is_refused() -> None:
    refused = Unauthorized(Status(code=401, reason="Unauthorized", message="Unauthorized"))
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1_700_000_000}).encode()).decode().rstrip("=")
    endpoint = Endpoint("http://127.0.0.1:1", credentials=StaticCredentials.token(f"e30.{claims}.x"))
    now = datetime.datetime(2023, 11, 20, tzinfo=UTC)
    assert advice(refused, endpoint, now) == (
        "the token of this kubeconfig expired on 2023-11-14 22:13 UTC, 5 days ago: log in again, or make a new token"
    )
    for token in ("plain", "a.b.c", "a.e30.c"):
        other = Endpoint("http://127.0.0.1:1", credentials=StaticCredentials.token(token))
        assert advice(refused, other).startswith("http://127.0.0.1:1 does not accept the credentials")


def test_a_missing_right_is_named() -> None:
    message = 'pods is forbidden: User "me" cannot list resource "pods" in API group "" at the cluster scope'
    found = advice(Forbidden(Status(code=403, reason="Forbidden", message=message)), Endpoint("http://127.0.0.1:1"))
    assert found == f"no right (403 Forbidden): {message}; an administrator can grant it with a Role; -n names another namespace"
