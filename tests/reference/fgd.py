"""FGD in plain Python, one node and one typical pod at a time: what the columns of `navarch.plugins.fragmentation` must agree with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from navarch.plugins.fragmentation.typical_pods import PodKind, TypicalPod


@dataclass(frozen=True)
class SlowNode:
    cpu: int
    gpus: tuple[int, ...]
    """Free thousandths of each."""
    type: str = ""


def fits(node: SlowNode, pod: PodKind) -> bool:
    enough = sum(1 for free in node.gpus if free >= pod.gpu_milli)
    return enough >= pod.gpus and node.cpu >= pod.cpu and (not pod.types or node.type in pod.types)


def fragmentation(node: SlowNode, pods: tuple[TypicalPod, ...]) -> float:
    total, lost = sum(node.gpus), 0.0
    for pod in pods:
        kind = pod.kind
        if not kind.gpus or not fits(node, kind):
            lost += pod.weight * total
        else:
            lost += pod.weight * sum(free for free in node.gpus if free < kind.gpu_milli)
    return lost


def options(node: SlowNode, pod: PodKind) -> list[SlowNode]:
    """The node after the pod, for every GPU that it could share; one option for whole GPUs, and for none."""
    cpu = node.cpu - pod.cpu
    if pod.gpus == 1 and pod.gpu_milli < 1000:
        return [
            SlowNode(cpu, (*node.gpus[:i], free - pod.gpu_milli, *node.gpus[i + 1 :]), node.type)
            for i, free in enumerate(node.gpus)
            if free >= pod.gpu_milli
        ]
    left, wanted = list(node.gpus), pod.gpus
    for i, free in enumerate(left):
        if wanted and free == 1000:
            left[i], wanted = 0, wanted - 1
    return [] if wanted else [replace(node, cpu=cpu, gpus=tuple(left))]


def gain(node: SlowNode, pod: PodKind, pods: tuple[TypicalPod, ...]) -> float | None:
    """The best fall of fragmentation; None: the pod does not fit."""
    if node.cpu < pod.cpu:
        return None
    before = fragmentation(node, pods)
    return max((before - fragmentation(after, pods) for after in options(node, pod)), default=None)


def score(gain: float) -> int:
    return int(100 / (1 + math.exp(-gain / 1000)))
