"""The scheduler's service account, on a real API server with RBAC: what it needs it may, the rest it may not."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from click.testing import CliRunner
from tests.envtest.server import KubeApiServer
from tests.worlds.deploy.installing import install_on
from tests.worlds.deploy.samples import resource_of

from navarch import manifests
from navarch.cli.main import main
from navarch.installed import installed
from navarch.kube.client import Client, PatchType
from navarch.kube.connect import connect
from navarch.kube.errors import Forbidden, NotFound
from navarch.kube.resources import EVENTS, LEASES, PODS, Resource
from navarch.offline.policies import read_policy
from navarch.views.published_state import CONFIG_MAPS, Parameters, PublishedState, QueueShare, published_policy, to_config_map

pytestmark = pytest.mark.live
NODES = Resource("", "v1", "nodes", namespaced=False)
SECRETS = Resource("", "v1", "secrets")
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False)
VOLCANO_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")
VOLCANO_QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
WORK = "permissions"
KUBECTL = shutil.which("kubectl")


@pytest.fixture(scope="module")
def account(kube_apiserver: KubeApiServer) -> str:
    """Kubeconfig of the installed service account."""
    install_on(kube_apiserver)
    kube_apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": WORK}})
    return str(kube_apiserver.service_account("navarch-system", "navarch"))


@pytest_asyncio.fixture
async def scheduler(account: str) -> AsyncIterator[Client]:
    async with Client(connect(account)) as client:
        yield client


@pytest_asyncio.fixture
async def pod(account: str, admin: Client) -> AsyncIterator[dict[str, Any]]:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-"},
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
    }
    made = await admin.create(PODS, body, namespace=WORK)
    yield made
    with contextlib.suppress(NotFound):  # a test may have deleted it
        await admin.delete(PODS, made["metadata"]["name"], namespace=WORK, grace_period=0)


async def test_a_pod_is_bound_and_told_why(scheduler: Client, pod: dict[str, Any]) -> None:
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
    patch = {"status": {"conditions": [condition]}}
    await scheduler.patch(PODS, name, patch, PatchType.STRATEGIC, namespace=WORK, subresource="status")
    await scheduler.bind(WORK, name, uid=uid, node="n1")
    assert (await scheduler.get(PODS, name, namespace=WORK))["spec"]["nodeName"] == "n1"


async def test_a_pod_is_evicted_or_deleted_as_the_policy_says(scheduler: Client, pod: dict[str, Any]) -> None:
    name = pod["metadata"]["name"]
    await scheduler.evict(WORK, name, dry_run=True)
    await scheduler.delete(PODS, name, namespace=WORK, grace_period=0)


async def test_an_event_is_recorded(scheduler: Client) -> None:
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": WORK},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "navarch",
        "reportingInstance": "navarch-0",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "type": "Warning",
        "regarding": {"kind": "Pod", "namespace": WORK, "name": "p"},
    }
    await scheduler.create(EVENTS, body, namespace=WORK)
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:05.000000Z"}}
    await scheduler.patch(EVENTS, "e", series, PatchType.MERGE, namespace=WORK)


async def test_the_lease_and_no_other(scheduler: Client, admin: Client) -> None:
    def body(name: str) -> dict[str, Any]:
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}

    made = await scheduler.create(LEASES, body("navarch"), namespace="navarch-system")
    made["spec"]["holderIdentity"] = "navarch-0"
    await scheduler.update(LEASES, "navarch", made, namespace="navarch-system")
    await admin.create(LEASES, body("other"), namespace="navarch-system")
    with pytest.raises(Forbidden):
        await scheduler.get(LEASES, "other", namespace="navarch-system")
    with pytest.raises(Forbidden):
        await scheduler.create(LEASES, body("navarch"), namespace="kube-system")


async def test_the_published_state_and_no_other_config_map(scheduler: Client, admin: Client, kube_apiserver: KubeApiServer) -> None:
    policy = published_policy(read_policy("navarch", installed()))
    share = QueueShare("research", 0.25, {"nvidia.com/gpu": "32"}, {"nvidia.com/gpu": "8"}, waiting=3)
    data = to_config_map(PublishedState("1", ["navarch"], policy, Parameters(), [share], "navarch-0", "2026-01-01T00:00:00Z"))

    def body(name: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

    async def apply(name: str, namespace: str = "navarch-system") -> None:
        await scheduler.patch(CONFIG_MAPS, name, body(name), PatchType.APPLY, namespace=namespace, field_manager="m", force=True)

    await apply("navarch-state")
    await apply("navarch-state")
    for name, namespace in (("navarch-policy", "navarch-system"), ("navarch-state", "kube-system")):
        with pytest.raises(Forbidden):
            await apply(name, namespace)
    with pytest.raises(Forbidden):
        await scheduler.delete(CONFIG_MAPS, "navarch-state", namespace="navarch-system")
    kube_apiserver.request("POST", f"/api/v1/namespaces/{WORK}/serviceaccounts", {"metadata": {"name": "researcher"}})
    account = str(kube_apiserver.service_account(WORK, "researcher"))
    shown = await asyncio.to_thread(CliRunner().invoke, main, ["queues", "--kubeconfig", account])
    assert "research" in shown.stdout and "gpu 8" in shown.stdout, shown.output
    assert "these are the figures that the scheduler published at 2026-01-01T00:00:00Z" in shown.stderr
    jobs = await asyncio.to_thread(CliRunner().invoke, main, ["jobs", "-A", "--kubeconfig", account])
    assert jobs.exit_code == 1 and "cannot list resource" in jobs.stderr and "Traceback" not in jobs.output
    async with Client(connect(account)) as user:
        assert (await user.get(CONFIG_MAPS, "navarch-state", namespace="navarch-system"))["data"] == data
        with pytest.raises(Forbidden):
            await user.patch(CONFIG_MAPS, "navarch-state", {"data": {}}, PatchType.MERGE, namespace="navarch-system")
        with pytest.raises(Forbidden):
            await user.get(CONFIG_MAPS, "kube-root-ca.crt", namespace="navarch-system")
        with pytest.raises(Forbidden):
            await user.list(CONFIG_MAPS, namespace="navarch-system")
    await admin.delete(CONFIG_MAPS, "navarch-state", namespace="navarch-system")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not in PATH")
async def test_the_commands_of_the_page_let_a_group_read_the_pages(account: str, admin: Client, kube_apiserver: KubeApiServer) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "running.md").read_text(encoding="utf-8")
    wanted = ("kubectl create clusterrole", "kubectl -n navarch-system create rolebinding")
    commands = [shlex.split(line) for line in page.splitlines() if line.startswith(wanted)]
    assert len(commands) == 3
    for _, *arguments in commands:
        command = [str(KUBECTL), f"--kubeconfig={kube_apiserver.kubeconfig}", *arguments]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    reviews = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)

    async def allowed(group: str, **asked: Any) -> bool:
        spec = {"user": "someone", "groups": [group], **asked}
        body = {"apiVersion": reviews.api_version, "kind": "SubjectAccessReview", "spec": spec}
        return bool((await admin.create(reviews, body))["status"]["allowed"])

    for path in ("/state", "/state/waiting", "/state/decisions", "/debug/snapshot"):
        url = {"path": path, "verb": "get"}
        assert await allowed("operators", nonResourceAttributes=url) and not await allowed("others", nonResourceAttributes=url)
    for resource in (
        {"resource": "pods", "subresource": "proxy", "name": "http:navarch-0:8080"},
        {"resource": "secrets", "name": "navarch-pages"},
    ):
        asked = {"verb": "get", "namespace": "navarch-system", **resource}
        assert await allowed("operators", resourceAttributes=asked) and not await allowed("others", resourceAttributes=asked)


async def test_volcano_queue_default_is_made_and_kept_up(scheduler: Client) -> None:
    queue = {"apiVersion": VOLCANO_QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {}}
    await scheduler.create(VOLCANO_QUEUES, queue)
    status = {"status": {"state": "Open", "allocated": {"cpu": "1"}}}
    await scheduler.patch(VOLCANO_QUEUES, "default", status, PatchType.MERGE, subresource="status")
    with pytest.raises(Forbidden):
        await scheduler.patch(VOLCANO_QUEUES, "default", {"spec": {"weight": 9}}, PatchType.MERGE)


async def test_every_dialect_can_be_listed(scheduler: Client) -> None:
    for crd in manifests.crds():
        for version in crd["spec"]["versions"]:
            await scheduler.list(resource_of(crd, version["name"]))


@pytest.mark.parametrize(
    ("verb", "group", "resource", "subresource"),
    [
        ("list", "", "secrets", ""),
        ("get", "", "configmaps", ""),
        ("create", "", "pods", ""),
        ("patch", "", "pods", ""),
        ("create", "", "pods", "exec"),
        ("patch", "", "nodes", ""),
        ("patch", "", "nodes", "status"),
        ("create", "", "serviceaccounts", "token"),
        ("patch", "rbac.authorization.k8s.io", "clusterroles", ""),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", ""),
        ("delete", "scheduling.volcano.sh", "queues", ""),
        ("delete", "scheduling.volcano.sh", "podgroups", ""),
    ],
)
async def test_the_account_lacks_every_other_right(scheduler: Client, verb: str, group: str, resource: str, subresource: str) -> None:
    wanted = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": WORK}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    }
    review = await scheduler.create(REVIEWS, body)
    assert review["status"]["allowed"] is False
