"""Choosing the cards of a pod on many nodes at once.

Cards are columns, one row a node. The containers of a pod choose one after the other, each as many cards as it asks for, in the order
of the schedule policy: `binpack` takes the card with most memory in use, `spread` the one with fewest pods, no policy the last card.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Rows
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.spec import VgpuRequest

BINPACK, SPREAD = "binpack", "spread"
FULL = 100
"""Percent of the cores of a card."""
SCORE = 100.0


class Use(Struct):
    """What pods hold of the cards, (nodes, cards) each."""

    pods: IntArray
    memory: IntArray
    cores: IntArray

    def at(self, rows: Rows | slice) -> Use:
        """A copy for these nodes."""
        return Use(self.pods[rows].copy(), self.memory[rows].copy(), self.cores[rows].copy())

    def plus(self, other: Use) -> Use:
        return Use(self.pods + other.pods, self.memory + other.memory, self.cores + other.cores)

    def where(self, changed: BoolArray, after: Use) -> Use:
        """`after` where it changed, this elsewhere."""
        return Use(
            np.where(changed, after.pods, self.pods),
            np.where(changed, after.memory, self.memory),
            np.where(changed, after.cores, self.cores),
        )

    def take(self, cards: BoolArray, memory: IntArray, cores: int) -> None:
        self.pods += cards
        self.memory += np.where(cards, memory, 0)
        self.cores += np.where(cards, cores, 0)


class Choice(Struct):
    fits: BoolArray
    """Nodes on which every container found its cards."""
    cards: list[BoolArray]
    """For each container, (nodes, cards): the cards that it takes."""
    memory: list[IntArray]
    """For each container, (nodes, cards): what it takes of each card."""
    orders: list[IntArray]
    """For each container, (nodes, cards): the cards in the order in which it looked at them."""
    score: FloatArray

    def numbers(self, container: int, node: int) -> list[int]:
        """The cards that a container takes, in the order in which it takes them."""
        order = self.orders[container][node]
        return [int(card) for card in order if self.cards[container][node, card]]


def choose(
    asked: Sequence[VgpuRequest],
    size: IntArray,
    most: IntArray,
    allowed: BoolArray,
    use: Use,
    policy: str,
) -> Choice:
    """`size` and `most`: memory of each card, and how many pods may share it. `allowed`: cards that the pod may use. `use` becomes
    what it is with the pod. Under `spread`, a card that had no pod scores."""
    nodes = len(size)
    exists = most > 0
    choice = Choice(np.ones(nodes, dtype=bool), [], [], [], np.zeros(nodes))
    for one in asked:
        need = np.full_like(size, one.memory) if one.memory else size
        room = allowed & (most > use.pods) & (size - use.memory >= need) & (one.cores <= FULL - use.cores)
        if one.cores == FULL:
            room &= use.pods == 0
        elif one.cores == 0:
            room &= use.cores != FULL
        order = _order(use, policy)
        was_idle = use.pods == 0
        in_order = np.take_along_axis(room, order, axis=1)
        taken = in_order & (np.cumsum(in_order, axis=1) <= one.count)
        cards: BoolArray = np.zeros_like(room)
        np.put_along_axis(cards, order, taken, axis=1)
        choice.fits &= (exists.sum(axis=1) >= one.count) & (taken.sum(axis=1) >= one.count)
        use.take(cards, need, one.cores)
        choice.score += _score(use, size, was_idle, order, taken, policy)
        choice.cards.append(cards)
        choice.memory.append(need)
        choice.orders.append(order)
    return choice


def _order(use: Use, policy: str) -> IntArray:
    """(nodes, cards): the numbers of the cards, the first one to try first."""
    if policy == BINPACK:
        return np.argsort(-use.memory, axis=1, kind="stable")
    if policy == SPREAD:
        return np.argsort(use.pods, axis=1, kind="stable")
    return np.broadcast_to(np.arange(use.pods.shape[1])[::-1], use.pods.shape)


def _score(use: Use, size: IntArray, was_idle: BoolArray, order: IntArray, taken: BoolArray, policy: str) -> FloatArray:
    """The sum over the cards that were taken, added in the order in which they were."""
    total = np.zeros(len(size))
    if policy == BINPACK:
        each = SCORE * (use.memory / np.maximum(size, 1))
    elif policy == SPREAD:
        each = np.where(was_idle, SCORE, 0.0)
    else:
        return total
    each = np.take_along_axis(each, order, axis=1)
    for card in range(each.shape[1]):
        total += np.where(taken[:, card], each[:, card], 0.0)
    return total
