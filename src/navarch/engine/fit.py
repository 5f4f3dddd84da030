"""Why a task found no node: the histogram users know, with the numbers behind it.

Built only when a task fails, by asking each filter once over all nodes. Nodes are judged by the first filter that refuses
them, as the systems we follow do; a filter may give several texts for one node (each insufficient resource).
"""

from __future__ import annotations

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

    def text(self, prefix: str = "nodes are unavailable") -> str:
        if self.message:
            return self.message
        parts = sorted(f"{count} {reason}" for reason, count in self.nodes.items())
        return f"0/{self.refused} {prefix}: {', '.join(parts)}."
