"""Themes about objects that only some rules read: volumes, devices, and how nodes lie together (see `themes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from tests.worlds.live_core.themes import Theme

from navarch.model.objects.topologies import HyperNodeSpec, LevelSpec, MemberSpec, TopologySpec
from navarch.model.spec import ObjectSpec, TopologyDemand

if TYPE_CHECKING:
    from tests.worlds.live_core.history import Kind

NODES = range(4)


class Volumes(Theme):
    """Pods with a claim of their own on a disk of one node, which is chosen with the pod; class, claims and disks come late."""

    def start(self) -> None:
        self.number = 0
        self.late: list[str] = []

    def kind(self, kind: Kind) -> Kind:
        return replace(kind, own=(*kind.own, type(self).__name__)) if self.rng.random() < 0.5 and "volumes" not in kind.more else kind

    def pod(self, name: str, more: dict[str, Any]) -> None:
        more["volumes"] = [{"name": "own", "persistentVolumeClaim": {"claimName": name}}]
        self._claim(name) if self.rng.random() < 0.6 else self.late.append(name)

    def _claim(self, name: str) -> None:
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": "1"}}}
        metadata = {"namespace": "ns", "name": name, "uid": name}
        self.world.put("PersistentVolumeClaim", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def step(self) -> None:
        rng, world = self.rng, self.world
        match rng.randrange(4):
            case 0:
                if world.cache.cluster.objects.get("StorageClass") and rng.random() < 0.3:
                    world.cache.remove(ObjectSpec("StorageClass", "", "local", None))
                    return
                made = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
                world.put("StorageClass", {"metadata": {"name": "local"}, **made})
            case 1 if self.late:
                self._claim(self.late.pop(0))
            case _:
                self.number += 1
                reach = {"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n{rng.choice(NODES)}"]}
                affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [reach]}]}}
                spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1"}, "storageClassName": "local"}
                spec |= {"local": {"path": "/d"}, "nodeAffinity": affinity}
                metadata = {"name": f"disk{self.number}"}
                world.put("PersistentVolume", {"metadata": metadata, "spec": spec, "status": {"phase": "Available"}})


class Devices(Theme):
    """Pods with a claim of their own on devices; class, claims and slices come late, slices change."""

    def start(self) -> None:
        self.late: list[str] = []
        self.generation = 0
        if self.rng.random() < 0.7:
            self._class()

    def _class(self) -> None:
        selectors = [{"cel": {"expression": 'device.driver == "d"'}}]
        self.world.put("DeviceClass", {"metadata": {"name": "dev"}, "spec": {"selectors": selectors}})

    def kind(self, kind: Kind) -> Kind:
        return replace(kind, own=(*kind.own, type(self).__name__)) if self.rng.random() < 0.5 else kind

    def pod(self, name: str, more: dict[str, Any]) -> None:
        more["resourceClaims"] = [{"name": "own", "resourceClaimName": f"dev-{name}"}]
        self._claim(name) if self.rng.random() < 0.6 else self.late.append(name)

    def _claim(self, pod: str) -> None:
        asked = {"deviceClassName": "dev", "allocationMode": "ExactCount", "count": self.rng.choice((1, 1, 2))}
        request = {"name": "r", "exactly": asked}
        metadata: dict[str, Any] = {"namespace": "ns", "name": f"dev-{pod}", "uid": f"dev-{pod}"}
        if self.rng.random() < 0.6:  # from a template
            metadata["ownerReferences"] = [{"kind": "Pod", "name": pod, "uid": pod, "controller": True}]
        self.world.put("ResourceClaim", {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})

    def step(self) -> None:
        rng, world = self.rng, self.world
        match rng.randrange(4):
            case 0:
                self._class()
            case 1 if self.late:
                self._claim(self.late.pop(0))
            case _:
                node = f"n{rng.choice(NODES)}"
                if ("", node) in world.cache.cluster.objects.get("ResourceSlice", {}) and rng.random() < 0.3:
                    world.cache.remove(ObjectSpec("ResourceSlice", "", node, None))
                    return
                self.generation += 1
                pool = {"name": node, "generation": self.generation, "resourceSliceCount": 1}
                devices = [{"name": f"g{i}"} for i in range(rng.choice((1, 2, 4)))]
                spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}
                world.put("ResourceSlice", {"metadata": {"name": node}, "spec": spec})


class Topologies(Theme):
    """Gangs that want to be close together; how nodes lie together comes late, changes and goes."""

    def kind(self, kind: Kind) -> Kind:
        if not kind.minimum or self.rng.random() < 0.3:
            return kind
        if self.history.kai:
            demand = TopologyDemand("net", required=self.rng.choice(("zone", "kubernetes.io/hostname")))
        else:
            demand = TopologyDemand(highest_tier=self.rng.choice((1, 1, 2)), hard=True)
        return replace(kind, group={**kind.group, "topology": demand})

    def step(self) -> None:
        rng, cache = self.rng, self.world.cache
        if self.history.kai:
            levels = (LevelSpec("zone"), LevelSpec("kubernetes.io/hostname"))[: rng.choice((1, 2, 2))]
            gone = rng.random() < 0.2
            spec = ObjectSpec("Topology", "", "net", None if gone else TopologySpec("net", levels))
        else:
            name = rng.choice(("r0", "r1", "hall"))
            gone = rng.random() < 0.2
            if name == "hall":
                made = HyperNodeSpec(name, 2, "", tuple(MemberSpec(False, each) for each in ("r0", "r1")))
            else:
                members = sorted(rng.sample(NODES, rng.choice((1, 2, 2))))
                made = HyperNodeSpec(name, 1, "", tuple(MemberSpec(True, f"n{number}") for number in members))
            spec = ObjectSpec("HyperNode", "", name, None if gone else made)
        cache.remove(spec) if gone else cache.put(spec)
