"""What the server does by itself after a write: garbage, namespaces, budgets, taints, protected claims, quotas."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.embedded.objects import config_map, deployment, node, pod, widget, widget_definition

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.kinds.crds import CustomKinds
from navarch.embedded.api.kinds.registry import Registry
from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.housekeeping import Housekeeping
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest


class Cluster:
    """Operations and housekeeping without HTTP."""

    def __init__(self) -> None:
        self.store = Store()
        self.operations = Operations(self.store, Registry())
        CustomKinds(self.operations)
        self.housekeeping = Housekeeping(self.operations)

    async def start(self) -> None:
        self.housekeeping.start()
        self.create("namespaces", {"metadata": {"name": "default"}}, "")
        await self.rest()

    async def rest(self) -> None:
        await self.housekeeping.idle()

    def create(self, resource: str, obj: Manifest, namespace: str = "default") -> Record:
        return self.operations.create(self.operations.kind(resource), namespace, obj)

    def delete(self, resource: str, name: str, namespace: str = "default", **options: Any) -> None:
        kind = self.operations.kind(resource)
        self.operations.delete(kind, namespace, name, DeleteOptions(**options))

    def names(self, resource: str, namespace: str = "default") -> list[str]:
        return [record.name for record in self.store.list(resource, namespace)]

    def change(self, resource: str, name: str, part: str, value: Any, namespace: str = "default") -> None:
        def changed(obj: Manifest) -> Manifest:
            obj[part] = {**obj.get(part, {}), **value}
            return obj

        self.store.modify(resource, namespace, name, changed)


@pytest.fixture
async def cluster() -> Any:
    made = Cluster()
    await made.start()
    yield made
    await made.housekeeping.stop()


def owned_by(owner: Record, name: str, blocks: bool = True) -> Manifest:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": blocks,
    }
    return config_map(name, ownerReferences=[reference])


async def test_background_deletion_takes_children_and_their_children(cluster: Cluster) -> None:
    parent = cluster.create("configmaps", config_map("parent"))
    child = cluster.create("configmaps", owned_by(parent, "child"))
    cluster.create("configmaps", owned_by(child, "grandchild"))
    cluster.create("configmaps", config_map("stranger"))
    cluster.delete("configmaps", "parent")
    assert "child" in cluster.names("configmaps")
    await cluster.rest()
    assert cluster.names("configmaps") == ["stranger"]


async def test_foreground_deletion_waits_for_children_that_block(cluster: Cluster) -> None:
    parent = cluster.create("configmaps", config_map("parent"))
    held = owned_by(parent, "held")
    held["metadata"]["finalizers"] = ["example.io/hold"]
    cluster.create("configmaps", held)
    cluster.create("configmaps", owned_by(parent, "free"))
    cluster.delete("configmaps", "parent", propagation="Foreground")
    await cluster.rest()
    assert cluster.names("configmaps") == ["held", "parent"]
    cluster.operations.modify(
        cluster.operations.kind("configmaps"), "default", "held", lambda obj: {**obj, "metadata": _unheld(obj["metadata"])}
    )
    await cluster.rest()
    assert cluster.names("configmaps") == []


def _unheld(metadata: Manifest) -> Manifest:
    return {key: value for key, value in metadata.items() if key != "finalizers"}


async def test_orphans_lose_their_owner_and_live(cluster: Cluster) -> None:
    parent = cluster.create("configmaps", config_map("parent"))
    cluster.create("configmaps", owned_by(parent, "child"))
    cluster.delete("configmaps", "parent", propagation="Orphan")
    await cluster.rest()
    assert cluster.names("configmaps") == ["child"]
    assert "ownerReferences" not in cluster.store.get("configmaps", "default", "child").obj["metadata"]


async def test_a_child_of_a_dead_owner_is_collected_one_with_another_owner_is_not(cluster: Cluster) -> None:
    one, two = cluster.create("configmaps", config_map("one")), cluster.create("configmaps", config_map("two"))
    shared = owned_by(one, "shared")
    shared["metadata"]["ownerReferences"] += owned_by(two, "x")["metadata"]["ownerReferences"]
    shared["metadata"]["ownerReferences"][1]["controller"] = False
    cluster.create("configmaps", shared)
    cluster.delete("configmaps", "one")
    await cluster.rest()
    left = cluster.store.get("configmaps", "default", "shared").obj["metadata"]["ownerReferences"]
    assert [each["name"] for each in left] == ["two"]
    cluster.create("configmaps", owned_by(one, "late"))
    await cluster.rest()
    assert cluster.names("configmaps") == ["shared", "two"]


async def test_a_namespace_is_emptied_and_goes(cluster: Cluster) -> None:
    cluster.create("namespaces", {"metadata": {"name": "team"}}, "")
    await cluster.rest()
    assert cluster.names("serviceaccounts", "team") == ["default"]
    cluster.create("configmaps", config_map("held", finalizers=["example.io/hold"]), "team")
    cluster.create("pods", pod("waiting"), "team")
    cluster.create("deployments.apps", deployment("web"), "team")
    cluster.delete("namespaces", "team", "")
    await cluster.rest()
    assert cluster.store.get("namespaces", "", "team").obj["status"]["phase"] == "Terminating"
    assert (cluster.names("pods", "team"), cluster.names("configmaps", "team")) == ([], ["held"])
    with pytest.raises(ApiError, match="because it is being terminated"):
        cluster.create("configmaps", config_map("late"), "team")
    cluster.operations.modify(
        cluster.operations.kind("configmaps"), "team", "held", lambda obj: {**obj, "metadata": _unheld(obj["metadata"])}
    )
    await cluster.rest()
    assert cluster.store.find("namespaces", "", "team") is None


async def test_a_budget_counts_its_pods(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        cluster.create("pods", pod(name, {"app": "x"}))
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}}
    cluster.create("poddisruptionbudgets.policy", budget)
    for name in ("a", "b", "c"):
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        cluster.change("pods", name, "status", ready)
    await cluster.rest()
    status = cluster.store.get("poddisruptionbudgets.policy", "default", "b").obj["status"]
    assert (status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 2, 1)
    assert status["conditions"][0]["reason"] == "SufficientPods"


async def test_taints_follow_a_nodes_conditions(cluster: Cluster) -> None:
    bare = {"metadata": {"name": "n"}}

    def taints() -> list[str]:
        return [each["key"] for each in cluster.store.get("nodes", "", "n").obj["spec"].get("taints", [])]

    cluster.create("nodes", bare, "")
    await cluster.rest()
    assert taints() == ["node.kubernetes.io/not-ready"]
    cluster.change("nodes", "n", "status", {"conditions": [{"type": "Ready", "status": "True"}]}, "")
    await cluster.rest()
    assert taints() == []
    cluster.change("nodes", "n", "spec", {"unschedulable": True}, "")
    cluster.change("nodes", "n", "status", {"conditions": [{"type": "Ready", "status": "Unknown"}]}, "")
    await cluster.rest()
    assert taints() == ["node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"]
    cluster.create("nodes", node("ready"), "")
    assert "taints" not in cluster.store.get("nodes", "", "ready").obj["spec"]


async def test_a_claim_in_use_is_protected(cluster: Cluster) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    cluster.create("persistentvolumeclaims", {"metadata": {"name": "c"}, **claim})
    cluster.create("pods", pod("user", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    cluster.delete("persistentvolumeclaims", "c")
    await cluster.rest()
    assert cluster.names("persistentvolumeclaims") == ["c"]
    cluster.delete("pods", "user")
    await cluster.rest()
    assert cluster.names("persistentvolumeclaims") == []


async def test_a_quota_refuses_what_exceeds_it_and_shows_what_is_used(cluster: Cluster) -> None:
    hard = {"pods": "2", "requests.cpu": "1"}
    cluster.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})

    def asking(name: str, cpu: str) -> Manifest:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        return pod(name, containers=[container])

    with pytest.raises(ApiError, match=r"failed quota: q: must specify requests\.cpu for: main"):
        cluster.create("pods", pod("silent"))
    cluster.create("pods", asking("a", "600m"))
    with pytest.raises(ApiError) as refused:
        cluster.create("pods", asking("b", "600m"))
    assert refused.value.message == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1'
    )
    cluster.create("pods", asking("c", "400m"))
    with pytest.raises(ApiError, match="exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"):
        cluster.create("pods", asking("d", "0"))
    status = cluster.store.get("resourcequotas", "default", "q").obj["status"]
    assert status["used"] == {"pods": "2", "requests.cpu": "1"}
    cluster.delete("pods", "a")
    await cluster.rest()
    assert cluster.store.get("resourcequotas", "default", "q").obj["status"]["used"]["pods"] == "1"


async def test_a_custom_kind_comes_and_goes_with_its_definition(cluster: Cluster) -> None:
    definitions = "customresourcedefinitions.apiextensions.k8s.io"
    cluster.create(definitions, widget_definition(), "")
    made = cluster.create("widgets.example.io", widget("w", items=[{"name": "x"}], unknown=1))
    assert made.obj["spec"] == {"size": 3, "color": "red", "items": [{"name": "x", "value": 3}]}
    with pytest.raises(ApiError, match="Unsupported value"):
        cluster.create("widgets.example.io", widget("bad", color="green"))
    cluster.delete(definitions, "widgets.example.io", "")
    assert cluster.operations.registry.by_resource("widgets.example.io") is None
    assert cluster.store.list("widgets.example.io") == []
