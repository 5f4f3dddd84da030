"""A cluster in a line: `kind=COUNTxRESOURCES`, kinds separated by commas, resources by plus signs.

    h100=16x8gpu+96cpu+1Ti,cpu=40x64cpu+256Gi

Resources are `8gpu`, `96cpu`, and memory as a quantity. What is not mentioned is there in plenty. Nodes carry the label
`nvidia.com/gpu.product` with the name of their kind, if they have GPUs.
"""

from __future__ import annotations

import re

from navarch.offline.manifests import Document
from navarch.simulator.clusters.setup import GPU, ClusterError, ClusterSetup, node_manifest
from navarch.simulator.jobs import GPU_TYPE

_KIND = re.compile(r"(?P<name>[a-z0-9]([a-z0-9.-]*[a-z0-9])?)=(?P<count>[0-9]+)x(?P<resources>\S+)")
_GPUS = re.compile(r"([0-9]+)gpus?")
_CPUS = re.compile(r"([0-9]+(\.[0-9]+)?m?)cpus?")
_MEMORY = re.compile(r"([0-9]+(\.[0-9]+)?[KMGTP]i?)B?")
EXPECTED = "kind=COUNTxRESOURCES such as h100=16x8gpu+96cpu+1Ti"


def cluster(spec: str) -> ClusterSetup:
    """
    >>> [each.manifest["metadata"]["name"] for each in cluster("a=2x8gpu,b=1x4cpu+1Gi").documents]
    ['a-000', 'a-001', 'b-000']
    """
    documents = []
    seen = set[str]()
    for part in spec.split(","):
        match = _KIND.fullmatch(part.strip())
        if match is None or not int(match["count"]) or match["name"] in seen:
            raise ClusterError(f"cluster {spec!r}: found {part!r}, expected {EXPECTED}, each kind once")
        name, resources = match["name"], _resources(spec, match["resources"])
        seen.add(name)
        labels = {GPU_TYPE: name} if GPU in resources else {}
        count = int(match["count"])
        width = max(3, len(str(count - 1)))
        documents += [Document(node_manifest(f"{name}-{number:0{width}d}", resources, labels), spec) for number in range(count)]
    return ClusterSetup(documents)


def _resources(spec: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split("+"):
        for resource, pattern in ((GPU, _GPUS), ("cpu", _CPUS), ("memory", _MEMORY)):
            match = pattern.fullmatch(part)
            if match is not None and resource not in found:
                found[resource] = match[1]
                break
        else:
            raise ClusterError(f"cluster {spec!r}: found {part!r}, expected 8gpu, 96cpu or memory such as 512Gi, each once")
    return found
