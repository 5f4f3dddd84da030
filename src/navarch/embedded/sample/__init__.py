"""The sample workload of `navarch up`: manifests in steps, sized to the cluster they run on.

`$slots` pods of one slot (`$amount` of `$unit`) each fill the cluster; `$half`, `$quarter` and `$more` (one more than fit) are
parts of that. The manifests are in Volcano's words; `kai_objects` has the same in KAI's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from string import Template

import yaml

from navarch.embedded.sample.kai_objects import kai_object, parent_queue
from navarch.embedded.sample.size import Size
from navarch.object_types import Manifest

SECONDS = 115.0
"""What the sample takes of the cluster's time once all of it is submitted."""


@dataclass(frozen=True)
class Step:
    """What is applied together, the sentence that announces it, and which pods must run before the next step begins."""

    file: str
    title: str
    wants: tuple[tuple[str, str], ...] = ()
    """(namespace/group, name of the figure that says how many of its pods must run)"""


STEPS = (
    Step(
        "1-borrow.yaml",
        "research trains on every device: half of them are borrowed from production, which is idle",
        (("research/pretrain", "slots"),),
    ),
    Step(
        "2-reclaim.yaml",
        "production wants its half back: two gangs are started whole on what research has to return",
        (("production/serve", "quarter"), ("production/nightly", "quarter")),
    ),
    Step(
        "3-preempt.yaml",
        "an urgent gang of production preempts its own nightly run, which has a lower priority",
        (("production/hotfix", "quarter"),),
    ),
    Step("4-impossible.yaml", "research asks for a gang that is larger than the cluster: it can never run, and is told why"),
)


def documents(step: Step, size: Size, *, kai: bool = False) -> Iterator[Manifest]:
    """The objects of a step. `kai`: for KAI's policy, which knows neither Volcano's queues nor its groups."""
    text = (resources.files(__name__) / step.file).read_text(encoding="utf-8")
    filled = Template(text).substitute(unit=size.unit, amount=size.amount, **size.figures())
    for document in yaml.load_all(filled, Loader=yaml.CSafeLoader):
        if document:
            yield kai_object(document, size) if kai else document
    if kai and step is STEPS[0]:
        yield parent_queue(size)
