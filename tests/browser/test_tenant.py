"""A tenant of a real cluster: no page names what is in a namespace whose pods it may not list.

The dashboard runs under the account that `navarch install --web` makes. kube-apiserver reviews the token of a ServiceAccount that may
list pods of one namespace."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.envtest.fixtures import kube_apiserver  # noqa: F401
from tests.envtest.server import RBAC, KubeApiServer
from tests.worlds.browser.chromium import Browser, Visit, expect, visit
from tests.worlds.deploy.installing import install_on

pytestmark = pytest.mark.live
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
OWN, OTHER = "tenant-speech", "tenant-vision"
HIDDEN = (OTHER, "confidential", "vision-queue")
GPUS = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}


def job(server: KubeApiServer, namespace: str, name: str, queue: str, node: str = "") -> None:
    """A gang of one pod with all GPUs of a node; it waits if no node is named."""
    groups = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
    server.request("POST", groups, {**group, "spec": {"minMember": 1, "queue": queue}})
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec: dict[str, Any] = {"schedulerName": "navarch", "containers": [container], **({"nodeName": node} if node else {})}
    annotations = {"scheduling.k8s.io/group-name": name}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-0", "annotations": annotations}, "spec": spec}
    server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)


@contextlib.contextmanager
def two_tenants(server: KubeApiServer) -> Iterator[str]:
    """The job of another tenant holds the only node, and the tenant's own job waits. Yields the tenant's token."""
    install_on(server, "--web")
    status = {"capacity": GPUS, "allocatable": GPUS, "conditions": [{"type": "Ready", "status": "True"}]}
    server.request("POST", "/api/v1/nodes", {"metadata": {"name": "tenant-node"}, "status": status})
    for namespace, queue, name, node in ((OWN, "speech-queue", "asr", ""), (OTHER, "vision-queue", "confidential", "tenant-node")):
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": queue}, "spec": {"weight": 1}}
        server.request("POST", QUEUES, body)
        job(server, namespace, name, queue, node)
    server.request("POST", f"/api/v1/namespaces/{OWN}/serviceaccounts", {"metadata": {"name": "jane"}})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    server.request("POST", f"{RBAC}/namespaces/{OWN}/roles", {"metadata": {"name": "jane"}, "rules": rules})
    subjects = [{"kind": "ServiceAccount", "namespace": OWN, "name": "jane"}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "jane"}
    server.request(
        "POST", f"{RBAC}/namespaces/{OWN}/rolebindings", {"metadata": {"name": "jane"}, "roleRef": role, "subjects": subjects}
    )
    server.service_account(OWN, "jane")  # waits until the server knows the rights
    path = f"/api/v1/namespaces/{OWN}/serviceaccounts/jane/token"
    answer = server.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
    try:
        yield str(answer["status"]["token"])
    finally:
        for namespace, pod in ((OWN, "asr-0"), (OTHER, "confidential-0")):
            server.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod}?gracePeriodSeconds=0")
        for queue in ("speech-queue", "vision-queue"):
            server.request("DELETE", f"{QUEUES}/{queue}")
        server.request("DELETE", "/api/v1/nodes/tenant-node")


@contextlib.contextmanager
def dashboard_process(server: KubeApiServer) -> Iterator[str]:
    """The address of a dashboard that runs as `navarch-web` and takes tokens of the cluster."""
    account = server.service_account("navarch-system", "navarch-web")
    command = [sys.executable, "-m", "navarch.cli.main", "web", f"--kubeconfig={account}", "--listen=127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--login=cluster", "--stop-with-input"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(60)


@contextlib.contextmanager
def logged_in(browser: Browser, address: str, token: str) -> Iterator[Visit]:
    """A reader who typed a token into the form."""
    with visit(browser, address) as reader:
        page = reader.page
        page.goto(address)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("form", name="Log in")).to_have_count(0)
        reader.errors.clear()  # the first page was refused, as it has to be
        reader.is_known = True
        yield reader


def test_no_page_names_what_another_tenant_has(browser: Browser, kube_apiserver: KubeApiServer) -> None:  # noqa: F811
    with two_tenants(kube_apiserver) as token, dashboard_process(kube_apiserver) as address:
        with logged_in(browser, address, token) as reader:
            page = reader.open("jobs")
            expect(page.locator("[data-row]")).to_have_count(1)
            expect(page.locator("[data-row]")).to_contain_text(f"{OWN}/asr")
            for route in ("overview", "jobs", f"jobs/{OWN}/asr", "queues", "queues/speech-queue", "cycles"):
                page = reader.open(route)
                expect(page.locator(".live")).to_have_text("live")
                shown = page.locator("body").inner_text()
                assert not [name for name in HIDDEN if name in shown], (route, shown)
        with logged_in(browser, address, kube_apiserver.token) as reader:
            page = reader.open("jobs")
            expect(page.locator("[data-row]", has_text=f"{OTHER}/confidential")).to_have_count(1)
            expect(page.locator("[data-row]", has_text=f"{OWN}/asr")).to_have_count(1)
