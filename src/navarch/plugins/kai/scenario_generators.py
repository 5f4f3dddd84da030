"""KAI's scenario generators; `actions/kai/solver/scenarios.py` implements them. A policy without any never evicts for a job."""

from __future__ import annotations

from navarch.engine.plugin import Plugin


class NodeLocalGreedy(Plugin):
    """Tries scenarios on one node at a time: all pods of the jobs on it, in order of eviction"""

    name = "sg-nodelocalgreedy"

    def scenario_generator(self) -> str:
        return "NodeLocalGreedy"


class MultiNodeGang(Plugin):
    """Tries scenarios on several nodes at once, those with the least free resources first"""

    name = "sg-multinodegang"

    def scenario_generator(self) -> str:
        return "MultiNodeGang"


class SnapshotEndpoint(Plugin):
    """Accepted: a cycle is recorded and replayed without a plugin (navarch replay)"""

    name = "snapshot"


class ReflectJobOrder(Plugin):
    """Accepted: the order of jobs is part of every cycle's record"""

    name = "reflectjoborder"
