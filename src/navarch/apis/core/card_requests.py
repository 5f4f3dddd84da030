"""Requests for parts of GPU cards: `volcano.sh/vgpu-*` (HAMi), `volcano.sh/gpu-memory` and `volcano.sh/gpu-number`.

The scheduler chooses the cards, not the kubelet, so it must know what each container asks for. vGPUs are asked for by ordinary
containers only. For memory and whole cards, a pod needs the larger of its containers' sum and its largest init container.
"""

from __future__ import annotations

from navarch.apis.core.objects import ResourceList
from navarch.apis.core.pod_objects import Container, PodSpec
from navarch.model.quantity import QuantityError, parse_milli
from navarch.model.registered_cards import GPU_MEMORY, GPU_NUMBER, VGPU_CORES, VGPU_MEMORY, VGPU_NUMBER
from navarch.model.spec import CardRequest, VgpuRequest


def card_request(spec: PodSpec) -> CardRequest | None:
    """What the pod asks of cards; None if it asks for none."""
    containers, first = spec.containers or (), spec.init_containers or ()
    vgpus = tuple(found for container in containers if (found := _vgpu(container)) is not None)
    memory, number = (
        max(sum(_limit(each, name) for each in containers), max((_limit(each, name) for each in first), default=0))
        for name in (GPU_MEMORY, GPU_NUMBER)
    )
    return CardRequest(vgpus, memory, number) if vgpus or memory or number else None


def _vgpu(container: Container) -> VgpuRequest | None:
    """A container that names only memory asks for one card."""
    limits = _limits(container)
    if VGPU_NUMBER not in limits and VGPU_MEMORY not in limits:
        return None
    count = _whole(limits[VGPU_NUMBER]) if VGPU_NUMBER in limits else 1
    return VgpuRequest(count, _limit_or_request(container, VGPU_MEMORY), _limit_or_request(container, VGPU_CORES))


def _limits(container: Container) -> ResourceList:
    return (container.resources.limits if container.resources else None) or {}


def _limit(container: Container, name: str) -> int:
    return _whole(_limits(container).get(name))


def _limit_or_request(container: Container, name: str) -> int:
    requests = (container.resources.requests if container.resources else None) or {}
    return _whole(_limits(container).get(name, requests.get(name)))


def _whole(quantity: str | int | float | None) -> int:
    """A whole number; anything else counts as 0. The error of an invalid quantity is raised where requests are summed."""
    if quantity is None:
        return 0
    try:
        milli = parse_milli(quantity)
    except QuantityError:
        return 0
    return 0 if milli % 1000 or milli < 0 else milli // 1000
