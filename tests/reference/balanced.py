"""NodeResourcesBalancedAllocation: does the pod even out the node's resources or skew them further."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tests.reference.cluster import Object
from tests.reference.fit import scored_amounts
from tests.reference.plugin import Plugin
from tests.reference.requests import incoming_cost
from tests.reference.status import SKIP, SUCCESS, Status


def evenness(fractions: list[float]) -> int:
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = sqrt(sum((f - mean) * (f - mean) for f in fractions) / len(fractions))
    else:
        deviation = 0.0
    return int((1 - deviation) * 100)


class NodeResourcesBalancedAllocation(Plugin):
    def start(self) -> None:
        self.resources = [entry["name"] for entry in self.args["resources"]]
        self.request = incoming_cost(self.pod)

    def pre_score(self, candidates: Sequence[Object]) -> Status:
        return SUCCESS if any(self.request.get(resource, 0) for resource in self.resources) else SKIP

    def score(self, node: Object) -> int:
        before, after = [], []
        for resource in self.resources:
            asked = self.request.get(resource, 0)
            amounts = scored_amounts(self.cluster, node, resource, asked, defaulted=False)
            if amounts is not None:
                capacity, used = amounts
                before.append(min(1.0, used / capacity))
                after.append(min(1.0, (used + asked) / capacity))
        return 50 + (50 + evenness(after) - evenness(before)) // 2
