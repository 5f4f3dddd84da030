"""A cluster from manifests: a file or a folder as `navarch plan` reads them."""

from __future__ import annotations

from navarch.offline.manifests import read_paths
from navarch.simulator.clusters.setup import ClusterError, ClusterSetup


def cluster(path: str) -> ClusterSetup:
    documents, mistakes = read_paths([path])
    if mistakes:
        raise ClusterError("\n".join(map(str, mistakes)))
    return ClusterSetup(documents)
