"""The sample workload of `navarch up`: manifests in acts, sized to the cluster they run on.

`$slots` pods of one slot (`$amount` of `$unit`) each fill the cluster; `$half`, `$quarter` and `$more` (one more than fit) are
parts of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from string import Template

import yaml

from navarch.object_types import Manifest

CPU_SLOTS = 8
MOST_SLOTS = 128
"""Above this the pods of the sample take more than one device each, so that it stays a sample."""


@dataclass(frozen=True)
class Act:
    """What is applied together, the sentence that announces it, and which pods must run before the next act begins."""

    file: str
    title: str
    wants: tuple[tuple[str, str], ...] = ()
    """(namespace/group, name of the figure that says how many of its pods must run)"""


ACTS = (
    Act(
        "1-borrow.yaml",
        "research trains on every device: half of them are borrowed from production, which is idle",
        (("research/pretrain", "slots"),),
    ),
    Act(
        "2-reclaim.yaml",
        "production wants its half back: two gangs are started whole on what research has to return",
        (("production/serve", "quarter"), ("production/nightly", "quarter")),
    ),
    Act(
        "3-preempt.yaml",
        "an urgent gang of production preempts its own nightly run, which has a lower priority",
        (("production/hotfix", "quarter"),),
    ),
    Act("4-impossible.yaml", "research asks for a gang that is larger than the cluster: it can never run, and is told why"),
)


@dataclass(frozen=True)
class Size:
    """How large the cluster is, in slots."""

    unit: str
    amount: str
    slots: int

    @classmethod
    def of(cls, nodes: int, gpus: int) -> Size:
        """The slots of so many nodes with so many GPUs each; without GPUs a slot is an eighth of a node's processors."""
        if not gpus:
            return cls("cpu", "3500m", max(1, nodes * CPU_SLOTS))
        each = 1
        while nodes * (gpus // each) > MOST_SLOTS and each * 2 <= gpus:
            each *= 2
        return cls("nvidia.com/gpu", str(each), max(1, nodes * (gpus // each)))

    def figures(self) -> dict[str, int]:
        half, quarter = max(1, self.slots // 2), max(1, self.slots // 4)
        return {"slots": self.slots, "half": half, "quarter": quarter, "more": self.slots + 1}


def documents(act: Act, size: Size) -> Iterator[Manifest]:
    text = (resources.files(__name__) / act.file).read_text(encoding="utf-8")
    filled = Template(text).substitute(unit=size.unit, amount=size.amount, **size.figures())
    for document in yaml.load_all(filled, Loader=yaml.CSafeLoader):
        if document:
            yield document
