"""The vGPU cards of all nodes as columns, and the cards that a pod may use by type, UUID and sharing mode.

Registers are read again only for nodes that changed. The columns stay in the memo of the cluster from one cycle to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_not

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from navarch.model.node_facts import node_column
from navarch.model.registered_cards import HANDSHAKE, Card, vgpu_cards
from navarch.model.resources import BoolArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeSpec

USE_TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, NO_UUID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
MODE = "volcano.sh/vgpu-mode"
VENDOR = "NVIDIA"
HAMI, MIG = "hami-core", "mig"
DELETED = "Deleted"


class CardsOfNode(Struct, frozen=True):
    cards: tuple[Card, ...]
    mode: str
    """How the node shares its cards."""


class VgpuColumns:
    """Read only, because later cycles get the same object."""

    def __init__(self, of_node: list[CardsOfNode | None], before: VgpuColumns | None = None) -> None:
        """`before`: the columns of an earlier cycle. Only rows that changed since are filled again."""
        width = max((len(cards.cards) for cards in of_node if cards is not None), default=0)
        self.size: IntArray = np.zeros((len(of_node), width), dtype=np.int64)
        self.most: IntArray = np.zeros_like(self.size)
        self.type: IntArray = np.zeros_like(self.size)
        self.mode: IntArray = np.zeros(len(of_node), dtype=np.int64)
        self.types: dict[str, int] = {"": 0}
        self.modes: dict[str, int] = {"": 0}
        self.places: dict[str, tuple[tuple[int, int], ...]] = {}
        known: Sequence[CardsOfNode | None] = [None] * len(of_node)
        if before is not None and before.size.shape == self.size.shape:
            self.size, self.most, self.type, self.mode = (t.copy() for t in (before.size, before.most, before.type, before.mode))
            self.types, self.modes, self.places = dict(before.types), dict(before.modes), dict(before.places)
            known = before.of_node
        self.of_node: Sequence[CardsOfNode | None] = of_node
        """The cards of each node; None where it registered none."""
        for row in np.flatnonzero(np.fromiter(map(is_not, known, of_node), dtype=bool, count=len(of_node))).tolist():
            self._fill(row, known[row], of_node[row])
        self.known: BoolArray = self.mode > 0

    def _fill(self, row: int, before: CardsOfNode | None, found: CardsOfNode | None) -> None:
        for number, card in enumerate(before.cards if before is not None else ()):
            self.places[card.uuid] = tuple(place for place in self.places[card.uuid] if place != (row, number))
        self.size[row], self.most[row], self.type[row], self.mode[row] = 0, 0, 0, 0
        if found is None:
            return
        self.mode[row] = self.modes.setdefault(found.mode, len(self.modes))
        for number, card in enumerate(found.cards):
            self.size[row, number] = card.memory
            self.most[row, number] = card.pods
            self.type[row, number] = self.types.setdefault(card.type, len(self.types))
            self.places[card.uuid] = (*self.places.get(card.uuid, ()), (row, number))

    def allowed(self, hints: Mapping[str, str]) -> BoolArray:
        """(nodes, cards): the cards that a pod with these annotations may use, its sharing mode aside."""
        wanted = np.array([is_wanted(kind, hints) for kind in self.types], dtype=bool)
        mask: BoolArray = wanted[self.type] & (self.most > 0)
        only, never = _uuids(hints, USE_UUID), _uuids(hints, NO_UUID)
        if only:
            mask &= self._named(only)
        return mask & ~self._named(never) if never else mask

    def _named(self, uuids: Sequence[str]) -> BoolArray:
        mask: BoolArray = np.zeros(self.size.shape, dtype=bool)
        for uuid in uuids:
            for place in self.places.get(uuid, ()):
                mask[place] = True
        return mask

    def number_of(self, row: int, uuid: str) -> int | None:
        """The card of a node that a pod's annotation names: by its UUID, or by a UUID that begins with it (a slice of the card)."""
        cards = self.of_node[row]
        numbers = range(len(cards.cards)) if cards is not None else ()
        exact = next((n for n in numbers if cards is not None and cards.cards[n].uuid == uuid), None)
        if exact is not None:
            return exact
        return next((n for n in numbers if cards is not None and cards.cards[n].uuid and cards.cards[n].uuid in uuid), None)

    def right_mode(self, hints: Mapping[str, str]) -> BoolArray:
        """Nodes that share their cards as the pod wants."""
        return self.mode == self.modes.get(hints[MODE], -1) if MODE in hints else self.known


def _uuids(hints: Mapping[str, str], name: str) -> list[str]:
    return [uuid for part in hints.get(name, "").split(",") if (uuid := part.strip())]


def is_wanted(kind: str, hints: Mapping[str, str]) -> bool:
    """Whether a card of this type may be used. Types that the pod names to use decide alone.

    >>> is_wanted("NVIDIA-A100-SXM4", {USE_TYPE: "v100,a100"}), is_wanted("NVIDIA-T4", {NO_TYPE: "t4"}), is_wanted("Tesla T4", {})
    (True, False, False)
    """
    if VENDOR not in kind:
        return False
    if USE_TYPE in hints:
        return any(part.upper() in kind.upper() for part in hints[USE_TYPE].split(","))
    return not (NO_TYPE in hints and any(part.upper() in kind.upper() for part in hints[NO_TYPE].split(",")))


def vgpu_columns(snapshot: Snapshot) -> VgpuColumns:
    """Unhealthy cards, those of nodes whose device plugin is gone, and those that are split by MIG are left out."""
    name = "vgpu cards"
    known: dict[tuple[Card, ...], CardsOfNode] = snapshot.memo.setdefault(("registers", name), {})

    def read(spec: NodeSpec) -> CardsOfNode | None:
        cards = vgpu_cards(spec)
        if cards is None or spec.annotations.get(HANDSHAKE, "").startswith(DELETED):
            return None
        found = known.get(cards)
        if found is None:
            if len(known) > len(snapshot.nodes.specs):
                known.clear()
            found = known[cards] = _cards_of_node(cards)
        return found

    found = node_column(snapshot, name, read, np.object_)
    held: tuple[npt.NDArray[np.object_], VgpuColumns] | None = snapshot.memo.get(("columns of", name))
    if held is None or held[0] is not found:
        held = found, VgpuColumns(found.tolist(), None if held is None else held[1])
        snapshot.memo["columns of", name] = held
    return held[1]


def _cards_of_node(cards: tuple[Card, ...]) -> CardsOfNode:
    if cards[-1].mode == MIG:
        return CardsOfNode((), MIG)
    healthy = (card if card.healthy else Card(card.uuid, 0, 0, card.type, False, card.mode) for card in cards)
    return CardsOfNode(tuple(healthy), cards[-1].mode or HAMI)
