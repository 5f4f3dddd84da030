"""Real kubectl against the embedded server: what users type, and what they read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.conftest import fresh_name
from tests.worlds.embedded.objects import deployment, node, pod, widget, widget_definition
from tests.worlds.embedded.server import Http

KUBECTL = shutil.which("kubectl")
pytestmark = [pytest.mark.live, pytest.mark.skipif(KUBECTL is None, reason="kubectl is not in PATH")]


class Kubectl:
    """Runs kubectl in one namespace."""

    def __init__(self, api: Http, namespace: str, home: Path) -> None:
        self.api = api
        self.namespace = namespace
        self.home = home

    def command(self, *arguments: str) -> list[str]:
        assert KUBECTL is not None
        cache = f"--cache-dir={self.home}"
        return [KUBECTL, f"--kubeconfig={self.api.kubeconfig}", cache, "-n", self.namespace, *arguments]

    def run(self, *arguments: str, manifest: Any = None) -> subprocess.CompletedProcess[str]:
        text = None if manifest is None else json.dumps(manifest)
        environment = {**os.environ, "HOME": str(self.home)}
        return subprocess.run(
            self.command(*arguments), input=text, capture_output=True, text=True, timeout=300, env=environment, check=False
        )

    def __call__(self, *arguments: str, manifest: Any = None) -> str:
        done = self.run(*arguments, manifest=manifest)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, manifest: Any = None) -> str:
        done = self.run(*arguments, manifest=manifest)
        assert done.returncode != 0
        return done.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kubectl")


@pytest.fixture
def kubectl(embedded: Http, home: Path) -> Iterator[Kubectl]:
    namespace = fresh_name("kubectl")
    embedded.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    yield Kubectl(embedded, namespace, home)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def test_create_get_describe_delete(kubectl: Kubectl) -> None:
    assert kubectl("run", "a", "--image=busybox") == "pod/a created\n"
    header, row = rows(kubectl("get", "pods"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["a", "0/1", "Pending", "0"]
    assert rows(kubectl("get", "pods", "-o", "wide"))[0][5:7] == ["IP", "NODE"]
    kubectl("label", "pod", "a", "color=red")
    kubectl("annotate", "pod", "a", "note=hello")
    assert kubectl("get", "pods", "-l", "color=red", "-o", "name") == "pod/a\n"
    uid = kubectl.json("get", "pod", "a")["metadata"]["uid"]
    event = {
        "metadata": {"name": "a.1"},
        "involvedObject": {"kind": "Pod", "namespace": kubectl.namespace, "name": "a", "uid": uid},
        "reason": "Unschedulable",
        "message": "0/3 nodes are available",
        "type": "Warning",
        "source": {"component": "navarch"},
    }
    kubectl.api.post(f"/api/v1/namespaces/{kubectl.namespace}/events", event)
    told = kubectl("describe", "pod", "a")
    assert "note: hello" in told and "0/3 nodes are available" in told
    assert rows(kubectl("get", "events"))[1][1:4] == ["Warning", "Unschedulable", "pod/a"]
    assert "deleted" in kubectl("delete", "pod", "a")
    assert 'pods "a" not found' in kubectl.refused("get", "pod", "a")


def test_apply_edits_and_prunes(kubectl: Kubectl) -> None:
    manifest = deployment("web")
    assert kubectl("apply", "-f", "-", manifest=manifest).endswith("created\n")
    assert kubectl("apply", "-f", "-", manifest=manifest).endswith("unchanged\n")
    manifest["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "s:1"})
    manifest["metadata"]["labels"] = {"tier": "front"}
    assert kubectl("apply", "-f", "-", manifest=manifest).endswith("configured\n")
    manifest["spec"]["template"]["spec"]["containers"].pop(0)
    kubectl("apply", "-f", "-", manifest=manifest)
    found = kubectl.json("get", "deployment", "web")
    assert [each["name"] for each in found["spec"]["template"]["spec"]["containers"]] == ["side"]
    assert found["metadata"]["labels"] == {"tier": "front"}
    del manifest["metadata"]["labels"]
    kubectl("apply", "-f", "-", manifest=manifest)
    assert "labels" not in kubectl.json("get", "deployment", "web")["metadata"]
    assert kubectl.run("diff", "-f", "-", manifest=manifest).returncode == 0


def test_lists_are_applied_as_kubectl_prints_them(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=a=b")
    printed = kubectl.json("get", "configmaps", "a")
    del printed["metadata"]["uid"], printed["metadata"]["resourceVersion"]
    listed = {"apiVersion": "v1", "kind": "List", "items": [printed, deployment("web")]}
    kubectl("delete", "configmap", "a")
    assert kubectl("apply", "-f", "-", manifest=listed) == "configmap/a created\ndeployment.apps/web created\n"
    listed["items"][1]["spec"]["replicaz"] = 3
    assert 'unknown field "spec.replicaz"' in kubectl.refused("apply", "-f", "-", manifest=listed), "the server looks all the same"


def test_apply_on_the_server_finds_conflicts(kubectl: Kubectl) -> None:
    manifest = deployment("web", 2)
    kubectl("apply", "--server-side", "-f", "-", manifest=manifest)
    kubectl("scale", "deployment", "web", "--replicas=7")
    assert "conflict" in kubectl.refused("apply", "--server-side", "-f", "-", manifest=manifest)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=manifest)
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 2


def test_typed_creates_send_protobuf(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "d", "--image=nginx:1", "--replicas=3", "--port=80")
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("create", "job", "j", "--image=busybox", "--", "sleep", "1")
    kubectl("create", "cronjob", "cj", "--image=busybox", "--schedule=*/5 * * * *")
    kubectl("create", "quota", "q", "--hard=services=5,requests.cpu=10")
    kubectl("create", "serviceaccount", "sa")
    kubectl("create", "service", "clusterip", "svc", "--tcp=80:8080")
    kubectl("create", "poddisruptionbudget", "b", "--selector=app=d", "--min-available=50%")
    kubectl("create", "role", "r", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "rb", "--role=r", "--serviceaccount=default:sa")
    kubectl("create", "priorityclass", kubectl.namespace, "--value=10", "--preemption-policy=Never")
    found = kubectl.json("get", "deployment", "d")
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert found["spec"]["replicas"] == 3 and container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert kubectl.json("get", "job", "j")["spec"]["template"]["spec"]["containers"][0]["command"] == ["sleep", "1"]
    assert kubectl.json("get", "secret", "s")["data"] == {"a": "Yg=="}
    assert kubectl.json("get", "pdb", "b")["spec"]["minAvailable"] == "50%"
    assert kubectl.json("get", "service", "svc")["spec"]["ports"][0]["targetPort"] == 8080
    assert kubectl.json("get", "priorityclass", kubectl.namespace)["preemptionPolicy"] == "Never"
    assert rows(kubectl("get", "deployment", "d"))[1][:2] == ["d", "0/3"]


def test_scale_rollout_and_wait(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", manifest=deployment("web", 2))
    kubectl("scale", "deployment", "web", "--replicas=3")
    kubectl("scale", "deployment", "web", "--replicas=4", "--current-replicas=3")
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 4
    waiting = subprocess.Popen(
        kubectl.command("rollout", "status", "deployment/web", "--timeout=180s"), stdout=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert "Waiting for deployment" in waiting.stdout.readline()
    status = {
        "observedGeneration": kubectl.json("get", "deployment", "web")["metadata"]["generation"],
        "replicas": 4,
        "updatedReplicas": 4,
        "readyReplicas": 4,
        "availableReplicas": 4,
        "conditions": [{"type": "Available", "status": "True"}],
    }
    path = f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments/web/status"
    assert kubectl.api.patch(path, {"status": status}).code == 200
    assert "successfully rolled out" in waiting.communicate(timeout=180)[0]
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=180s")
    kubectl("rollout", "restart", "deployment/web")
    annotations = kubectl.json("get", "deployment", "web")["spec"]["template"]["metadata"]["annotations"]
    assert "kubectl.kubernetes.io/restartedAt" in annotations
    kubectl("set", "image", "deployment/web", "main=web:2")
    kubectl("patch", "deployment", "web", "-p", '{"spec":{"replicas":1}}')
    kubectl("patch", "deployment", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":6}]')
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 6


def test_cordon_taint_and_drain(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    kubectl.api.post("/api/v1/nodes", node(name))
    kubectl("cordon", name)
    assert rows(kubectl("get", "node", name))[1][1] == "Ready,SchedulingDisabled"
    kubectl("uncordon", name)
    kubectl("taint", "node", name, "gpu=yes:NoSchedule")
    taints = kubectl.json("get", "node", name)["spec"]["taints"]
    assert {"key": "gpu", "value": "yes", "effect": "NoSchedule"} in taints
    pods = f"/api/v1/namespaces/{name}/pods"
    kubectl.api.post(pods, pod("on-it", {"app": "x"}))
    kubectl.api.post(f"{pods}/on-it/binding", {"metadata": {"name": "on-it"}, "target": {"name": name}})
    draining = subprocess.Popen(
        kubectl.command("drain", name, "--force", "--grace-period=1", "--timeout=180s"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert draining.stdout is not None
    assert any("evicting pod" in line for line in iter(draining.stdout.readline, ""))
    with kubectl.api.watch(pods, fieldSelector="metadata.name=on-it") as events:  # the kubelet's part
        for event in events:
            if event["type"] == "DELETED":
                break
            if event["object"]["metadata"].get("deletionTimestamp"):
                conditions = event["object"]["status"]["conditions"]
                assert any(each["reason"] == "EvictionByEvictionAPI" for each in conditions if "reason" in each)
                kubectl.api.delete(f"{pods}/on-it", {"gracePeriodSeconds": 0})
    assert "drained" in draining.communicate(timeout=180)[0]
    kubectl("delete", "node", name)


def test_a_watch_shows_each_change(kubectl: Kubectl) -> None:
    kubectl("run", "a", "--image=x")
    watching = subprocess.Popen(
        kubectl.command("get", "pods", "-w", "--output-watch-events", "--no-headers"), stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    first = watching.stdout.readline().split()
    kubectl("label", "pod", "a", "x=1")
    second = watching.stdout.readline().split()
    kubectl("delete", "pod", "a", "--wait=false")
    rest = [watching.stdout.readline().split()[0] for _ in range(2)]
    watching.terminate()
    watching.communicate(timeout=60)
    assert (first[:2], second[:2], rest) == (["ADDED", "a"], ["MODIFIED", "a"], ["MODIFIED", "DELETED"])


def test_a_custom_kind_is_applied_shown_and_scaled(kubectl: Kubectl) -> None:
    group = f"{kubectl.namespace}.example.io"
    kind = "Gadget"
    kubectl("apply", "-f", "-", manifest=widget_definition("gadgets", kind, group))
    kubectl("wait", "--for=condition=Established", f"crd/gadgets.{group}", "--timeout=180s")
    kubectl("apply", "-f", "-", manifest=widget("g", kind, group))
    assert rows(kubectl("get", f"gadgets.{group}")) == [["NAME", "SIZE"], ["g", "3"]]
    kubectl("apply", "-f", "-", manifest=widget("g", kind, group, size=4))
    kubectl("scale", f"gadgets.{group}/g", "--replicas=2")
    assert kubectl.json("get", f"gadgets.{group}", "g")["spec"] == {"size": 4, "color": "red", "replicas": 2}
    assert "should be less than or equal to 10" in kubectl.refused("apply", "-f", "-", manifest=widget("g", kind, group, size=40))
    assert 'unknown field "spec.nothing"' in kubectl.refused("apply", "-f", "-", manifest=widget("g", kind, group, nothing=1))
    assert "size\t<integer>" in kubectl("explain", "gadgets.spec", f"--api-version={group}/v1")
    kubectl("delete", "crd", f"gadgets.{group}")


def test_the_rest_of_the_toolbox(kubectl: Kubectl) -> None:
    assert "tolerationSeconds\t<integer>" in kubectl("explain", "pod.spec.tolerations")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "navarch-admin" in kubectl("auth", "whoami")
    names = {row[0] for row in rows(kubectl("api-resources", "--no-headers"))}
    assert {"pods", "nodes", "jobs", "podgroups", "queues", "leases"} <= names
    assert "v1.36" in kubectl("version")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    kubectl("create", "-f", "-", manifest=pod("a"))
    assert "strict decoding error" in kubectl.refused("create", "-f", "-", manifest=pod("b", nothing=1))
    assert "waiting to start" in kubectl.refused("logs", "a")
    kubectl("replace", "--force", "-f", "-", manifest=pod("a", nodeSelector={"x": "y"}))
    assert kubectl.json("get", "pod", "a")["spec"]["nodeSelector"] == {"x": "y"}
    kubectl("delete", "pods", "--all")
    assert kubectl.json("get", "pods")["items"] == []


def test_deleting_a_namespace_waits_until_it_is_empty(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "d", "--image=x")
    kubectl("create", "configmap", "c")
    assert "deleted" in kubectl("delete", "namespace", kubectl.namespace, "--timeout=180s")
    assert kubectl.api.get(f"/api/v1/namespaces/{kubectl.namespace}").code == 404


def test_many_kubectls_at_once(kubectl: Kubectl) -> None:
    failures: list[str] = []

    def create(number: int) -> None:
        done = kubectl.run("create", "configmap", f"c-{number}")
        if done.returncode:
            failures.append(done.stderr)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(kubectl.json("get", "configmaps")["items"]) == 4
