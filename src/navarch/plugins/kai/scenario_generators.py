"""KAI's scenario generators; `actions/kai/solver/scenarios.py` implements them. A policy without any never evicts for a job."""

from __future__ import annotations

from navarch.engine.plugin import Plugin


class NodeLocalGreedy(Plugin):
    """Looks for room on one node at a time: the jobs on it, whole, in the order in which they would give way"""

    name = "sg-nodelocalgreedy"

    def scenario_generator(self) -> str:
        return "NodeLocalGreedy"


class MultiNodeGang(Plugin):
    """Looks for room on several nodes at once, taking those first that have the least to clear"""

    name = "sg-multinodegang"

    def scenario_generator(self) -> str:
        return "MultiNodeGang"


class SnapshotEndpoint(Plugin):
    """Accepted: a cycle is recorded and replayed without a plugin (navarch replay)"""

    name = "snapshot"


class ReflectJobOrder(Plugin):
    """Accepted: the order of jobs is part of every cycle's record"""

    name = "reflectjoborder"
