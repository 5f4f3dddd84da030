"""Why a task found no node: the histogram users know, with the numbers behind it.

Built only when a task fails, by asking each filter once over all nodes. Nodes are judged by the first filter that refuses
them, as the systems we follow do; a filter may give several texts for one node (each insufficient resource).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from navarch.model.resources import BoolArray


@dataclass(slots=True)
class FitErrors:
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

    def available_text(self, nodes: int, rejection: str = "", after: str = "") -> str:
        """The text on a pod that found no node, as kube-scheduler writes it: how many of `nodes` gave each reason, or
        what rejected the pod before any node was looked at, and what came `after` in trying to make room."""
        reasons = f" {rejection}." if rejection else f" {histogram(self.nodes)}." if self.nodes else ""
        return f"0/{nodes} nodes are available:{reasons}{' ' if after else ''}{after}"

    def text(self, words: str = "nodes are available") -> str:
        """`words` as the semantics have them."""
        if self.message:
            return self.message
        where = f"In hyperNode {self.domain}: " if self.domain else ""
        return f"{where}0/{self.refused} {words}: {histogram(self.nodes)}."


def histogram(counts: Mapping[str, int]) -> str:
    """The finished texts are sorted, not the counts: "10 x" stands before "2 x"."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
