"""Volumes and device claims of the embedded cluster: the controllers in virtual time, then with the live scheduler over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.embedded.hollow_cluster import World
from tests.worlds.embedded.objects import pod

from navarch.cli.up.cluster import UpCluster, UpOptions
from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.controllers.volumes.provisioning import ensure_standard_class

Manifest = dict[str, Any]
VOLUMES, CLAIMS = "persistentvolumes", "persistentvolumeclaims"
RESOURCE_CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
SELECTED = "volume.kubernetes.io/selected-node"
ZONE = "topology.kubernetes.io/zone"
virtual_time = pytest.mark.looptime


def storage_class(name: str, mode: str = "Immediate", provisioner: str = "ebs.csi.aws.com", **fields: Any) -> Manifest:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**head, "provisioner": provisioner, "volumeBindingMode": mode, **fields}


def add_class(world: World, *args: Any, **fields: Any) -> None:
    world.operations.create(world.operations.kind("storageclasses.storage.k8s.io"), "", storage_class(*args, **fields))


def claim_spec(size: str = "1Gi", storage_class: str | None = None, **spec: Any) -> Manifest:
    made: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return made if storage_class is None else {**made, "storageClassName": storage_class}


def claim(name: str, size: str = "1Gi", storage_class: str | None = None, **spec: Any) -> Manifest:
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return {**head, "spec": claim_spec(size, storage_class, **spec)}


def volume(name: str, size: str, storage_class: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}, "storageClassName": storage_class, **spec}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": {"capacity": {"storage": size}, **spec}}


def on(key: str, *values: str) -> Manifest:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def bound_to(world: World, name: str) -> str:
    found = world.get(CLAIMS, name)
    return str(found["spec"].get("volumeName") or "") if found["status"]["phase"] == "Bound" else ""


def phase(world: World, name: str) -> str:
    return str(world.get(VOLUMES, name)["status"]["phase"])


def said(world: World, name: str) -> list[str]:
    return [e.obj["reason"] for e in world.store.list("events") if e.obj["involvedObject"]["name"] == name]


def choose(node: str) -> Callable[[Manifest], Any]:
    return lambda obj: obj["metadata"].setdefault("annotations", {}).update({SELECTED: node})


# ---------------------------------------------------------------------- the volume controller


@virtual_time
async def test_a_claim_takes_the_smallest_volume_that_fits_it() -> None:
    async with World() as world:
        world.create(volume("large", "9Gi"))
        world.create(volume("small", "1Gi"))
        world.create(volume("fits", "3Gi", labels={"kind": "fast"}))
        world.create(volume("other-mode", "2Gi", accessModes=["ReadOnlyMany"]))
        world.create(volume("other-class", "2Gi", "fast"))
        world.create(volume("closer", "2Gi"))
        world.create(claim("data", "2Gi", "", selector={"matchLabels": {"kind": "fast"}}))
        world.create(claim("any", "2Gi", ""))
        await world.until(lambda: (bound_to(world, "data"), bound_to(world, "any")) == ("fits", "closer"))
        assert (phase(world, "fits"), phase(world, "large")) == ("Bound", "Available")
        found, taken = world.get(CLAIMS, "data"), world.get(VOLUMES, "fits")
        assert found["status"]["capacity"] == {"storage": "3Gi"}
        assert found["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        assert taken["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]


@virtual_time
async def test_a_claim_without_a_class_waits_for_a_volume_and_says_so() -> None:
    async with World() as world:
        world.create(claim("data", "2Gi", ""))
        await world.until(lambda: said(world, "data") == ["FailedBinding"])
        assert world.get(CLAIMS, "data")["status"]["phase"] == "Pending"
        world.create(volume("late", "2Gi"))
        await world.until(lambda: bound_to(world, "data") == "late")


@virtual_time
async def test_a_claim_of_an_immediate_class_gets_a_new_volume_where_the_class_allows() -> None:
    async with World() as world:
        add_class(world, "zonal", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}])
        world.create(claim("data", "2Gi", "zonal"))
        await world.until(lambda: bound_to(world, "data"))
        made = world.get(VOLUMES, bound_to(world, "data"))
        assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "ebs.csi.aws.com"
        assert made["spec"]["nodeAffinity"] == on(ZONE, "a", "b")
        assert (made["spec"]["persistentVolumeReclaimPolicy"], made["spec"]["capacity"]) == ("Delete", {"storage": "2Gi"})


@virtual_time
async def test_a_waiting_claim_gets_its_volume_where_the_scheduler_says() -> None:
    async with World() as world:
        inside, outside = world.nodes(2)

        def label(zone: str, obj: dict[str, Any]) -> None:
            obj["metadata"]["labels"][ZONE] = zone

        for name, zone in ((inside, "a"), (outside, "b")):
            world.patch("nodes", name, partial(label, zone))
        zones = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "c"]}]}]
        add_class(world, "late", "WaitForFirstConsumer", allowedTopologies=zones)
        world.create(claim("data", storage_class="late"))
        await world.until(lambda: said(world, "data") == ["WaitForFirstConsumer"])
        world.patch(CLAIMS, "data", choose(outside))
        await world.until(lambda: "ProvisioningFailed" in said(world, "data"))
        assert SELECTED not in world.get(CLAIMS, "data")["metadata"].get("annotations", {})
        world.patch(CLAIMS, "data", choose(inside))
        await world.until(lambda: bound_to(world, "data"))
        assert world.get(VOLUMES, bound_to(world, "data"))["spec"]["nodeAffinity"] == on(ZONE, "a")


@virtual_time
async def test_a_waiting_claim_takes_the_volume_that_a_scheduler_gives_it_and_no_other() -> None:
    async with World() as world:
        add_class(world, "local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner")
        world.create(volume("first", "1Gi", "local"))
        world.create(volume("second", "1Gi", "local"))
        uid = world.create(claim("data", storage_class="local")).uid
        await world.until(lambda: said(world, "data") == ["WaitForFirstConsumer"])
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": uid}
        world.patch(VOLUMES, "second", lambda obj: obj["spec"].update(claimRef=reference))
        await world.until(lambda: bound_to(world, "data"))
        assert (bound_to(world, "data"), phase(world, "first")) == ("second", "Available")


@virtual_time
@pytest.mark.parametrize(("policy", "after"), [("Delete", "gone"), ("Retain", "Released"), ("Recycle", "Available")])
async def test_what_becomes_of_the_volume_of_a_deleted_claim(policy: str, after: str) -> None:
    async with World() as world:
        world.create(volume("disk", "1Gi", persistentVolumeReclaimPolicy=policy))
        world.create(claim("data", storage_class=""))
        await world.until(lambda: bound_to(world, "data") == "disk")
        world.delete(CLAIMS, "data")
        await world.until(lambda: (phase(world, "disk") if world.store.find(VOLUMES, "", "disk") else "gone") == after)
        assert world.store.count(CLAIMS) == 0


@virtual_time
async def test_a_claim_that_loses_its_volume_is_lost() -> None:
    async with World() as world:
        world.create(volume("disk", "1Gi"))
        world.create(claim("data", storage_class=""))
        await world.until(lambda: bound_to(world, "data"))
        world.store.delete(VOLUMES, "", "disk")
        await world.until(lambda: world.get(CLAIMS, "data")["status"] == {"phase": "Lost"})
        assert said(world, "data") == ["ClaimLost"]


@virtual_time
async def test_a_claim_gets_the_default_class_when_there_is_one() -> None:
    async with World() as world:
        world.create(claim("before"))
        await world.until(lambda: said(world, "before") == ["FailedBinding"])
        ensure_standard_class(world.operations)
        world.create(claim("after"))
        classes = ("before", "after")
        await world.until(lambda: {world.get(CLAIMS, name)["spec"].get("storageClassName") for name in classes} == {"standard"})


@virtual_time
async def test_pods_with_claims_come_and_go_without_a_trace() -> None:
    """A generic ephemeral volume and a device claim of a template: made for the pod, gone with it."""
    async with World() as world:
        add_class(world, "fast")
        world.nodes(1)
        template = {"spec": claim_spec("1Gi", "fast")}
        wanted = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
        scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
        world.create(pod("a", volumes=[scratch], resourceClaims=[wanted]))
        await world.until(lambda: "FailedResourceClaimCreation" in said(world, "a"))
        request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
        spec = {"metadata": {"labels": {"team": "x"}}, "spec": {"devices": {"requests": [request]}}}
        kind = world.operations.kind(TEMPLATES)
        world.operations.create(kind, "default", {"metadata": {"name": "one-gpu"}, "spec": spec})
        await world.until(lambda: world.get("pods", "a")["status"].get("resourceClaimStatuses"))
        await world.until(lambda: bound_to(world, "a-scratch").startswith("pvc-"))
        made = world.store.list(RESOURCE_CLAIMS)
        assert world.get("pods", "a")["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": made[0].name}]
        assert made[0].name.startswith("a-gpu-") and made[0].labels == {"team": "x"} and len(made) == 1
        world.delete("pods", "a", grace=0)
        await world.until(lambda: not any(world.store.count(each) for each in (RESOURCE_CLAIMS, CLAIMS, VOLUMES)))


@virtual_time
async def test_devices_are_given_back_when_the_last_user_has_ended() -> None:
    async with World(placing=True) as world:
        world.nodes(1)
        request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
        body = {"metadata": {"name": "shared"}, "spec": {"devices": {"requests": [request]}}}
        world.operations.create(world.operations.kind(RESOURCE_CLAIMS), "default", body)
        users = []
        for name, seconds in (("short", "5s"), ("long", "50s")):
            made = pod(name, restartPolicy="Never", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
            made["metadata"]["annotations"] = {"navarch.io/run-for": seconds}
            users.append({"resource": "pods", "name": name, "uid": world.create(made).uid})
        status = {"allocation": {"devices": {"results": []}}, "reservedFor": users}
        world.store.modify(RESOURCE_CLAIMS, "default", "shared", lambda obj: {**obj, "status": status})

        def claimed() -> Manifest:
            found: Manifest = world.get(RESOURCE_CLAIMS, "shared").get("status", {})
            return found

        await world.until(lambda: [user["name"] for user in claimed().get("reservedFor", ())] == ["long"])
        assert "allocation" in claimed()
        await world.until(lambda: claimed() == {})


# ---------------------------------------------------------------------- with the live scheduler


class Up:
    """`navarch up` without its sample, and the eyes of a test on its store."""

    def __init__(self, cluster: UpCluster) -> None:
        self.operations = cluster.server.operations
        self.store = cluster.server.store
        self.volumes = cluster.hollow.volumes
        self.scheduler = cluster.scheduler

    def create(self, resource: str, body: Manifest) -> str:
        kind = self.operations.kind(resource)
        return self.operations.create(kind, "default" if kind.namespaced else "", body).uid

    def delete(self, resource: str, name: str) -> None:
        self.operations.delete(self.operations.kind(resource), "default", name, DeleteOptions())

    def pods(self, phase: str) -> list[str]:
        return [each.name for each in self.store.list("pods", "default") if each.obj["status"].get("phase") == phase]

    def condition(self, name: str) -> str:
        found = self.store.get("pods", "default", name).obj["status"].get("conditions") or ()
        return str(next((each.get("message", "") for each in found if each["type"] == "PodScheduled"), ""))

    async def until(self, holds: Callable[[], Any], within: float = 120.0) -> None:
        """Wait for changes of pods and claims until a condition holds."""
        changed = asyncio.Event()
        watches = [self.store.subscribe(each, lambda _: changed.set()) for each in ("pods", CLAIMS, RESOURCE_CLAIMS)]
        try:
            async with asyncio.timeout(within):
                while not holds():
                    changed.clear()
                    await changed.wait()
        finally:
            for watch in watches:
                watch.close()


@pytest.fixture
async def up(tmp_path: Path) -> AsyncIterator[Up]:
    options = UpOptions(nodes=2, gpus=0, sample=False, kubeconfig=tmp_path / "kubeconfig", speed=20.0)
    async with UpCluster(options) as cluster:
        made = Up(cluster)
        yield made
    assert made.scheduler is not None and len(made.scheduler.preparations) == 0


def with_claim(name: str, claim_name: str) -> Manifest:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


def stateful_set(name: str, replicas: int, spec: Manifest) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "db:1"}]}}
    claims = [{"metadata": {"name": "data"}, "spec": spec}]
    wanted = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "volumeClaimTemplates": claims}
    return {"metadata": {"name": name}, "spec": {"serviceName": name, **wanted}}


@pytest.mark.parametrize("mode", ["WaitForFirstConsumer", "Immediate"])
async def test_a_stateful_set_with_claims_runs(up: Up, mode: str) -> None:
    name = None
    if mode == "Immediate":
        name = "quick"
        up.create("storageclasses.storage.k8s.io", storage_class("quick"))
    up.create("statefulsets.apps", stateful_set("db", 3, claim_spec("1Gi", name)))
    await up.until(lambda: up.pods("Running") == ["db-0", "db-1", "db-2"])
    claims = [each.obj for each in up.store.list(CLAIMS, "default")]
    assert [each["metadata"]["name"] for each in claims] == ["data-db-0", "data-db-1", "data-db-2"]
    for each in claims:
        place = up.store.get("pods", "default", each["metadata"]["name"].removeprefix("data-")).obj["spec"]["nodeName"]
        chosen = each["metadata"]["annotations"].get(SELECTED)
        assert each["status"]["phase"] == "Bound" and chosen == (place if mode == "WaitForFirstConsumer" else None)
        assert each["spec"]["storageClassName"] == (name or "standard")


async def test_pods_take_local_volumes_where_they_lie(up: Up) -> None:
    up.create("storageclasses.storage.k8s.io", storage_class("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"))
    nodes = [each.name for each in up.store.list("nodes")]
    for number in range(4):
        where = on("kubernetes.io/hostname", nodes[number % 2])
        up.create(VOLUMES, volume(f"disk-{number}", "1Gi", "local", nodeAffinity=where))
        up.create(CLAIMS, claim(f"data-{number}", "1Gi", "local"))
    for number in range(4):
        up.create("pods", with_claim(f"p{number}", f"data-{number}"))
    await up.until(lambda: len(up.pods("Running")) == 4)
    for number in range(4):
        disk = up.store.get(CLAIMS, "default", f"data-{number}").obj["spec"]["volumeName"]
        place = up.store.get("pods", "default", f"p{number}").obj["spec"]["nodeName"]
        assert up.store.get(VOLUMES, "", disk).obj["spec"]["nodeAffinity"] == on("kubernetes.io/hostname", place)


async def test_claims_that_cannot_be_met_leave_their_pods_pending_with_the_reason(up: Up) -> None:
    up.create("storageclasses.storage.k8s.io", storage_class("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"))
    up.create(VOLUMES, volume("small", "1Gi", "local"))
    up.create(CLAIMS, claim("large", "5Gi", "local"))
    up.create(CLAIMS, claim("no-class", "1Gi", "none-such"))
    up.create("pods", with_claim("a", "large"))
    up.create("pods", with_claim("b", "no-class"))
    up.create("pods", with_claim("c", "missing"))
    reasons = {
        "a": "node(s) didn't find available persistent volumes to bind",
        "b": 'storageclass.storage.k8s.io "none-such" not found',
        "c": 'persistentvolumeclaim "missing" not found',
    }
    await up.until(lambda: all(reasons[name] in up.condition(name) for name in reasons))
    assert up.pods("Pending") == ["a", "b", "c"]
    up.create(VOLUMES, volume("big", "9Gi", "local"))
    up.create("storageclasses.storage.k8s.io", storage_class("none-such"))
    up.create(CLAIMS, claim("missing", "1Gi"))
    await up.until(lambda: up.pods("Running") == ["a", "b", "c"])


async def test_a_scheduler_that_stops_leaves_no_waiting_behind(up: Up) -> None:
    up.volumes.stop()  # the claim is never bound
    up.create(CLAIMS, claim("data", "1Gi"))
    up.create("pods", with_claim("a", "data"))
    await up.until(lambda: SELECTED in (up.store.get(CLAIMS, "default", "data").obj["metadata"].get("annotations") or {}))
    assert up.scheduler is not None and len(up.scheduler.preparations) == 1
    assert "nodeName" not in up.store.get("pods", "default", "a").obj["spec"]


async def test_a_pod_gets_a_device_by_its_template(up: Up) -> None:
    node = up.store.list("nodes")[1].name
    up.create("deviceclasses.resource.k8s.io", {"metadata": {"name": "gpu"}, "spec": {}})
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    up.create("resourceslices.resource.k8s.io", {"metadata": {"name": "slice"}, "spec": devices})
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    up.create(TEMPLATES, {"metadata": {"name": "one-gpu"}, "spec": {"spec": {"devices": {"requests": [request]}}}})
    for name in ("a", "b"):
        made = pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}])
        up.create("pods", {**made, "metadata": {"name": name}})
        await up.until(lambda: up.pods("Running") == ["a"])
    await up.until(lambda: "cannot allocate all claims" in up.condition("b"))
    up.delete("pods", "a")
    await up.until(lambda: up.pods("Running") == ["b"])
    assert up.store.get("pods", "default", "b").obj["spec"]["nodeName"] == node
    await up.until(lambda: [each.name[:6] for each in up.store.list(RESOURCE_CLAIMS)] == ["b-gpu-"])
