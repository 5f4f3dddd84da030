"""Why a task found no node: the histogram users know, with the numbers behind it.

Built only when a task fails, by asking each filter once over all nodes. Nodes are judged by the first filter that refuses
them, as the systems we follow do; a filter may give several texts for one node (each insufficient resource).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct, field

from navarch.engine.reasons import Event
from navarch.engine.semantics import STRICT, Semantics
from navarch.model.resources import BoolArray

ROOM = (Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)


class FitErrors(Struct):
    """`nodes` maps text -> how many nodes gave it; `unresolvable` marks nodes where no eviction can help."""

    refused: int
    nodes: dict[str, int] = field(default_factory=dict)
    unresolvable: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    codes: tuple[str, ...] = ()
    message: str = ""
    """Set where the refusal was not any node's: the role failed before, a pre-check said no."""
    domain: str = ""
    """Set where only the nodes of one domain were asked."""
    figures: dict[str, int | float | str] = field(default_factory=dict)
    """The numbers behind the words, by what they are numbers of."""
    beside: int = 0
    """How many pods of the same job stood on nodes while these were asked: they may have been taken back since."""
    undone_by: tuple[Event, ...] = ROOM
    """What may happen that changes the answer: room, and what the filters that refused name."""

    def available_text(self, nodes: int, rejection: str = "", after: str = "") -> str:
        """The text on a pod that found no node, as kube-scheduler writes it: how many of `nodes` gave each reason, or
        what rejected the pod before any node was looked at, and what came `after` in trying to make room."""
        reasons = f" {rejection}." if rejection else f" {histogram(self.nodes)}." if self.nodes else ""
        return f"0/{nodes} nodes are available:{reasons}{' ' if after else ''}{after}"

    def text(self, semantics: Semantics = STRICT) -> str:
        """What most nodes said comes first; in the words of a system that sorts the finished texts, as `histogram` does."""
        if self.message:
            return self.message
        where = f"In hyperNode {self.domain}: " if self.domain else ""
        if not semantics.refusals_tell_all:
            return f"{where}0/{self.refused} {semantics.fit_words}: {histogram(self.nodes)}."
        said = ", ".join(f"{count} {reason}" for reason, count in sorted(self.nodes.items(), key=lambda each: (-each[1], each[0])))
        others = f", with {self.beside} other pod{'s' if self.beside > 1 else ''} of this job placed" if self.beside else ""
        return f"{where}0/{self.refused} {semantics.fit_words}: {said}{others}."


def histogram(counts: Mapping[str, int]) -> str:
    """The finished texts are sorted, not the counts: "10 x" stands before "2 x"."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
