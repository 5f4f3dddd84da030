"""The virtual clusters of the Philly trace: queues with nodes of their own, 8 GPUs each.

Their sizes are those that the published evaluation of Helios uses. The public form of the trace has shorter jobs, so its users
divide the nodes: `philly/3` has a third of them, at least one a virtual cluster.
"""

from __future__ import annotations

from navarch.offline.manifests import Document
from navarch.simulator.clusters.setup import GPU, ClusterError, ClusterSetup, node_manifest

NODES = {
    "6214e9": 64,
    "7f04ca": 32,
    "11cb48": 16,
    "b436b2": 64,
    "ee9e8c": 64,
    "e13805": 16,
    "6c71a0": 32,
    "2869ce": 16,
    "ed69ec": 8,
    "103959": 8,
    "0e4a51": 32,
}
"""Virtual cluster -> nodes."""
LABEL = "navarch.io/virtual-cluster"


def cluster(spec: str) -> ClusterSetup:
    """`philly/D`: nodes // D."""
    divisor = spec.removeprefix("philly/")
    if not divisor.isdecimal() or not int(divisor):
        raise ClusterError(f"cluster {spec!r}: found {divisor!r}, expected philly/D with D a whole number of 1 or more")
    names = [(queue, number) for queue, nodes in NODES.items() for number in range(max(1, nodes // int(divisor)))]
    documents = [Document(node_manifest(f"{queue}-{number:03d}", {GPU: "8"}, {LABEL: queue}), spec) for queue, number in names]
    return ClusterSetup(documents, partition=LABEL)
