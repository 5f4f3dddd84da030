"""The size of the sample, in slots: what one of its pods takes."""

from __future__ import annotations

from dataclasses import dataclass

CPU_SLOTS = 8
DEPLOYMENT = 200
"""Millicores of the sample's Deployment."""
FEWEST_SLOTS = 4
"""The steps divide the cluster into quarters."""
MOST_SLOTS = 128
"""Above this the pods of the sample take more than one device each, so that it stays a sample."""


@dataclass(frozen=True)
class Size:
    """How large the cluster is, in slots."""

    unit: str
    amount: str
    slots: int

    @classmethod
    def of(cls, nodes: int, gpus: int, millicores: int) -> Size:
        """The slots of so many nodes with so many GPUs and processors each; with too few GPUs a slot is an eighth of a node's
        processors. The slots fill a node but for the share of the Deployment: what is left over would be a share of the queue that
        borrows, and less would be reclaimed from it."""
        if nodes * gpus < FEWEST_SLOTS:
            amount = (millicores - DEPLOYMENT) // CPU_SLOTS // 50 * 50
            return cls("cpu", f"{amount}m", nodes * CPU_SLOTS if amount > 0 else 0)
        each = 1
        while nodes * (gpus // each) > MOST_SLOTS and each * 2 <= gpus:
            each *= 2
        return cls("nvidia.com/gpu", str(each), nodes * (gpus // each))

    def figures(self) -> dict[str, int]:
        half, quarter = max(1, self.slots // 2), max(1, self.slots // 4)
        return {"slots": self.slots, "half": half, "quarter": quarter, "more": self.slots + 1}
