"""`scheduling.k8s.io` groups in one turn each, as kube-scheduler's workload cycle takes them: whole, or not at all.

A group stands in the queue where its most important, oldest waiting pod stands; a group of groups where its first group does.
`group_placement` finds the nodes. If the minimum is reached, what was placed is kept, and the other pods are refused on their own. If
not, everything is taken back, every pod is told the group's shortage, and less important pods may be evicted for the group as a whole
(`group_preemption`). The same happens if the group has its minimum, and none of its other pods finds a node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from navarch.actions.kube_scheduler.group_placement import GroupPlacement, StatementBoard
from navarch.actions.kube_scheduler.group_preemption import UNDER_WAY, GroupPreemption, GroupVictims
from navarch.actions.kube_scheduler.group_tree import GANG_API, GroupNode, GroupTrees, scheduled
from navarch.actions.kube_scheduler.victim_units import VictimUnits
from navarch.engine.job import Job
from navarch.engine.placement.fit_errors import FitErrors
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.actions.kube_scheduler.schedule import Schedule

TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"


class GangCycle:
    def __init__(self, action: Schedule, trees: GroupTrees, units: VictimUnits) -> None:
        self.action = action
        self.session = action.session
        self._trees = trees
        self._on: dict[str, bool] = {}
        self._other: dict[str, None] = {}
        """Groups with a minimum that are not treated as gangs."""
        self._rows: dict[int, list[int]] = {}
        """Job -> its waiting pods, in their order."""
        self._units = units
        self._failed: dict[Hashable, tuple[int, str]] = {}
        """What groups like this one failed with, and after how many changes of the cycle."""

    def is_gang(self, row: int) -> bool:
        job = self.session.job_of(row)
        if job is None:
            return False
        if job.spec.dialect == GANG_API and self.enabled(row):
            return job.spec.min_member > 1 or job.spec.topology is not None or bool(job.spec.composite)
        if job.spec.min_member > 1:
            self._other[job.key] = None
        return False

    def enabled(self, row: int) -> bool:
        """Whether the profile of the pod has GangScheduling."""
        profile = self.session.class_of(row).profile
        found = self._on.get(profile)
        if found is None:
            found = self._on[profile] = self.action.given_for(profile).flag("gangs")
        return found

    def turns(self, waiting: list[int]) -> Iterator[list[int]]:
        """Pods in their order: those of a root group together at the place of its first, the others in stretches between groups."""
        groups: dict[int, list[int]] = {}
        for row in waiting:
            if self.is_gang(row):
                self._rows.setdefault(self._job(row).row, []).append(row)
                groups.setdefault(id(self._root(row)), []).append(row)
        stretch: list[int] = []
        for row in waiting:
            if not self.is_gang(row):
                stretch.append(row)
                continue
            members = groups.pop(id(self._root(row)), None)
            if members is not None:
                if stretch:
                    yield stretch
                    stretch = []
                yield members
        if stretch:
            yield stretch

    def place(self, rows: list[int]) -> None:
        session, root = self.session, self._root(rows[0])
        problem = root.problem or self._lacks(root)
        if problem:
            self._refuse_all(rows, problem)
            return
        alike = self._signature(root, rows)
        if alike is not None and (known := self._failed.get(alike)) is not None and known[0] == self.action.changes:
            self._refuse_all(rows, known[1])
            return
        statement = session.statement()
        board = StatementBoard(self.action, statement)
        found = GroupPlacement(self.action, board, self._waiting).place_root(root)
        if not found.message:
            statement.commit()
            self.action.changes += 1
            for row, errors in found.refused.items():
                self.action.refuse(row, errors)
            for row, message in found.failed.items():
                self.action.refuse(row, FitErrors(len(session.nodes), message=message))
            return
        message = found.message
        victims = self._preempt(root, rows)
        if isinstance(victims, GroupVictims):
            self._evict(root, victims)
            message = f"{message}, found a placement for podgroup, preempting {len(victims.victims)} victims"
        elif victims:
            message = f"{message}, preemption: {victims}"
            if victims != UNDER_WAY:
                for row in rows:
                    self.action.nominations.drop(row)
        if not isinstance(victims, GroupVictims):
            self.action.keep_nominations(rows)
        if alike is not None and not isinstance(victims, GroupVictims):
            self._failed[alike] = self.action.changes, message
        for row in rows:
            self.action.refuse(row, FitErrors(len(session.nodes), message=found.failed.get(row, message)))

    def announced(self) -> list[str]:
        """A word on groups that are no gangs under this policy."""
        if not self._other:
            return []
        first = min(self._other)
        groups = f"{first} is no gang" if len(self._other) == 1 else f"{first} and {len(self._other) - 1} more are no gangs"
        rule = "under kube-scheduler's rules only scheduling.k8s.io groups are gangs, with GangScheduling"
        return [f"{groups} here, so pods start one by one: {rule}"]

    def _signature(self, root: GroupNode, rows: list[int]) -> Hashable | None:
        """Groups with the same signature fail alike while nothing changes; None: the group is like no other."""
        session, nominations = self.session, self.action.nominations
        if root.job is None or any(nominations.node_of(row) is not None for row in rows) or scheduled(session, root):
            return None
        kinds = tuple(
            (session.class_of(row).number, session.task(row).pod_priority, session.task(row).preemption_policy) for row in rows
        )
        return kinds, root.minimum, root.label, root.priority, root.preemption_policy

    def _lacks(self, root: GroupNode) -> str:
        """Why the pods that exist are too few for the group to be tried; empty: they are enough."""
        if self._has_quorum(root):
            return ""
        return TOO_FEW if root.job is not None else f'waiting for composite pod group "{root.name}" tree to meet quorum'

    def _has_quorum(self, node: GroupNode) -> bool:
        if node.job is None:
            return sum(self._has_quorum(child) for child in node.children) >= node.minimum
        return len(scheduled(self.session, node)) + len(self._waiting(node)) >= node.minimum

    def _preempt(self, root: GroupNode, rows: list[int]) -> GroupVictims | str:
        """Empty: the profile does not preempt."""
        profile = self.session.class_of(rows[0]).profile
        if not self.action.given_for(profile).flag("preemption"):
            return ""
        return GroupPreemption(self.action, self._units, self._waiting).find(root, rows)

    def _evict(self, root: GroupNode, found: GroupVictims) -> None:
        """Evict the victims and nominate the pods. The victims hold their resources until they are gone."""
        session = self.session
        job = self._job(found.pairs[0][0])
        message = f"Preempted by podgroup {root.uid} on node cluster"
        statement = session.statement()
        for victim in found.victims:
            if session.status[victim] != TaskStatus.RELEASING:
                statement.evict(victim, for_=job.key, reason="preempt", message=message, holds_node=True)
        for row, node in found.pairs:
            statement.nominate(row, node)
        statement.commit()
        self.action.changes += 1
        for row, node in found.pairs:
            self.action.nominations.put(row, node)
            self.action.nominations.drop_lesser_than(row, node)
        self.action.changed()

    def _waiting(self, node: GroupNode) -> list[int]:
        return [] if node.job is None else self._rows.get(node.job.row, [])

    def _root(self, row: int) -> GroupNode:
        return self._trees.leaf(self._job(row)).root

    def _job(self, row: int) -> Job:
        job = self.session.job_of(row)
        assert job is not None
        return job

    def _refuse_all(self, rows: list[int], message: str) -> None:
        for row in rows:
            self.action.refuse(row, FitErrors(len(self.session.nodes), message=message))
