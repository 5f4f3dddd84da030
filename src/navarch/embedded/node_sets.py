"""Nodes that look real: how many, how large, in which zone and rack, as manifests ready to be created.

By flags (`NodeSet`) every node is of one kind, spread evenly over zones and racks; from a file come nodes as kubectl prints
them, or sets of them:

    apiVersion: navarch.io/v1
    kind: NodeSet
    metadata: {name: gpu}              # nodes are gpu-000, gpu-001, ...
    spec: {count: 8, cpu: "64", memory: 512Gi, gpus: 8, zones: 2, racks: 4, labels: {pool: train}}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from navarch.model.quantity import QuantityError
from navarch.model.resources import format_amount, parse_amount
from navarch.object_types import Manifest

GPU = "nvidia.com/gpu"
REGION = "hollow-1"
RACK_LABEL = "topology.navarch.io/rack"
RESERVED = {"cpu": 0.02, "memory": 0.03}
"""What a node keeps for itself: the difference between capacity and allocatable."""


class NodeSetError(ValueError):
    """A set of nodes cannot be made; says which field and why."""


@dataclass(frozen=True)
class NodeSet:
    """A number of nodes of one kind. `gpus` is for each node."""

    name: str = "node"
    count: int = 4
    cpu: str = "32"
    memory: str = "256Gi"
    pods: int = 110
    gpus: int = 0
    gpu_product: str = "NVIDIA-H100-80GB-HBM3"
    zones: int = 1
    racks: int = 1
    instance_type: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    """More resources, by name: `{"rdma/hca": "4"}`."""

    def manifests(self) -> Iterator[Manifest]:
        width = max(3, len(str(self.count - 1)))
        for number in range(self.count):
            yield self._node(f"{self.name}-{number:0{width}d}", number)

    def _node(self, name: str, number: int) -> Manifest:
        capacity = {
            "cpu": self.cpu,
            "ephemeral-storage": "1Ti",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": self.memory,
            "pods": str(self.pods),
            **({GPU: str(self.gpus)} if self.gpus else {}),
            **self.resources,
        }
        spec: Manifest = {"podCIDR": pod_cidr(number), "podCIDRs": [pod_cidr(number)], "providerID": f"hollow://{name}"}
        if self.taints:
            spec["taints"] = [dict(taint) for taint in self.taints]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": self._labels(name, number)},
            "spec": spec,
            "status": {"capacity": capacity, "allocatable": allocatable_of(capacity)},
        }

    def _labels(self, name: str, number: int) -> dict[str, str]:
        # Racks are numbered through and each lies in one zone: a rack never spans two.
        racks = max(self.racks, self.zones)
        rack = number * racks // self.count
        zone = rack * self.zones // racks
        kind = self.instance_type or (f"hollow.gpu{self.gpus}" if self.gpus else f"hollow.cpu{self.cpu}")
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": kind,
            "topology.kubernetes.io/region": REGION,
            "topology.kubernetes.io/zone": f"{REGION}{chr(ord('a') + zone % 26)}{zone // 26 or ''}",
            RACK_LABEL: f"rack-{rack}",
        }
        if self.gpus:
            labels["nvidia.com/gpu.present"] = "true"
            labels["nvidia.com/gpu.count"] = str(self.gpus)
            labels["nvidia.com/gpu.product"] = self.gpu_product
        return {**labels, **self.labels}


def pod_cidr(number: int) -> str:
    return f"10.{128 + number // 256 % 128}.{number % 256}.0/24"


def allocatable_of(capacity: Mapping[str, str]) -> dict[str, str]:
    """Capacity less what the system keeps; devices and pods are all for pods.

    >>> allocatable_of({"cpu": "10", "pods": "110"})
    {'cpu': '9800m', 'pods': '110'}
    """
    found = dict(capacity)
    for name, part in RESERVED.items():
        if name in capacity:
            amount = parse_amount(name, capacity[name])
            step = 100 if name == "cpu" else 1 << 20
            found[name] = format_amount(name, amount - int(amount * part) // step * step)
    return found


def read_nodes(path: Path) -> Iterator[Manifest]:
    """The nodes of a file: Node objects, Lists of them, and NodeSets."""
    try:
        documents = list(yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader))
    except (OSError, yaml.YAMLError) as error:
        raise NodeSetError(f"{path}: {error}") from None
    yield from _nodes(documents, str(path))


def _nodes(documents: Iterable[Any], source: str) -> Iterator[Manifest]:
    for document in documents:
        if document is None:
            continue
        kind = document.get("kind") if isinstance(document, dict) else None
        match kind:
            case "Node":
                yield document
            case "NodeSet":
                yield from node_set(document, source).manifests()
            case "List" | "NodeList":
                yield from _nodes(document.get("items") or (), source)
            case _:
                found = "nothing" if kind is None else repr(kind)
                raise NodeSetError(f"{source}: kind: found {found}, expected Node, NodeSet or List")


_NUMBERS = {"count": 0, "gpus": 0, "pods": 1, "zones": 1, "racks": 1}
_FIELDS = {
    "count": "count", "cpu": "cpu", "memory": "memory", "pods": "pods", "gpus": "gpus", "gpuProduct": "gpu_product",
    "zones": "zones", "racks": "racks", "instanceType": "instance_type", "labels": "labels", "taints": "taints",
    "resources": "resources",
}  # fmt: skip


def node_set(document: Manifest, source: str = "") -> NodeSet:
    """Read one NodeSet; a mistake names its field."""
    name = str((document.get("metadata") or {}).get("name") or "node")
    where = f"{source + ': ' if source else ''}NodeSet {name}"
    spec = document.get("spec") or {}
    found: dict[str, Any] = {}
    for key, value in spec.items():
        if key not in _FIELDS:
            raise NodeSetError(f"{where}: spec.{key}: no such field; expected one of {', '.join(_FIELDS)}")
        least = _NUMBERS.get(key)
        if least is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise NodeSetError(f"{where}: spec.{key}: found {value!r}, expected a whole number of at least {least}")
        if key in ("labels", "resources"):
            value = {str(each): str(amount) for each, amount in value.items()}
        elif key == "taints":
            value = tuple(value)
        elif least is None:
            value = str(value)
        found[_FIELDS[key]] = value
    made = NodeSet(name=name, **found)
    for resource, quantity in {"cpu": made.cpu, "memory": made.memory, **made.resources}.items():
        try:
            parse_amount(resource, quantity)
        except QuantityError as error:
            raise NodeSetError(f"{where}: spec.{resource}: {error}") from None
    return made
