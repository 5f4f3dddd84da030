"""The resource space: one column index for every resource name, integers in one unit a name.

cpu and device-like scalars count in thousandths, memory, ephemeral storage and huge pages in bytes, pods in pods. With
integers, accounting is exact: no epsilon in any comparison. Every task asks for one pod, so pods is an ordinary dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from navarch.model.label_syntax import key_complaints
from navarch.model.quantity import format_milli, format_value, parse_milli, parse_value
from navarch.model.spec import Requests

IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

CPU, MEMORY, PODS = 0, 1, 2
FIRST_NAMES = ("cpu", "memory", "pods")
UNLIMITED = 1 << 62
"""Stands for "no limit" in integer columns; far above any real amount and still safe to add a request to."""
BOUND = 1 << 50
"""The largest amount that a pod or gang counts for; a node counts for half of it (a PiB, or a million million devices). A larger
request (the API accepts up to 8 EiB) fits on no node. Thousands of such requests add up without overflow."""


MOST_NAMES = 256
"""Columns that pods and jobs can bring. Every pod may name a resource of its own, and each column is as long as the cluster."""
OTHERS = "other resources"
"""The column of all further names: no node has any of it, so a pod that asks for it fits nowhere."""


def in_bytes(name: str) -> bool:
    return name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """A vendor's resource: it has a domain, and the domain is not Kubernetes' own.

    >>> is_extended("nvidia.com/gpu"), is_extended("kubernetes.io/x"), is_extended("rdma")
    (True, False, False)
    """
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not key_complaints(f"requests.{name}")


def unit_of(name: str) -> str:
    """`bytes`, `count` or `milli`: the unit of the integers that stand for this resource."""
    return "bytes" if in_bytes(name) else "count" if name == "pods" else "milli"


def parse_amount(name: str, quantity: str | int | float) -> int:
    """The integer for a quantity of this resource, rounded up to the resource's unit."""
    return parse_milli(quantity) if unit_of(name) == "milli" else parse_value(quantity)


def format_amount(name: str, amount: int | float) -> str:
    """The quantity users know, e.g. `1500m`, `16Gi`, `2`."""
    match unit_of(name):
        case "milli":
            return format_milli(round(amount))
        case "bytes":
            whole = round(amount)
            return format_value(whole, "binary" if whole % 1024 == 0 else "decimal")
        case _:
            return str(round(amount))


def requests_from(quantities: Mapping[str, str | int | float]) -> Requests:
    """Sorted (name, integer) pairs of a Kubernetes resource list.

    >>> requests_from({"memory": "1Gi", "cpu": "500m"})
    (('cpu', 500), ('memory', 1073741824))
    """
    return tuple(sorted((name, parse_amount(name, quantity)) for name, quantity in quantities.items()))


class ResourceSpace:
    """Names to columns. A column, once given, stays: arrays only ever grow in this direction."""

    def __init__(self) -> None:
        self.names: list[str] = list(FIRST_NAMES)
        self._index: dict[str, int] = {name: i for i, name in enumerate(FIRST_NAMES)}

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        found = self._index.get(name)
        if found is None:
            found = self._index[name] = len(self.names)
            self.names.append(name)
        return found

    def find(self, name: str) -> int | None:
        return self._index.get(name)

    def learn(self, requests: Requests, *, trusted: bool = False) -> None:
        """Give every name a column. Names that tenants write share one column past `MOST_NAMES`. What nodes and queues name
        (`trusted`) always gets its own; a pod that was read before a node brought its resource is refused until it is read again."""
        for name, _ in requests:
            if name not in self._index:
                self.index(name if trusted or len(self.names) < MOST_NAMES else OTHERS)

    def vector(self, requests: Requests, *, pods: int = 0, missing: int = 0) -> IntArray:
        """A dense vector over all names. Every name must be known already, so that the length is fixed."""
        out = np.full(len(self.names), missing, dtype=np.int64)
        for name, amount in requests:
            place = self._index.get(name)
            if place is None:
                place = self._index[OTHERS]
                amount += int(out[place])
            out[place] = amount
        if pods:
            out[PODS] = pods
        return out

    def bounded_vector(self, requests: Requests, *, pods: int = 0, most: int = BOUND) -> IntArray:
        """As `vector`, for what is added up over pods or nodes: nothing above `most`."""
        return np.minimum(self.vector(requests, pods=pods), most)

    def as_mapping(self, vector: IntArray | FloatArray, *, keep_zero: bool = False) -> dict[str, int]:
        return {n: int(v) for n, v in sorted(zip(self.names, vector.tolist())) if v or keep_zero}
