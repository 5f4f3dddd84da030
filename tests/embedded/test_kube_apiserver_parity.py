"""The embedded server and a real kube-apiserver answer the same requests the same: codes, bodies, messages.

Each conversation runs on both, step by step. Volatile values (identity, times, addresses) are masked. Where a step says
`loosely`, only code and reason have to agree: the words of a JSON parser, or messages that we make more telling. Known
and wanted differences: a 500 of kube-apiserver for a client's mistake is a 400 here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.embedded.conftest import fresh_name
from tests.worlds.embedded.objects import binding, config_map, deployment, node, pod, widget, widget_definition
from tests.worlds.embedded.server import Answer, Http

pytestmark = pytest.mark.live
Manifest = dict[str, Any]
MASKED = {
    "uid", "resourceVersion", "creationTimestamp", "time", "deletionTimestamp", "lastTransitionTime", "clusterIP", "continue",
    "clusterIPs", "lastPhaseTransitionTime", "startTime", "batch.kubernetes.io/controller-uid", "controller-uid",
}  # fmt: skip
DROPPED = {"serviceAccount", "serviceAccountName", "storageVersionHash"}
"""Service accounts are off in the bare real server; the hash is of its storage."""
AGE = re.compile(r"(\d+[smhdy])+|<invalid>")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def masked(value: Any) -> Any:
    """Without what differs from run to run. Entries of managedFields are ordered by their second, so two writes around a full
    second may stand either way."""
    if isinstance(value, dict):
        found: dict[str, Any] = {
            key: "*" if key in MASKED and each else masked(each) for key, each in sorted(value.items()) if key not in DROPPED
        }
        if isinstance(found.get("managedFields"), list):
            found["managedFields"].sort(key=json.dumps)
        return found
    if isinstance(value, list):
        return [masked(each) for each in value]
    if isinstance(value, str):
        return re.sub(r"(current:|in record) \(?\d+\)?", r"\1 N", UUID.sub("UUID", value))
    return value


def comparable(answer: Answer, loosely: bool) -> Any:
    body = answer.body
    if not isinstance(body, dict):
        return body
    if loosely and body.get("kind") == "Status":
        return {"code": body.get("code"), "reason": body.get("reason"), "status": body.get("status")}
    body = masked(body)
    for item in body.get("items") or ():  # typed lists leave the kind of their items out
        item.pop("apiVersion", None)
        item.pop("kind", None)
    if isinstance(body.get("details"), dict) and body["details"].get("causes"):
        body["details"]["causes"].sort(key=json.dumps)
    if isinstance(body.get("metadata"), dict) and not body["metadata"].get("continue"):
        body["metadata"].pop("continue", None)
    return body


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in ours or key not in theirs:
                who, value = ("they", theirs[key]) if key not in ours else ("we", ours[key])
                yield f"{path}.{key}: only {who} say {json.dumps(value)[:300]}"
            else:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs)):
            yield from differences(*pair, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: we say {ours!r}, they say {theirs!r}"


class Conversation:
    """The same requests to both servers."""

    def __init__(self, embedded: Http, real: Http) -> None:
        self.servers = (embedded, real)
        self.namespace = fresh_name("same")
        self("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def path(self, plural: str, name: str = "", group: str = "") -> str:
        base = f"/apis/{group}" if group else "/api/v1"
        return f"{base}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def __call__(self, method: str, path: str, body: Any = None, *, loosely: bool = False, kind: str = "", **query: Any) -> Answer:
        content_type = f"application/{kind}" if kind else "application/json"
        ours, theirs = (server(method, path, body, content_type=content_type, query=query or None) for server in self.servers)
        assert ours.code == theirs.code, f"{method} {path}: we say {ours.message!r}, they say {theirs.message!r}"
        unlike = list(differences(comparable(ours, loosely), comparable(theirs, loosely)))
        assert not unlike, f"{method} {path}:\n" + "\n".join(unlike)
        return ours

    def patch(self, path: str, body: Any, kind: str = "merge-patch+json", **options: Any) -> Answer:
        return self("PATCH", path, body, kind=kind, **options)

    def apply(self, path: str, body: Any, **options: Any) -> Answer:
        return self("PATCH", path, body, kind="apply-patch+yaml", **options)


@pytest.fixture
def both(embedded: Http, real: Http) -> Iterator[Conversation]:
    yield Conversation(embedded, real)


def test_the_life_of_a_pod(both: Conversation) -> None:
    pods = both.path("pods")
    both("POST", pods, pod("a"))
    both("POST", pods, pod("a"))
    both("GET", f"{pods}/a")
    both("GET", pods)
    both("GET", f"{pods}/none")
    both("POST", f"{pods}/a/binding", binding("a", "n1"))
    both("POST", f"{pods}/a/binding", binding("a", "n2"))
    both("POST", f"{pods}/none/binding", binding("none", "n2"))
    both("POST", f"{pods}/a/binding", binding("b", "n2"))
    both("GET", f"{pods}/a")
    smp = "strategic-merge-patch+json"
    both.patch(f"{pods}/a/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, smp)
    both.patch(f"{pods}/a/status", {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}, smp)
    both("DELETE", f"{pods}/a")
    both("DELETE", f"{pods}/a")
    both("POST", f"{pods}/a/binding", binding("a", "n2"))
    both("DELETE", f"{pods}/a", {"gracePeriodSeconds": 0})
    both("GET", f"{pods}/a")


def test_a_pod_with_everything(both: Conversation) -> None:
    both(
        "POST",
        both.path("pods"),
        pod(
            "full",
            {"app": "a"},
            volumes=[{"name": "v", "configMap": {"name": "z"}}, {"name": "e"}],
            tolerations=[{"operator": "Exists"}],
            topologySpreadConstraints=[
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"tier": "b"}},
                    "matchLabelKeys": ["app"],
                }
            ],
            initContainers=[{"name": "i", "image": "x:1", "restartPolicy": "Always", "livenessProbe": {"httpGet": {"port": 80}}}],
            containers=[
                {
                    "name": "main",
                    "image": "x",
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1.0001", "memory": "1024Mi"}},
                }
            ],
            resources={"limits": {"cpu": "2"}},
            hostNetwork=True,
            schedulingGates=[{"name": "wait"}],
        ),
    )


def test_pods_that_are_refused(both: Conversation) -> None:
    pods = both.path("pods")
    both("POST", "/api/v1/namespaces/nowhere/pods", pod("a"))
    both("POST", pods, pod("A_b"))
    both("POST", pods, {"metadata": {"name": "x"}, "spec": {}})
    both("POST", pods, {"metadata": {}, "spec": pod("x")["spec"]})
    both("POST", pods, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": 5}]}})
    both("POST", pods, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}}, loosely=True)
    both("POST", pods, {"apiVersion": "v2", "kind": "Pod", "metadata": {"name": "x"}}, loosely=True)
    both("POST", pods, b"{{", loosely=True)
    both("POST", pods, b"", loosely=True)
    both("POST", pods, pod("u", foo=1), fieldValidation="Strict")
    both("POST", pods, pod("u", foo=1))
    both("POST", pods, pod("p", priorityClassName="nope"))
    both("POST", pods, pod("p", priority=7))
    both("POST", pods, pod("p", topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "X"}]))
    both("POST", pods, pod("p", tolerations=[{"key": "", "operator": "Equal", "effect": "Zz"}]))
    for resources in (
        {"requests": {"nvidia.com/gpu": "1"}},
        {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        {"limits": {"nvidia.com/gpu": "500m"}},
        {"limits": {"cpu": "-1"}},
    ):
        both("POST", pods, pod("p", containers=[{"name": "c", "image": "x", "resources": resources}]))
    both("POST", pods, pod("p", containers=[{"name": "c", "image": "x"}, {"name": "c", "image": "x"}]))
    both("POST", pods, pod("p", containers=[{"name": "C_"}]))
    both("POST", pods, pod("p", {"a b": "c"}))
    both("POST", pods, pod("p", {"d": "e f"}))
    both("POST", pods, {"metadata": {"name": "p", "ownerReferences": [{"kind": "x"}]}, "spec": pod("p")["spec"]})
    both("POST", pods, {"metadata": {"name": "p", "creationTimestamp": "yesterday"}, "spec": pod("p")["spec"]})
    both("POST", pods, pod("dry"), dryRun="All")
    both("POST", pods, pod("dry"), dryRun="Some")
    both("POST", pods, pod("dry"), fieldValidation="Perhaps")
    both("GET", f"{pods}/dry")


def test_affinity_that_is_refused(both: Conversation) -> None:
    pods = both.path("pods")
    required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    expressions = [
        {"key": "a", "operator": "Gt", "values": ["x", "y"]},
        {"key": "b", "operator": "Exists", "values": ["1"]},
        {"key": "?", "operator": "In", "values": ["!!"]},
    ]
    fields = [{"key": "metadata.foo", "operator": "In", "values": ["a"]}, {"key": "metadata.name", "operator": "Exists"}]
    unknown = [{"key": "a", "operator": "Foo", "values": ["x"]}]
    chosen = {"topologyKey": "h", "labelSelector": {"matchLabels": {"a": "b"}}}
    affinities: tuple[Manifest, ...] = (
        {"nodeAffinity": {required: {"nodeSelectorTerms": []}}},
        {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": unknown}]}}},
        {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": expressions, "matchFields": fields}]}}},
        {"nodeAffinity": {preferred: [{"weight": 101, "preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]}},
        {"podAffinity": {required: [{"topologyKey": "h", "labelSelector": {"matchExpressions": unknown}}]}},
        {"podAffinity": {preferred: [{"weight": 0, "podAffinityTerm": chosen}]}},
        {"podAntiAffinity": {required: [{"labelSelector": {"matchLabels": {"a": "b"}}}]}},
    )
    for affinity in affinities:
        both("POST", pods, pod("p", affinity=affinity))


def test_containers_that_are_refused(both: Conversation) -> None:
    pods = both.path("pods")

    def container(**fields: Any) -> Manifest:
        return pod("p", containers=[{"name": "c", "image": "i", **fields}])

    both("POST", pods, container(resources={"requests": {"gpus": "1"}, "limits": {"gpus": "1"}}))
    both("POST", pods, container(resources={"requests": {"cpu": "1", "pods": "1"}}))
    both("POST", pods, container(resources={"limits": {"a/b/c": "1"}}))
    both("POST", pods, container(volumeMounts=[{"name": "nowhere", "mountPath": "/x"}]))
    both("POST", pods, container(resources={"claims": [{"name": "nowhere"}]}))
    both("POST", pods, container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "Foo"}]))
    both("POST", pods, container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2))
    both("POST", pods, pod("p", schedulingGates=[{"name": "a"}, {"name": "a"}]))
    both("POST", pods, pod("p", schedulingGates=[{"name": "a b"}, {"name": ""}]))
    claims = [{"name": "x"}, {"name": "x", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]
    both("POST", pods, pod("p", resourceClaims=claims))


def test_config_maps_and_budgets_that_are_refused(both: Conversation) -> None:
    maps, budgets = both.path("configmaps"), both.path("poddisruptionbudgets", group="policy/v1")
    both("POST", maps, config_map("m", {"a/b": "1"}))
    # One faulty key a map: kube-apiserver names several in the random order of a Go map.
    both("POST", maps, {"metadata": {"name": "m"}, "data": {"..": "1"}, "binaryData": {"b c": "eA=="}})
    both("POST", maps, {"metadata": {"name": "m"}, "data": {"a": "x"}, "binaryData": {"a": "eA=="}})
    both("POST", maps, config_map("m", {"a": "x" * (1024 * 1024 + 1)}))
    both("POST", maps, {"metadata": {"name": "m", "finalizers": ["nodomain"]}, "data": {}})
    both("POST", maps, {"metadata": {"name": "not-a-number", "resourceVersion": "abc"}})
    both("POST", maps, {"metadata": {"name": "zero", "resourceVersion": "0"}})
    both("POST", both.path("secrets"), {"metadata": {"name": "s"}, "stringData": {"a/b": "x"}})
    selector = {"matchLabels": {"a": "b"}}
    for spec in ({"minAvailable": -1}, {"maxUnavailable": "150%"}, {"maxUnavailable": "abc"}):
        both("POST", budgets, {"metadata": {"name": "b"}, "spec": {**spec, "selector": selector}})
    wrong = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "Foo",
        "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
    }
    both("POST", budgets, {"metadata": {"name": "b"}, "spec": wrong})


def test_reading_with_options_is_answered_alike(both: Conversation) -> None:
    pods = both.path("pods")
    both("POST", pods, pod("a", {"app": "a"}))
    both("GET", pods, labelSelector="app in (a,b),!other")
    both("GET", pods, labelSelector="app notin (a)")
    both("GET", pods, fieldSelector="spec.nodeName=,status.phase!=Failed")
    both("GET", pods, labelSelector="a in (b")
    both("GET", pods, fieldSelector="spec.foo=1")
    both("GET", both.path("configmaps"), fieldSelector="data.foo=1")
    both("GET", pods, resourceVersionMatch="Exact")
    both("GET", pods, resourceVersionMatch="Foo", resourceVersion="1")
    both("GET", pods, resourceVersionMatch="Exact", resourceVersion="0")
    both("GET", pods, resourceVersion="abc")
    both("GET", pods, resourceVersion="99999999")
    both("GET", pods, loosely=True, **{"continue": "zzz"})
    both("GET", pods, limit="abc", loosely=True)
    both("GET", pods, watch="true", sendInitialEvents="true")
    both("GET", pods, sendInitialEvents="true")
    both("GET", "/api/v1/foos")
    both("GET", "/nope")


def test_patches_are_answered_alike(both: Conversation) -> None:
    pods, path = both.path("pods"), both.path("deployments", "d", "apps/v1")
    both("POST", pods, pod("a"))
    both.patch(f"{pods}/a", [{"op": "test", "path": "/metadata/name", "value": "z"}], "json-patch+json", loosely=True)
    both.patch(f"{pods}/a", [{"op": "zz"}], "json-patch+json", loosely=True)
    both.patch(f"{pods}/a", [{"op": "add", "path": "/metadata/labels", "value": {"k": "v"}}], "json-patch+json")
    both.patch(f"{pods}/a", {"spec": {"hostNetwork": True}}, loosely=True)
    both.patch(f"{pods}/a", {}, "json", loosely=True)
    both.patch(f"{pods}/none", {})
    both("PUT", f"{pods}/none", pod("none"))
    both("PUT", pods, pod("none"))
    both("POST", path.rpartition("/")[0], deployment("d"))
    smp = "strategic-merge-patch+json"

    def containers(*items: Manifest, **more: Any) -> Manifest:
        return {"spec": {"template": {"spec": {"containers": list(items), **more}}}}

    both.patch(path, containers({"name": "main", "env": [{"name": "B", "value": "2"}]}), smp)
    both.patch(path, containers({"name": "side", "image": "s"}), smp)
    order = {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}
    both.patch(path, containers({"name": "main", "image": "q"}, **order), smp)
    both.patch(path, containers({"name": "side", "$patch": "delete"}), smp)
    both.patch(path, containers({"$patch": "replace"}, {"name": "n", "image": "q"}), smp)
    both.patch(path, {"spec": {"selector": {"matchLabels": {"app": "c"}}}})
    both.patch(path, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 9}})
    both.patch(f"{path}/status", {"status": {"replicas": 1}, "spec": {"replicas": 9}})


def test_server_side_apply_is_answered_alike(both: Conversation) -> None:
    path = both.path("configmaps", "s")
    one = config_map("s", {"a": "1", "b": "2"}, labels={"l": "1"})
    both.apply(path, one, fieldManager="one")
    both.apply(path, one, fieldManager="one")
    both.apply(path, {**one, "data": {"a": "9"}}, fieldManager="two")
    both.apply(path, {**one, "data": {"a": "9"}}, fieldManager="two", force="true")
    both.apply(path, {**one, "data": {"a": "9"}}, fieldManager="one")
    both.apply(path, one)
    both.apply(path, {**one, "kind": "Secret"}, fieldManager="x")
    both.apply(path, {**one, "metadata": {"name": "s", "managedFields": [{"manager": "x"}]}}, fieldManager="x")
    both.patch(path, {"data": {"z": "1"}}, fieldManager="upd")
    both.apply(path, {**one, "data": {"z": "2", "a": "1"}}, fieldManager="three")
    path = both.path("deployments", "d", "apps/v1")
    whole = deployment("d", 1)
    both.apply(path, whole, fieldManager="one")
    less = json.loads(json.dumps(whole))
    less["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "y"})
    del less["spec"]["replicas"]
    both.apply(path, less, fieldManager="one")
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "z"}]}}}}
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, **side}
    both.apply(path, other, fieldManager="other")
    both.apply(path, other, fieldManager="other", force="true")
    less["spec"]["template"]["spec"]["containers"].pop()
    both.apply(path, less, fieldManager="one")
    status = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": 3}}
    both.apply(f"{path}/status", status, fieldManager="controller")


def test_scale_is_answered_alike(both: Conversation) -> None:
    path = both.path("deployments", "d", "apps/v1")
    both("POST", path.rpartition("/")[0], deployment("d"))
    both("GET", f"{path}/scale")
    both.patch(f"{path}/scale", {"spec": {"replicas": 3}})
    both.patch(f"{path}/scale", {"spec": {"replicas": -3}})
    both("GET", path)
    both.apply(path, deployment("d", 5), fieldManager="gitops")
    both("DELETE", path)


def test_custom_kinds_are_served_alike(both: Conversation) -> None:
    kind = "Same" + both.namespace.replace("-", "").title()
    group = f"{both.namespace}.example.io"
    definition = widget_definition("sames", kind, group)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    wrong = {**definition, "metadata": {"name": "other.example.io"}}
    both("POST", definitions, wrong, loosely=True)
    for server in both.servers:
        assert server.post(definitions, definition).code == 201
    path = both.path("sames", group=f"{group}/v1")
    wait_until_served(both, path, f"/apis/{group}/v1", f"/apis/{group}")

    def made(name: str, **spec: Any) -> Manifest:
        return widget(name, kind, group, **spec)

    both("POST", path, made("a", items=[{"name": "x"}], foo=1, free={"z": [1]}))
    both("POST", path, made("b", foo=1), fieldValidation="Strict")
    both("POST", path, made("b", color="green"))
    both("POST", path, made("b", size=99))
    both("POST", path, made("b", size="x"))
    both("POST", path, {**made("b"), "spec": {}})
    both("POST", path, made("b", tags=["a", "a"]))
    both("POST", path, made("b", tags=["abcdefgh"]))
    both("POST", path, made("b", port=1.5))
    both("POST", path, {"metadata": {"name": "b"}, "spec": {"size": 1}}, loosely=True)
    both("POST", path, {**made("b"), "kind": "Foo"})
    both("PUT", f"{path}/a", made("a"))
    both.patch(f"{path}/a/status", {"status": {"replicas": 2, "selector": "a=b"}, "spec": {"size": 9}})
    both.patch(f"{path}/a", {"status": {"replicas": 7}, "spec": {"size": 5, "replicas": 1}})
    both("GET", f"{path}/a/scale")
    both.patch(f"{path}/a/scale", {"spec": {"replicas": 4}})
    both.patch(f"{path}/a", {}, "strategic-merge-patch+json", loosely=True)
    both.apply(f"{path}/b", made("b", items=[{"name": "x", "value": 1}]), fieldManager="one")
    both.apply(f"{path}/b", made("b", items=[{"name": "y"}]), fieldManager="two")
    both("GET", path, fieldSelector="spec.color=red")
    both("GET", path, fieldSelector="spec.size=3")
    both("GET", f"/apis/{group}/v1")
    both("GET", f"/apis/{group}")
    both("DELETE", f"{path}/a")


def wait_until_served(both: Conversation, *paths: str) -> None:
    """A real server needs a moment to establish a kind, and another to list it among the groups."""
    until = time.monotonic() + 120
    for server in both.servers:
        for path in paths:
            while server.get(path).code != 200:
                assert time.monotonic() < until, f"{path} is not served"


def test_deletions_are_answered_alike(both: Conversation) -> None:
    maps = both.path("configmaps")
    both("POST", maps, config_map("f", finalizers=["example.io/x"]))
    both("DELETE", f"{maps}/f")
    both.patch(f"{maps}/f", {"metadata": {"finalizers": ["example.io/x", "example.io/y"]}}, loosely=True)
    both.patch(f"{maps}/f", {"metadata": {"finalizers": None}})
    both("GET", f"{maps}/f")
    both("POST", maps, config_map("o"))
    both.patch(f"{maps}/o", {"metadata": {"uid": "x", "labels": {"a": "b"}}}, loosely=True)
    both.patch(f"{maps}/o", {"metadata": {"uid": "x", "labels": {"a": "b"}}}, "strategic-merge-patch+json", loosely=True)
    both.apply(f"{maps}/o", config_map("o", uid="x"), fieldManager="one", loosely=True)
    both("DELETE", f"{maps}/o", {"preconditions": {"uid": "x"}})
    both("DELETE", f"{maps}/o", {"preconditions": {"resourceVersion": "1"}})
    both("DELETE", f"{maps}/o", {"propagationPolicy": "Foo"})
    both("DELETE", f"{maps}/o", dryRun="All")
    both("GET", f"{maps}/o")
    both("DELETE", f"{maps}/o", {"propagationPolicy": "Background"})
    both("DELETE", f"{maps}/o")
    both("DELETE", "/api/v1/namespaces/default")


def test_evictions_are_answered_alike(both: Conversation) -> None:
    pods, budgets = both.path("pods"), both.path("poddisruptionbudgets", group="policy/v1")
    both("POST", pods, pod("e", {"app": "e"}))
    both("POST", f"{pods}/e/binding", binding("e", "n1"))
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    both.patch(f"{pods}/e/status", {"status": running}, "strategic-merge-patch+json")
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "e"}}}}
    both("POST", budgets, budget)
    figures = {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0}
    for server in both.servers:
        server.patch(f"{budgets}/b/status", {"status": figures})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "e"}}
    assert both("POST", f"{pods}/e/eviction", eviction).code == 429
    for server in both.servers:
        server.delete(f"{budgets}/b")
    both("POST", f"{pods}/e/eviction", eviction)
    both("GET", f"{pods}/e")


def test_every_kind_that_scheduling_touches(both: Conversation) -> None:
    name = both.namespace
    labels = {"matchLabels": {"a": "b"}}
    template: Manifest = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    job = {"template": {"spec": {**template["spec"], "restartPolicy": "Never"}}}
    workload = {"serviceName": "s", "selector": labels, "template": template}
    namespaced: list[tuple[str, str, Manifest]] = [
        ("configmaps", "", {"data": {"a": "b"}}),
        ("secrets", "", {"stringData": {"a": "b"}}),
        ("services", "", {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
        ("serviceaccounts", "", {}),
        ("resourcequotas", "", {"spec": {"hard": {"services": "9", "requests.cpu": "1000m"}}}),
        ("limitranges", "", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "1"}}]}}),
        ("replicationcontrollers", "", {"spec": {"template": template}}),
        (
            "persistentvolumeclaims",
            "",
            {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        ),
        ("replicasets", "apps/v1", {"spec": workload}),
        ("statefulsets", "apps/v1", {"spec": workload}),
        ("daemonsets", "apps/v1", {"spec": workload}),
        ("jobs", "batch/v1", {"spec": job}),
        ("cronjobs", "batch/v1", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
        ("poddisruptionbudgets", "policy/v1", {"spec": {"maxUnavailable": "30%", "selector": labels}}),
        (
            "leases",
            "coordination.k8s.io/v1",
            {"spec": {"holderIdentity": "x", "renewTime": "2024-01-01T00:00:00.123456Z", "leaseDurationSeconds": 15}},
        ),
        (
            "events",
            "",
            {"involvedObject": {"kind": "Pod", "namespace": name, "name": "a"}, "reason": "R", "message": "m", "type": "Normal"},
        ),
        ("podgroups", "scheduling.k8s.io/v1alpha2", {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}),
        (
            "workloads",
            "scheduling.k8s.io/v1alpha2",
            {"spec": {"podGroupTemplates": [{"name": "w", "schedulingPolicy": {"gang": {"minCount": 4}}}]}},
        ),
        (
            "resourceclaims",
            "resource.k8s.io/v1",
            {"spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}},
        ),
        ("csistoragecapacities", "storage.k8s.io/v1", {"storageClassName": "s", "capacity": "1024Mi"}),
        (
            "rolebindings",
            "rbac.authorization.k8s.io/v1",
            {"subjects": [{"kind": "User", "name": "u"}], "roleRef": {"kind": "ClusterRole", "name": "view"}},
        ),
        ("networkpolicies", "networking.k8s.io/v1", {"spec": {"podSelector": {}}}),
        (
            "horizontalpodautoscalers",
            "autoscaling/v1",
            {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 3}},
        ),
    ]
    for plural, group, content in namespaced:
        path = both.path(plural, group=group)
        both("POST", path, {"metadata": {"name": "x"}, **content})
        if plural not in ("poddisruptionbudgets", "resourcequotas"):  # controllers that a bare server lacks write these
            both("GET", f"{path}/x")
    both("GET", both.path("events", "x", "events.k8s.io/v1"))
    cluster: list[tuple[str, str, Manifest]] = [
        ("nodes", "", {"status": {"capacity": {"cpu": "4", "memory": "1024Mi"}}}),
        ("priorityclasses", "scheduling.k8s.io/v1", {"value": 100}),
        ("storageclasses", "storage.k8s.io/v1", {"provisioner": "x"}),
        ("runtimeclasses", "node.k8s.io/v1", {"handler": "h", "overhead": {"podFixed": {"cpu": "100m"}}}),
        ("deviceclasses", "resource.k8s.io/v1", {"spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
        (
            "resourceslices",
            "resource.k8s.io/v1",
            {
                "spec": {
                    "driver": "d.io",
                    "nodeName": "n",
                    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "g0"}],
                }
            },
        ),
        (
            "volumeattachments",
            "storage.k8s.io/v1",
            {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}},
        ),
        ("csinodes", "storage.k8s.io/v1", {"spec": {"drivers": [{"name": "d.io", "nodeID": "n"}]}}),
        (
            "persistentvolumes",
            "",
            {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}},
        ),
        (
            "clusterroles",
            "rbac.authorization.k8s.io/v1",
            {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
        ),
    ]
    for plural, group, content in cluster:
        path = f"/apis/{group}/{plural}" if group else f"/api/v1/{plural}"
        both("POST", path, {"metadata": {"name": name}, **content})
        both("GET", f"{path}/{name}")
        both("DELETE", f"{path}/{name}")


def test_rules_of_single_kinds(both: Conversation) -> None:
    deployments = both.path("deployments", group="apps/v1")
    mismatched = deployment("e")
    mismatched["spec"]["selector"]["matchLabels"] = {"app": "other"}
    both("POST", deployments, mismatched)
    jobs = both.path("jobs", group="batch/v1")
    restarting = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Always"}}
    both("POST", jobs, {"metadata": {"name": "k"}, "spec": {"template": restarting}})
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    both("POST", classes, {"metadata": {"name": both.namespace}, "value": 5})
    both.patch(f"{classes}/{both.namespace}", {"value": 101})
    both("POST", classes, {"metadata": {"name": "system-x"}, "value": 100})
    both("POST", classes, {"metadata": {"name": "big"}, "value": 2_000_000_000})
    both("DELETE", f"{classes}/{both.namespace}")
    leases = both.path("leases", group="coordination.k8s.io/v1")
    both("POST", leases, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}})
    both("PUT", f"{leases}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "y"}})
    maps = both.path("configmaps")
    both("POST", maps, {**config_map("frozen"), "immutable": True})
    both.patch(f"{maps}/frozen", {"data": {"a": "2"}})
    both("POST", maps, b"metadata: {name: yaml}\ndata: {a: b}\n", kind="yaml")
    both("POST", "/api/v1/nodes", node(both.namespace))
    both.patch(f"/api/v1/nodes/{both.namespace}", {"spec": {"unschedulable": True}}, "strategic-merge-patch+json")
    both("DELETE", f"/api/v1/nodes/{both.namespace}")


@pytest.mark.parametrize("plural", ["pods", "configmaps", "secrets", "services"])
def test_tables_have_the_same_columns_and_cells(both: Conversation, plural: str) -> None:
    both("POST", both.path("pods"), pod("a"))
    both("POST", both.path("configmaps"), config_map("a"))
    form = "application/json;as=Table;v=v1;g=meta.k8s.io"
    tables = [server("GET", both.path(plural), Accept=form).body for server in both.servers]
    for table in tables:
        for column in table["columnDefinitions"]:
            column.pop("description")
        for row in table["rows"]:
            row["cells"] = ["AGE" if AGE.fullmatch(str(cell)) else cell for cell in row["cells"]]
    assert masked(tables[0]) == masked(tables[1])


def test_metadata_only_and_discovery(both: Conversation) -> None:
    both("POST", both.path("pods"), pod("a"))
    form = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    lists = [server("GET", both.path("pods"), Accept=form).body for server in both.servers]
    assert masked(lists[0]) == masked(lists[1])
    for group in ("apps", "batch", "policy", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io"):
        both("GET", f"/apis/{group}/v1")


def test_administrative_access_to_devices(both: Conversation) -> None:
    group = "resource.k8s.io/v1"
    claims, templates = both.path("resourceclaims", group=group), both.path("resourceclaimtemplates", group=group)
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    plain, admin = {"name": "a", "exactly": exactly}, {"name": "b", "exactly": {**exactly, "adminAccess": True}}
    spec = {"devices": {"requests": [plain, admin]}}
    assert both("POST", claims, {"metadata": {"name": "refused"}, "spec": spec}).code == 422
    assert both("POST", templates, {"metadata": {"name": "refused"}, "spec": {"spec": spec}}).code == 422
    both("POST", claims, {"metadata": {"name": "early"}, "spec": {"devices": {"requests": [plain]}}})
    result = {"request": "a", "driver": "d.example.com", "pool": "p", "device": "g", "adminAccess": True}
    given = {"status": {"allocation": {"devices": {"results": [result]}}}}
    assert both.patch(f"{claims}/early/status", given).code == 422
    both.patch(f"/api/v1/namespaces/{both.namespace}", {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
    assert both("POST", claims, {"metadata": {"name": "granted"}, "spec": spec}).code == 201
    assert both("POST", templates, {"metadata": {"name": "granted"}, "spec": {"spec": spec}}).code == 201
