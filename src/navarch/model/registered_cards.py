"""GPU cards that a device plugin registers on nodes by annotations, and the cards that pods hold by annotations.

HAMi's device plugin writes `volcano.sh/node-vgpu-register` on its node: for each card `UUID,pods,memory,type,healthy,mode:`. The
scheduler writes the cards of a pod to `volcano.sh/vgpu-ids-new`: for each container `UUID,type,memory,cores:` a card, containers
separated by `;`. Where cards are shared by memory, or given out whole, the node's capacity gives number and total memory of the cards,
and `volcano.sh/gpu-index` of a pod has their numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from navarch.model.spec import NodeSpec, Spec

VGPU_NUMBER: Final = "volcano.sh/vgpu-number"
VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"
VGPU_CORES: Final = "volcano.sh/vgpu-cores"
GPU_MEMORY: Final = "volcano.sh/gpu-memory"
GPU_NUMBER: Final = "volcano.sh/gpu-number"
REGISTER: Final = "volcano.sh/node-vgpu-register"
HANDSHAKE: Final = "volcano.sh/node-vgpu-handshake"
UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"
VGPU_IDS: Final = "volcano.sh/vgpu-ids-new"
GPU_INDEX: Final = "volcano.sh/gpu-index"

MOST_CARDS: Final = 256
"""The most cards of a node. Each card has a column, and no machine has so many."""
_MOST: Final = 1 << 31
_FIELDS: Final = 6


class Card(Spec, frozen=True):
    uuid: str
    pods: int
    """The most pods that may share it."""
    memory: int
    type: str
    healthy: bool
    mode: str


class HeldCard(Spec, frozen=True):
    """A card that a container of a pod holds a part of."""

    uuid: str
    memory: int
    cores: int


@lru_cache(maxsize=1 << 14)
def read_register(text: str) -> tuple[Card, ...] | None:
    """The cards of a node; None if the text is no register.

    >>> read_register("GPU-1,10,16000,NVIDIA-T4,true,hami-core:")[0].memory, read_register("GPU-1,10,16000:")
    (16000, None)
    """
    cards: list[Card] = []
    for entry in text.split(":"):
        if "," not in entry:
            continue
        fields = entry.split(",")
        if len(fields) < _FIELDS or len(cards) == MOST_CARDS:
            return None
        uuid, pods, memory, kind, healthy, mode = fields[:_FIELDS]
        cards.append(Card(uuid, _number(pods), _number(memory), kind, healthy in ("1", "t", "T", "true", "TRUE", "True"), mode))
    return tuple(cards) if cards and ":" in text else None


def vgpu_cards(node: NodeSpec) -> tuple[Card, ...] | None:
    """The vGPU cards that a node offers. None: it registers none, or its kubelet does not offer number, memory and cores."""
    text = node.annotations.get(REGISTER)
    if text is None or not all(offers(node, name) for name in (VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES)):
        return None
    return read_register(text)


def offers(node: NodeSpec, resource: str) -> bool:
    return any(name == resource and amount > 0 for name, amount in node.allocatable)


def gpu_cards(node: NodeSpec) -> tuple[int, tuple[int, ...]] | None:
    """(memory of each card, numbers of the healthy cards) of a node whose cards are shared by memory or given out whole; None: the
    node's capacity does not have both."""
    capacity = dict(node.capacity)
    if GPU_MEMORY not in capacity or capacity.get(GPU_NUMBER, 0) <= 0:
        return None
    number = -(-capacity[GPU_NUMBER] // 1000)
    if number > MOST_CARDS:
        return None
    broken = {int(each) for each in node.annotations.get(UNHEALTHY, "").split(",") if each.isdecimal() and len(each) < 10}
    return -(-capacity[GPU_MEMORY] // 1000) // number, tuple(card for card in range(number) if card not in broken)


@lru_cache(maxsize=1 << 16)
def read_vgpu_ids(text: str) -> tuple[tuple[HeldCard, ...], ...]:
    """The cards of each container, by the annotation of a pod. Entries that cannot be read are left out.

    >>> read_vgpu_ids("GPU-1,NVIDIA,4000,10:;GPU-2,NVIDIA,x,0:")
    ((HeldCard(uuid='GPU-1', memory=4000, cores=10),), ())
    """
    return (
        tuple(tuple(_held(part) for part in container.split(":") if _is_held(part)) for container in text.split(";")) if text else ()
    )


def _is_held(part: str) -> bool:
    fields = part.split(",")
    return len(fields) > 3 and all(field.isdecimal() and len(field) < 11 and int(field) < 2 * _MOST for field in fields[2:4])


def _held(part: str) -> HeldCard:
    fields = part.split(",")
    return HeldCard(fields[0], int(fields[2]), int(fields[3]))


def write_vgpu_ids(containers: tuple[tuple[HeldCard, ...], ...]) -> str:
    """The annotation for these cards.

    >>> write_vgpu_ids(((HeldCard("GPU-1", 4000, 10),), ()))
    'GPU-1,NVIDIA,4000,10:;'
    """
    return ";".join("".join(f"{card.uuid},NVIDIA,{card.memory},{card.cores}:" for card in cards) for cards in containers)


def read_gpu_index(text: str) -> tuple[int, ...]:
    """Numbers of cards; none if the text is no list of them."""
    parts = text.split(",")
    return tuple(int(part) for part in parts) if all(part.isdecimal() and len(part) < 10 for part in parts) else ()


def _number(text: str) -> int:
    """A whole number, 0 if the text is none."""
    plain = text.removeprefix("+")
    return min(int(plain), _MOST) if plain.isdecimal() and len(plain) < 20 else 0
