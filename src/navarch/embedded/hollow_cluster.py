"""Everything of a cluster that is not its API server: kubelets, node lifecycle and controllers, on one store.

async with ApiServer() as server:
    hollow = HollowCluster(server.operations, speed=10)
    hollow.start()
    hollow.add_nodes(NodeSet(count=8, gpus=8).manifests())
    ...
    hollow.stop()
"""

from __future__ import annotations

from collections.abc import Iterable

from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.node_lifecycle import NodeLifecycle
from navarch.embedded.controllers.resource_claims import ResourceClaims
from navarch.embedded.controllers.volumes.controller import Volumes
from navarch.embedded.controllers.volumes.ephemeral import EphemeralVolumes
from navarch.embedded.controllers.workloads.workloads import Workloads
from navarch.embedded.kubelets.kubelets import HollowKubelets
from navarch.embedded.kubelets.pod_behaviour import KubeletOptions
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest


class HollowCluster:
    """Start it on the loop after the store; stop it before the store is closed."""

    def __init__(self, operations: Operations, *, speed: float = 1.0, options: KubeletOptions | None = None) -> None:
        self.operations = operations
        self.timers = Timers(speed)
        self.kubelets = HollowKubelets(operations, self.timers, options)
        self.lifecycle = NodeLifecycle(operations, self.timers)
        self.workloads = Workloads(operations, self.timers)
        self.volumes = Volumes(operations, self.timers)
        self.ephemeral_volumes = EphemeralVolumes(operations, self.timers)
        self.resource_claims = ResourceClaims(operations, self.timers)

    def start(self) -> None:
        self.kubelets.start()
        self.lifecycle.start()
        self.volumes.start()
        self.ephemeral_volumes.start()
        self.resource_claims.start()
        self.workloads.start()

    def stop(self) -> None:
        self.workloads.stop()
        self.resource_claims.stop()
        self.ephemeral_volumes.stop()
        self.volumes.stop()
        self.lifecycle.stop()
        self.kubelets.stop()
        self.timers.stop()

    def add_nodes(self, manifests: Iterable[Manifest]) -> int:
        """Create the nodes that do not exist yet; how many there were to make."""
        kind = self.operations.kind("nodes")
        made = 0
        for manifest in manifests:
            if self.operations.store.find("nodes", "", manifest["metadata"]["name"]) is None:
                self.operations.create(kind, "", manifest)
                made += 1
        return made
