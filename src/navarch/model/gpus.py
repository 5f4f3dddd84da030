"""GPUs as nodes and pods name them: whole GPUs, MIG slices, and the memory of each GPU."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from navarch.model.label_syntax import parse_int64
from navarch.model.spec import NodeSpec, Shape

GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")
GPU_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
UNKNOWN_GPU_MEMORY: Final = 100
"""MiB assumed for a GPU whose memory no label gives. Fractions of such a GPU still work."""
_BYTES_ABOVE: Final = 1 << 20
"""A label above a tebibyte, counted in MiB, must have been written in bytes."""
_MIG: Final = re.compile(r"nvidia\.com/mig-(\d+)g\.(\d+)gb")


@lru_cache(maxsize=256)
def mig_gpus(resource: str) -> int:
    """How many GPUs one MIG slice counts for; 0 for any other resource.

    >>> mig_gpus("nvidia.com/mig-3g.20gb"), mig_gpus("cpu")
    (3, 0)
    """
    match = _MIG.fullmatch(resource)
    return int(match[1]) if match else 0


def gpu_memory(node: NodeSpec) -> int:
    """MiB of each of the node's GPUs, in whole hundreds."""
    text = node.labels.get(GPU_MEMORY_LABEL, "")
    memory = parse_int64(text)
    if memory is None or memory < 0:
        return UNKNOWN_GPU_MEMORY
    if memory >= _BYTES_ABOVE:
        memory >>= 20
    return memory - memory % 100 or UNKNOWN_GPU_MEMORY


def gpu_portion(memory: int, of: int) -> float:
    """The part of a GPU with `of` MiB that `memory` MiB are, in hundredths rounded up.

    >>> gpu_portion(1, 300), gpu_portion(150, 100)
    (0.01, 1.5)
    """
    return math.ceil(100 * memory / of) / 100


def part_of_gpus(shape: Shape) -> int:
    """Thousandths of GPUs that a pod of this shape counts for in quotas and shares because it asks for a part of one. A request for
    memory counts as whole GPUs: which part it is depends on the node."""
    devices = shape.devices
    if devices is None or not (devices.fraction or devices.memory):
        return 0
    return devices.count * (devices.fraction or 1000)
