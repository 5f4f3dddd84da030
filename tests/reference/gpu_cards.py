"""GPU cards that are shared by memory or given out whole, slowly: one node and one card after the other, in plain loops."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Card:
    number: int
    memory: int
    used: list[tuple[str, int]] = field(default_factory=list)
    """(pod, memory) of everything that is taken of it; memory 0: the pod has it whole."""

    @property
    def free(self) -> int:
        return self.memory - sum(memory for _, memory in self.used)


@dataclass(frozen=True)
class Pod:
    """Asks for memory of one card, or for whole cards."""

    name: str
    memory: int = 0
    cards: int = 0


def cards_of(total: int, number: int, broken: str) -> list[Card]:
    """The healthy cards of a node. `broken`: the annotation; entries that are no number do not count."""
    unhealthy = [int(part) for part in broken.split(",") if part.isdigit()]
    return [Card(card, total // number) for card in range(number) if card not in unhealthy]


def give(cards: list[Card], pod: Pod) -> list[int] | None:
    """Numbers of the cards that the pod gets; None if the node has too little. The cards are changed if it has enough."""
    chosen: list[Card] = []
    if pod.memory:
        for card in cards:
            if card.free >= pod.memory and not chosen:
                chosen.append(card)
    else:
        for card in cards:
            if not card.used and len(chosen) < pod.cards:
                chosen.append(card)
    if len(chosen) < (1 if pod.memory else pod.cards):
        return None
    for card in chosen:
        card.used.append((pod.name, pod.memory))
    return [card.number for card in chosen]


def take_back(cards: list[Card], pod: str) -> None:
    for card in cards:
        card.used = [entry for entry in card.used if entry[0] != pod]
