"""Whether the domains of a required topology level could hold the GPUs of a job, by sums.

KAI asks this before it forms a scenario from the victims so far. For each part of a job that requires a level and has parts below
it, one domain of that level must have the GPUs of all pods of the part. Pods of the part that hold a node already count as well,
although the GPUs that they hold are not free. So a job that grows inside its domain needs more victims than its new pods do.

Domains are told apart by the value of the level's label alone.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.gangs.gang_tree import GangTree
from navarch.engine.session import Session
from navarch.engine.topology.domains import NOWHERE, label_tree
from navarch.model.resources import FloatArray
from navarch.model.spec import TopologyDemand


class DomainCapacity:
    def __init__(self, session: Session, tree: GangTree) -> None:
        """`tree`: of the tasks that the scenario places, and of those that have a node."""
        assert session.devices is not None
        self.session = session
        wanted: dict[tuple[str, str], list[float]] = {}
        for part in tree.root.descendants():
            demand = part.topology
            if part.children and demand is not None and demand.topology and demand.required:
                asked = [session.devices.gpus_of(session.class_of(task), 0) for leaf in part.leaf_parts() for task in leaf.tasks]
                wanted.setdefault((demand.topology, self._label(demand)), []).append(sum(asked))
        self._levels = [
            (label_tree(session.snapshot, label).at_tier(0), sorted(sums, reverse=True)) for (_, label), sums in wanted.items()
        ]

    def could_hold(self, free: FloatArray) -> bool:
        """Whether the parts fit their domains, largest first, given the free GPUs of every node."""
        for domains, wanted in self._levels:
            inside = domains != NOWHERE
            left = sorted(np.bincount(domains[inside], weights=free[inside]).tolist(), reverse=True)
            for asked in wanted:
                if asked == 0:
                    break
                found = next((i for i, amount in enumerate(left) if amount >= asked), None)
                if found is None:
                    return False
                left[found] -= asked
        return True

    def _label(self, demand: TopologyDemand) -> str:
        topology = self.session.snapshot.objects.get("Topology", {}).get(("", demand.topology))
        levels = () if topology is None else topology.levels
        return next((level.label for level in levels if level.alias == demand.required), demand.required)
