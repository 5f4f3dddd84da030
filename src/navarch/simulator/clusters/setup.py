"""A cluster before anything runs on it: its objects, and whether queues have nodes of their own."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from navarch.apis.dialect import Settings
from navarch.model.cluster import Cluster
from navarch.model.spec import NodeSpec, QueueSpec
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document

GPU = "nvidia.com/gpu"
UNSAID = {"cpu": "100000", "memory": "1Pi"}
"""What a node has of resources that its description does not mention: enough for anything."""
PODS = "4096"


class ClusterError(ValueError):
    """A cluster that cannot be made; says what was found and what was expected."""


class ClusterSetup(Struct):
    """`partition`: a label of nodes. A job runs on nodes whose value of it is the job's queue. Empty: jobs run anywhere."""

    documents: list[Document]
    partition: str = ""
    nodes: list[NodeSpec] = field(default_factory=list)
    """Nodes that are not given as manifests."""
    queues: list[QueueSpec] = field(default_factory=list)
    pods_left_out: int = 0
    """Pods in the manifests, once it was built. The trace has the jobs of a simulation, so it begins without them."""

    def build(self, settings: Settings) -> tuple[Cluster, list[NodeSpec]]:
        """A fresh cluster for one simulation."""
        inventory = Inventory(self.documents, settings)
        if inventory.mistakes:
            raise ClusterError("\n".join(map(str, inventory.mistakes)))
        cluster = inventory.cluster
        self.pods_left_out = len(cluster.tasks.rows.of)
        for uid in list(cluster.tasks.rows.of):
            cluster.remove_task(uid)
        for key in list(cluster.jobs.rows.of):
            cluster.remove_job(key)
        for node in self.nodes:
            cluster.put_node(node)
        for queue in self.queues:
            cluster.put_queue(queue)
        nodes = [spec for spec in cluster.nodes.specs if spec is not None]
        if not nodes:
            raise ClusterError("cluster: found no Node, expected at least one")
        return cluster, nodes


def node_manifest(name: str, resources: dict[str, str], labels: dict[str, str]) -> dict[str, Any]:
    """A ready node with these resources, and plenty of what is not mentioned."""
    amounts = {**UNSAID, "pods": PODS, **resources}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
