"""The HyperNode domains of a job and its sub-groups: what each demands, and the domain it occupies.

The domain of a running part is the lowest domain that holds all nodes of its tasks. While an attempt places a part, its *anchor*
follows each placement; scores prefer nodes close to the anchor. Nothing here survives the session: the next session derives the
domains from the tasks' nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from navarch.engine.topology.domains import NOWHERE
from navarch.engine.topology.hyper_nodes import bound_of, hyper_tree
from navarch.model.spec import TopologyDemand
from navarch.model.status import IS_ALLOCATED

if TYPE_CHECKING:
    from navarch.engine.gangs.sub_jobs import SubJob
    from navarch.engine.job import Job
    from navarch.engine.session import Session

SubJobKey = tuple[str, str]
"""(job, sub-job)"""


class JobDomains:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.tree = hyper_tree(session.snapshot)
        self.closest = self.tree.at_tier(self.tree.tiers[0])
        """For each node, the domain of the lowest tier that holds it."""
        self._jobs: dict[str, int] = {}
        self._parts: dict[SubJobKey, int] = {}
        self._anchors: dict[SubJobKey, int] = {}
        if self.tree.mistakes:
            session.record.warnings.extend(m for m in self.tree.mistakes if m not in session.record.warnings)

    # what is demanded

    def bound(self, job: Job) -> int | None:
        """The highest tier the job may spread over; None: no bound."""
        return bound_of(self.tree, job.spec.topology)

    def bound_of_part(self, sub_job: SubJob) -> int | None:
        return bound_of(self.tree, demand_of(sub_job))

    def is_bounded(self, job: Job) -> bool:
        """Whether the job, or a part of it, must stay below some tier."""
        if self.bound(job) is not None or self.unknown_tier(job):
            return True
        return any(self.bound_of_part(sub) is not None for sub in job.sub_jobs)

    def unknown_tier(self, job: Job) -> str:
        """The name of a tier that the job demands and no HyperNode has; empty if there is none."""
        for demand in (job.spec.topology, *(group.topology for group in job.spec.sub_groups)):
            if demand is not None and demand.hard and demand.tier_name and demand.highest_tier is None:
                if demand.tier_name not in self.tree.tier_names:
                    return demand.tier_name
        return ""

    # where it is

    def of_job(self, job: Job) -> int:
        if job.key not in self._jobs:
            self._find(job)
        return self._jobs[job.key]

    def of_part(self, sub_job: SubJob) -> int:
        self.of_job(sub_job.job)
        return self._parts.get(_key(sub_job), NOWHERE)

    def _find(self, job: Job) -> None:
        status, node = self.session.status, self.session.node
        whole = NOWHERE
        for sub in job.sub_jobs:
            rows = [int(node[task]) for task in sub.tasks if IS_ALLOCATED[status[task]] and node[task] >= 0]
            found = self.tree.holding(rows)
            if demand_of(sub) is not None:
                self._parts[_key(sub)] = found
            whole = self.tree.common(whole, found)
        self._jobs[job.key] = whole

    def settle(self, job: Job, domain: int, parts: Sequence[tuple[SubJob, int]]) -> None:
        """After a commit: the job now also occupies `domain`, and each part its own domain."""
        self._jobs[job.key] = self.tree.common(self.of_job(job), domain)
        for sub, where in parts:
            self._parts[_key(sub)] = self.tree.common(self.of_part(sub), where)

    def widen(self, sub_job: SubJob, domain: int) -> int:
        """Within an attempt: the part now also occupies this domain. Returns its previous domain, for `restore`."""
        before = self.of_part(sub_job)
        self._parts[_key(sub_job)] = self.tree.common(before, domain)
        return before

    def restore(self, sub_job: SubJob, domain: int) -> None:
        self._parts[_key(sub_job)] = domain

    # the anchor of the attempt under way

    def anchor(self, sub_job: SubJob) -> int:
        """The domain that scores prefer for the next task of the part; NOWHERE outside of attempts and before any placement."""
        return self._anchors.get(_key(sub_job), NOWHERE)

    def start_anchor(self, sub_job: SubJob) -> None:
        """An attempt at the part begins."""
        self._anchors[_key(sub_job)] = self.of_part(sub_job)

    def move_anchor(self, sub_job: SubJob, rows: Sequence[int]) -> None:
        """Tasks of the part were placed on these nodes."""
        key = _key(sub_job)
        for row in rows:
            self._anchors[key] = self.tree.common(self._anchors.get(key, NOWHERE), int(self.closest[row]))


def demand_of(sub_job: SubJob) -> TopologyDemand | None:
    """A part's own demand; what belongs to no policy shares the job's."""
    demand = sub_job.job.spec.topology if sub_job.policy is None else sub_job.policy.topology
    return demand if demand is not None and demand.is_of_hyper_nodes else None


def _key(sub_job: SubJob) -> SubJobKey:
    return sub_job.job.key, sub_job.name
