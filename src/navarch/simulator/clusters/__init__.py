"""Clusters to simulate on: manifests in files, a shorthand, or the node lists that come with known traces.

nodes.yaml                               manifests: nodes, queues and whatever else a cluster holds
h100=16x8gpu+96cpu+1Ti,t4=8x4gpu         16 nodes of one kind, 8 of another
philly/3                                 the virtual clusters of the Philly trace with a third of their nodes
openb:nodes.csv                          the node list of the openb traces
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from navarch.places import at
from navarch.simulator.clusters.setup import ClusterError, ClusterSetup

READERS: Mapping[str, str] = {
    "openb": "navarch.simulator.clusters.openb:cluster",
    "recording": "navarch.simulator.clusters.recording:cluster",
}
"""KIND of `KIND:FILE` -> the place of its reader, a function from path to `ClusterSetup`."""


def read_cluster(spec: str) -> ClusterSetup:
    """The cluster that a command line names. Raises `ClusterError` if there is none."""
    from navarch.simulator.clusters import manifests, philly, shorthand

    kind, colon, path = spec.partition(":")
    if colon and kind in READERS:
        reader: Callable[[str], ClusterSetup] = at(READERS[kind])
        return reader(path)
    if spec.startswith("philly/"):
        return philly.cluster(spec)
    if "=" in spec and not Path(spec).exists():
        return shorthand.cluster(spec)
    return manifests.cluster(spec)


__all__ = ["ClusterError", "ClusterSetup", "read_cluster"]
