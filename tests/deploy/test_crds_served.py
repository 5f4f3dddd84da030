"""An API server takes the CRDs, keeps every field of every dialect, fills defaults and refuses nonsense.

The embedded one has to answer as the real one does, so both are asked the same.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.installing import install_on, run_install
from tests.worlds.deploy.samples import samples

from navarch.embedded.api.server import ApiServer
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.errors import ApiError, BadRequest
from navarch.kube.resources import CRDS, Resource

pytestmark = pytest.mark.live
SAMPLES = samples()
SERVERS = ("embedded", "kube-apiserver")
VOLCANO_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")
VOLCANO_QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
TOPOLOGIES = Resource("kai.scheduler", "v1alpha1", "topologies", namespaced=False)
HYPERNODES = Resource("topology.volcano.sh", "v1alpha1", "hypernodes", namespaced=False)


@pytest.fixture(scope="module")
def installed(kube_apiserver: KubeApiServer) -> KubeApiServer:
    install_on(kube_apiserver)
    return kube_apiserver


@pytest_asyncio.fixture(params=SERVERS)
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    """An administrator: on the embedded server, which has the CRDs from the start, or where `navarch install` ran."""
    if request.param == "kube-apiserver":
        server: KubeApiServer = request.getfixturevalue("installed")
        async with Client(connect(server.kubeconfig)) as client:
            yield client
        return
    async with ApiServer() as embedded:
        kubeconfig = embedded.kubeconfig(tmp_path / "kubeconfig")
        async with Client(connect(kubeconfig)) as client:
            yield client


async def without_status(client: Client, resource: Resource) -> bool:
    return not await client.discovery.serves(resource, "status")


@pytest.mark.parametrize(("resource", "sample"), SAMPLES, ids=[f"{resource.plural}.{resource.group}" for resource, _ in SAMPLES])
async def test_no_field_of_a_dialect_is_lost(client: Client, resource: Resource, sample: dict[str, Any]) -> None:
    name, namespace = sample["metadata"]["name"], sample["metadata"].get("namespace")
    made = await client.create(resource, sample, namespace=namespace)
    try:
        if "status" in sample and not await without_status(client, resource):
            assert "status" not in made, "status comes in by its subresource only"
            await client.update(resource, name, {**made, "status": sample["status"]}, namespace=namespace, subresource="status")
        stored = await client.get(resource, name, namespace=namespace)
        for part in sorted(set(sample) - {"metadata"}):
            assert stored[part] == sample[part]
    finally:
        await client.delete(resource, name, namespace=namespace)


async def test_no_crd_has_a_problem(client: Client) -> None:
    for crd in (await client.list(CRDS)).items:
        conditions = {item["type"]: item for item in crd["status"]["conditions"]}
        assert conditions["Established"]["status"] == "True"
        assert conditions["NamesAccepted"]["status"] == "True"
        assert "NonStructuralSchema" not in conditions, conditions.get("NonStructuralSchema")


async def test_defaults_are_those_of_volcano(client: Client) -> None:
    group = {"metadata": {"name": "empty"}, "spec": {"networkTopology": {}, "subGroupPolicy": [{"name": "a"}]}}
    body = {"apiVersion": VOLCANO_GROUPS.api_version, "kind": "PodGroup", **group}
    made = await client.create(VOLCANO_GROUPS, body, namespace="default", dry_run=True)
    assert made["spec"]["queue"] == "default"
    assert made["spec"]["networkTopology"] == {"mode": "hard"}
    assert made["spec"]["subGroupPolicy"] == [{"name": "a", "subGroupSize": 1, "minSubGroups": 0}]
    queue = {"apiVersion": VOLCANO_QUEUES.api_version, "kind": "Queue", "metadata": {"name": "empty"}, "spec": {}}
    made = await client.create(VOLCANO_QUEUES, queue, dry_run=True)
    assert made["spec"] == {"weight": 1, "dequeueStrategy": "traverse"}


def changed(resource: Resource, change: dict[str, Any]) -> dict[str, Any]:
    sample = copy.deepcopy(next(item for found, item in SAMPLES if found == resource))
    sample["spec"].update(change)
    return sample


async def refused_fields(client: Client, resource: Resource, change: dict[str, Any]) -> list[str]:
    body = changed(resource, change)
    with pytest.raises(BadRequest) as refusal:
        await client.create(resource, body, namespace=body["metadata"].get("namespace"), dry_run=True)
    return [cause.field for cause in refusal.value.details.causes]


HOST = {"nodeLabel": "kubernetes.io/hostname"}


@pytest.mark.parametrize(
    ("resource", "change", "field"),
    [
        (VOLCANO_QUEUES, {"weight": 0}, "spec.weight"),
        (VOLCANO_QUEUES, {"capability": {"cpu": "many"}}, "spec.capability.cpu"),
        (VOLCANO_GROUPS, {"networkTopology": {"mode": "firm"}}, "spec.networkTopology.mode"),
        (Resource("scheduling.run.ai", "v2alpha2", "podgroups"), {"preemptibility": "maybe"}, "spec.preemptibility"),
        (Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups"), {"minMember": 0}, "spec.minMember"),
    ],
)
async def test_nonsense_is_refused_with_the_field(client: Client, resource: Resource, change: dict[str, Any], field: str) -> None:
    assert field in await refused_fields(client, resource, change)


@pytest.mark.parametrize(
    ("resource", "change", "field"),
    [
        (TOPOLOGIES, {"levels": [HOST, {"nodeLabel": "rack"}]}, "spec.levels"),
        (TOPOLOGIES, {"levels": [{"nodeLabel": "a"}, {"nodeLabel": "a"}]}, "spec.levels"),
        (HYPERNODES, {"members": [{"type": "Node", "selector": {}}]}, "spec.members[0].selector"),
    ],
)
async def test_rules_of_a_schema_hold(
    installed: KubeApiServer, admin: Client, resource: Resource, change: dict[str, Any], field: str
) -> None:
    """Written in CEL, which only the real server evaluates."""
    assert field in await refused_fields(admin, resource, change)


async def test_levels_of_a_topology_stay_but_their_aliases_may_change(installed: KubeApiServer, admin: Client) -> None:
    sample = changed(TOPOLOGIES, {"levels": [{"nodeLabel": "zone", "alias": "z"}, HOST]})
    sample["metadata"]["name"] = "fixed"
    await admin.create(TOPOLOGIES, sample)
    try:
        renamed = {"spec": {"levels": [{"nodeLabel": "zone", "alias": "region"}, HOST]}}
        await admin.patch(TOPOLOGIES, "fixed", renamed, PatchType.MERGE)
        with pytest.raises(ApiError, match="immutable"):
            await admin.patch(TOPOLOGIES, "fixed", {"spec": {"levels": [HOST]}}, PatchType.MERGE)
    finally:
        await admin.delete(TOPOLOGIES, "fixed")


def test_installing_again_changes_nothing(installed: KubeApiServer) -> None:
    outcomes = {line.split(" ", 1)[1] for line in run_install(installed.kubeconfig)}
    assert outcomes == {"unchanged", "left out: monitoring.coreos.com is not served here"}


def test_a_crd_applied_by_another_manager_is_kept(installed: KubeApiServer) -> None:
    name = "topologies.kai.scheduler"
    path = f"{CRDS.path()}/{name}"
    crd = installed.request("GET", path)
    ours = crd["metadata"]["managedFields"]
    crd["metadata"]["managedFields"] = [{}]  # the API's way to clear the field managers
    crd = installed.request("PUT", path, crd)
    try:
        lines = run_install(installed.kubeconfig, "--dialect", "kai")
        assert f"customresourcedefinitions/{name} kept: another system installed it" in lines
    finally:
        crd["metadata"]["managedFields"] = ours
        installed.request("PUT", path, crd)
    assert f"customresourcedefinitions/{name} unchanged" in run_install(installed.kubeconfig, "--dialect", "kai")


def test_a_dry_run_stores_nothing(kube_apiserver: KubeApiServer) -> None:
    lines = run_install(kube_apiserver.kubeconfig, "--name", "elsewhere", "--namespace", "elsewhere", "--dry-run")
    assert "namespaces/elsewhere created (dry run)" in lines
    with pytest.raises(RuntimeError, match=r"^GET /api/v1/namespaces/elsewhere: 404 "):
        kube_apiserver.request("GET", "/api/v1/namespaces/elsewhere")
