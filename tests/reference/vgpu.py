"""vGPU cards, slowly: one node, one container and one card after the other, in plain loops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass
class Card:
    uuid: str
    most: int
    memory: int
    kind: str
    used: list[tuple[str, int, int]] = field(default_factory=list)
    """(pod, memory, cores) of everything that is taken of it."""

    @property
    def free(self) -> int:
        return self.memory - sum(memory for _, memory, _ in self.used)

    @property
    def cores(self) -> int:
        return sum(cores for _, _, cores in self.used)


@dataclass(frozen=True)
class Ask:
    """One container: cards, memory of each (0: all of it), percent of the cores."""

    count: int
    memory: int
    cores: int


@dataclass(frozen=True)
class Pod:
    name: str
    asks: tuple[Ask, ...]
    kind: str = ""
    """A part of the type of the cards that it may use."""


def ordered(cards: list[Card], policy: str) -> list[Card]:
    if policy == "binpack":
        return sorted(cards, key=lambda card: card.free - card.memory)
    if policy == "spread":
        return sorted(cards, key=lambda card: len(card.used))
    return cards[::-1]


def give(cards: list[Card], pod: Pod, policy: str) -> tuple[list[list[tuple[str, int, int]]], float] | None:
    """The cards that each container gets, (UUID, memory, cores) each, and the score of the node; None if it has too little. The cards
    are changed only if it has enough."""
    trial = [replace(card, used=list(card.used)) for card in cards]
    given: list[list[tuple[str, int, int]]] = []
    score = 0.0
    for ask in pod.asks:
        mine: list[tuple[str, int, int]] = []
        if ask.count > len(trial):
            return None
        for card in ordered(trial, policy):
            if len(mine) == ask.count:
                break
            need = ask.memory or card.memory
            too_full = len(card.used) >= card.most or need > card.free or card.cores + ask.cores > 100
            alone = ask.cores == 100 and card.used
            no_core = ask.cores == 0 and card.cores == 100
            if too_full or alone or no_core or "NVIDIA" not in card.kind or pod.kind.upper() not in card.kind.upper():
                continue
            was_idle = not card.used
            card.used.append((pod.name, need, ask.cores))
            mine.append((card.uuid, need, ask.cores))
            if policy == "binpack":
                score += 100 * ((card.memory - card.free) / card.memory)
            elif policy == "spread" and was_idle:
                score += 100
        if len(mine) < ask.count:
            return None
        given.append(mine)
    for card, after in zip(cards, trial):
        card.used = after.used
    return given, score


def take_back(cards: list[Card], pod: str) -> None:
    for card in cards:
        card.used = [entry for entry in card.used if entry[0] != pod]
