"""Servers to test against: the embedded one, and beside it a real kube-apiserver where one can be had."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.envtest import assets
from tests.envtest.fixtures import kube_apiserver
from tests.envtest.server import KubeApiServer
from tests.worlds.embedded.server import Http, ServerThread, http_of

__all__ = ["kube_apiserver"]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def embedded_thread() -> Iterator[ServerThread]:
    """One embedded server for the session; the two admission steps that a bare kube-apiserver lacks are off."""
    thread = ServerThread(taint_new_nodes=False)
    with thread:
        yield thread


@pytest.fixture
def thread() -> Iterator[ServerThread]:
    """A server of the test's own, as users start it."""
    thread = ServerThread()
    with thread:
        yield thread


@pytest.fixture(scope="session")
def embedded(embedded_thread: ServerThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    assert embedded_thread.server is not None
    client = http_of(embedded_thread.server, tmp_path_factory.mktemp("embedded"))
    yield client
    client.close()


@pytest.fixture(scope="session")
def real(kube_apiserver: KubeApiServer) -> Iterator[Http]:
    """The real thing; skips with a word where there is none."""
    client = Http(kube_apiserver.url, kube_apiserver.token, kube_apiserver.ca_file.read_bytes(), kube_apiserver.kubeconfig)
    yield client
    client.close()


def _has_real() -> bool:
    try:
        assets.find()
    except assets.Unavailable:
        return False
    return True


NO_REAL = pytest.mark.skipif(not _has_real(), reason="no real kube-apiserver here: `make envtest` builds one")


@pytest.fixture(params=["embedded", pytest.param("real", marks=NO_REAL)])
def api(request: pytest.FixtureRequest) -> Http:
    """Every contract holds for both."""
    client: Http = request.getfixturevalue(request.param)
    return client


def fresh_name(lead: str = "ns") -> str:
    return f"{lead}-{next(_numbers)}"


@pytest.fixture
def namespace(api: Http) -> str:
    """A new namespace on the server under test."""
    name = fresh_name()
    assert api.post("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
    return name
