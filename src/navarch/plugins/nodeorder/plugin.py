"""The `nodeorder` plugin of Volcano's policy files: kube-scheduler's scores, each with a weight."""

from __future__ import annotations

from navarch.engine.arguments import Argument
from navarch.engine.node_functions import NodeScorer
from navarch.engine.plugin import Plugin
from navarch.plugins.nodeorder.allocation import Allocation
from navarch.plugins.nodeorder.balanced import BalancedAllocation
from navarch.plugins.nodeorder.images import ImageLocality
from navarch.plugins.nodeorder.pod_preferences import PodPreferences
from navarch.plugins.nodeorder.preferred_nodes import PreferredNodes
from navarch.plugins.nodeorder.preferred_taints import PreferredTaints
from navarch.plugins.nodeorder.soft_spread import SoftSpread
from navarch.plugins.predicates.pods.default_spread import SpreadDefaults

BALANCED = (("cpu", 1), ("memory", 1), ("nvidia.com/gpu", 1))


class NodeOrder(Plugin):
    """Which node is better: kube-scheduler's scores"""

    name = "nodeorder"
    arguments = (
        Argument("nodeaffinity.weight", "int", 2, "preferred node affinity"),
        Argument("podaffinity.weight", "int", 2, "preferred affinity and anti-affinity between pods"),
        Argument("leastrequested.weight", "int", 1, "emptier nodes first"),
        Argument("balancedresource.weight", "int", 1, "cpu, memory and GPUs filled evenly"),
        Argument("mostrequested.weight", "int", 0, "fuller nodes first"),
        Argument("tainttoleration.weight", "int", 3, "fewer soft taints that are not tolerated"),
        Argument("imagelocality.weight", "int", 1, "nodes that hold the images already"),
        Argument("podtopologyspread.weight", "int", 2, "soft topology spread constraints"),
    )

    def node_scorers(self) -> list[NodeScorer]:
        session, snapshot, weight = self.session, self.session.snapshot, self._weight
        scorers: list[NodeScorer] = [
            ImageLocality(snapshot, weight("imagelocality")),
            PreferredNodes(snapshot, weight("nodeaffinity")),
            Allocation(session, weight("leastrequested")),
            Allocation(session, weight("mostrequested"), "MostAllocated"),
            BalancedAllocation(session, weight("balancedresource"), BALANCED),
            PreferredTaints(snapshot, weight("tainttoleration")),
            PodPreferences(session, weight("podaffinity"), hard_weight=0),
            SoftSpread(session, weight("podtopologyspread"), SpreadDefaults()),
        ]
        return [scorer for scorer in scorers if scorer.weight]

    def _weight(self, name: str) -> float:
        return self.given.number(f"{name}.weight")
