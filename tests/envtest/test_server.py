"""The fixture keeps its promises: data survives a crash, users are identified, RBAC holds."""

from __future__ import annotations

import pytest
from tests.envtest import assets, build
from tests.envtest.fixtures import kube_apiserver
from tests.envtest.server import KubeApiServer

from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import Forbidden
from navarch.kube.resources import PODS

__all__ = ["kube_apiserver"]
pytestmark = pytest.mark.live


def test_it_is_the_version_that_was_asked_for(kube_apiserver: KubeApiServer) -> None:
    version = kube_apiserver.request("GET", "/version")["gitVersion"]
    if assets.find().etcd is None:
        assert version == build.KUBERNETES


def test_a_crash_keeps_what_was_written(kube_apiserver: KubeApiServer) -> None:
    kube_apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": "kept"}})
    before = kube_apiserver.process_ids
    kube_apiserver.kill()
    kube_apiserver.start()
    assert kube_apiserver.process_ids != before
    assert kube_apiserver.request("GET", "/api/v1/namespaces/kept")["status"]["phase"] == "Active"


async def test_a_certificate_is_a_user_without_rights(kube_apiserver: KubeApiServer) -> None:
    async with Client(connect(kube_apiserver.user("somebody", "some:group"))) as client:
        with pytest.raises(Forbidden, match='User "somebody" cannot list resource "pods"'):
            await client.list(PODS)


def test_assets_that_lack_a_binary_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("assets")
    (folder / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    with pytest.raises(assets.Unavailable, match="has no kube-apiserver"):
        assets.find()
