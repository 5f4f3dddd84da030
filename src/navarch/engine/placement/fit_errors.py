"""Fit errors: why a task found no node, as a histogram of reasons over nodes, with the numbers.

Built only when a task fails, by one call of each filter over all nodes. Each node counts for the first filter that refuses it, as
in kube-scheduler; a filter may give several texts for one node (one for each insufficient resource).
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
    """Set where no node was filtered: the role failed before, or a check before filtering refused the task."""
    domain: str = ""
    """Set where only the nodes of one domain were filtered."""
    figures: dict[str, int | float | str] = field(default_factory=dict)
    """The numbers in the text, by name."""
    beside: int = 0
    """How many pods of the same job the attempt had placed before. They may be undone since."""
    undone_by: tuple[Event, ...] = ROOM
    """Events that may change the answer: those that free resources, and those of the filters that refused."""

    def available_text(self, nodes: int, rejection: str = "", after: str = "") -> str:
        """The text on a pod that found no node, as kube-scheduler writes it: how many of `nodes` gave each reason, or
        what rejected the pod before any node was looked at, and what came `after` in trying to make room."""
        reasons = f" {rejection}." if rejection else f" {histogram(self.nodes)}." if self.nodes else ""
        return f"0/{nodes} nodes are available:{reasons}{' ' if after else ''}{after}"

    def text(self, semantics: Semantics = STRICT) -> str:
        """The reasons by how many nodes gave them, most first; under a compat, in the order of `histogram`."""
        if self.message:
            return self.message
        where = f"In hyperNode {self.domain}: " if self.domain else ""
        if not semantics.refusals_tell_all:
            return f"{where}0/{self.refused} nodes are unavailable: {histogram(self.nodes)}."
        if not self.refused:
            return f"{where}there are no nodes."
        said = ", ".join(f"{count} {reason}" for reason, count in sorted(self.nodes.items(), key=lambda each: (-each[1], each[0])))
        others = f", with {self.beside} other pod{'s' if self.beside > 1 else ''} of this job placed" if self.beside else ""
        return f"{where}0/{self.refused} nodes are available: {said}{others}."


def histogram(counts: Mapping[str, int]) -> str:
    """The texts are sorted, not the counts: "10 x" comes before "2 x", as in kube-scheduler."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
