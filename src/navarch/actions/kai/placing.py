"""Placement of the next chunk of a job, part by part: all of its tasks, or none.

A part with a topology demand narrows the nodes; its node sets are tried in order, and the placements of a failed set are rolled
back. A task goes to the best node with room now or once resources are released: idle resources are allocated, resources in
release are promised. In a search for victims everything is promised, and a task that the search evicted and that gets its own
place again stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from navarch.actions.kai.placement_failures import Failure
from navarch.actions.kai.shortages import Shortages
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.gangs.gang_tree import GangTree, Part
from navarch.engine.job import Job
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.shared_devices import shares_devices
from navarch.engine.points.gang_protocols import (
    ChunkRefusal,
    IdleFitScore,
    NodeBounds,
    NodeSet,
    NodeSets,
    NominatedNode,
    NoNodeSet,
    SamePlace,
)
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.model.resources import PODS, BoolArray, FloatArray
from navarch.model.status import TaskStatus


@dataclass(slots=True)
class ChunkPlacement:
    """One attempt. `evicted`: in a search, the tasks that its statement evicted; None outside of a search."""

    session: Session
    statement: Statement
    nodes: BoolArray
    evicted: set[int] | None = None
    hopeless: set[int] | None = None
    """In a search: classes of tasks that found no node. Free resources only shrink in a search, so later tasks of the class are
    skipped."""
    failures: list[Failure] = field(default_factory=list)
    """Why it failed, outside of a search: one failure for each set of nodes."""
    within: NodeSet | None = None
    """The same nodes as a set, if the caller has it."""
    _start: int = 0

    def place(self, job: Job, tree: GangTree | None = None) -> bool:
        """Place the next chunk of the job (or of its copy `tree`), or nothing. `failures` has the reasons."""
        tree = job.tree if tree is None else tree
        chunk = next_to_place(self.session, tree, self.evicted or ())
        if not chunk:
            return False
        for plugin in self.session.implementing(ChunkRefusal):
            reason: Reason | None = plugin.chunk_refusal(job, chunk)
            if reason is not None:
                self._fails(-1, reason)
                return False
        if self.hopeless and self.session.class_of(chunk[0]).number in self.hopeless:
            return False
        start = self._start = self.statement.save_point()
        if self.within is None:
            self.within = NodeSet(self.nodes, everywhere=bool(self.nodes.all()))
        if not self._chunk(job, tree, chunk, self.within):
            self.statement.roll_back(start)
            return False
        if self.evicted is None:
            self._wait_for_all(tree, start)
        return True

    # parts

    def _chunk(self, job: Job, tree: GangTree, chunk: list[int], within: NodeSet) -> bool:
        leaves = tree.leaves
        if len(leaves) == 1:
            leaf = leaves[0]
            if leaf.parent is tree.root and leaf.topology is None and tree.root.topology is None:  # the usual job
                return all(self._task(job, task, within, found) for found, task in enumerate(chunk))
            return self._part(job, tree, tree.root, {id(leaf): chunk}, within)
        wanted = set(chunk)
        by_leaf = {id(leaf): [task for task in leaf.tasks if task in wanted] for leaf in leaves}
        return self._part(job, tree, tree.root, by_leaf, within)

    def _part(self, job: Job, tree: GangTree, part: Part, by_leaf: dict[int, list[int]], within: NodeSet) -> bool:
        if part.topology is None:
            return self._members(job, tree, part, by_leaf, within)
        tasks = [task for leaf in part.leaf_parts() for task in by_leaf[id(leaf)]]
        sets = [within]
        for plugin in self.session.implementing(NodeSets):
            split: list[NodeSet] = []
            for each in sets:
                found = plugin.node_sets(job, part, tasks, each.nodes)
                if isinstance(found, NoNodeSet):
                    for reason in found.reasons:
                        self._fails(-1, reason)
                    continue
                split += [NodeSet(s.nodes, each.scores if s.scores is None else s.scores) for s in found]
            sets = split
        for each in sets:
            here = self.statement.save_point()
            if self._members(job, tree, part, by_leaf, each):
                return True
            self.statement.roll_back(here)
        return False

    def _members(self, job: Job, tree: GangTree, part: Part, by_leaf: dict[int, list[int]], within: NodeSet) -> bool:
        if not part.children:
            return all(self._task(job, task, within, found) for found, task in enumerate(by_leaf[id(part)]))
        concerned = part.children
        if len(concerned) > 1:
            concerned = [child for child in concerned if any(by_leaf[id(leaf)] for leaf in child.leaf_parts())]
            concerned = self.session.parts_in_order(tree, concerned)
        return all(self._part(job, tree, child, by_leaf, within) for child in concerned)

    # tasks

    def _fails(self, task: int, reason: Reason, found: int = 0) -> None:
        if self.evicted is None:
            self.failures.append(Failure(task, reason, found))

    def _task(self, job: Job, task: int, within: NodeSet, found: int) -> bool:
        session = self.session
        kind = session.class_of(task)
        reason = session.pre_predicate(kind)
        if reason is not None:
            if self.evicted is None:
                own = session.pre_predicate(replace(kind, task=task)) or reason  # the words name the pod
                self._fails(task, own, found)
            return False
        view = session.view(kind)
        merits = self._merits(job, task, view, within)
        shared = session.devices is not None and shares_devices(kind)
        while True:
            row = int(merits.argmax()) if len(merits) else -1
            if row < 0 or merits[row] == -np.inf:
                if self.evicted is None:
                    everywhere = within.everywhere
                    why = session.shared(Shortages).of(job, task, view, within.nodes, everywhere=everywhere)
                    self.failures.append(Failure(task, why, found))
                elif self.hopeless is not None and len(self.statement) == self._start and within.nodes is self.nodes:
                    self.hopeless.add(kind.number)
                return False
            groups: tuple[str, ...] = ()
            promised = self.evicted is not None or not view.idle[row]
            if shared:
                assert session.devices is not None
                chosen = session.devices.choose(kind, row, bool(view.idle[row]))
                if chosen is None or not self._slot_left(row, chosen[0]):
                    merits = merits.copy()
                    merits[row] = -np.inf
                    continue
                groups, promised = chosen[0], promised or chosen[1]
            self._put(task, row, groups, promised=promised)
            return True

    def _merits(self, job: Job, task: int, view: ClassView, within: NodeSet) -> FloatArray:
        """The score of every node that may take the task, minus infinity elsewhere."""
        session = self.session
        at_once = sum((scoring.idle_fit_score() for scoring in session.implementing(IdleFitScore)), 0.0)
        if view.is_local:
            merits = view.merits(at_once)
            if not within.everywhere:
                merits = np.where(within.nodes, merits, -np.inf)
        else:
            takes = view.feasible() & view.future & within.nodes
            merits = np.where(takes, view.totals(within.nodes) + at_once * view.idle, -np.inf)
        if within.scores is not None:
            merits = np.where(np.isnan(within.scores), -np.inf, merits + within.scores)
        for bounding in session.implementing(NodeBounds):
            bounds = bounding.within_bounds(job, task)
            if bounds is not None:
                merits = np.where(bounds, merits, -np.inf)
        for nominating in session.implementing(NominatedNode):
            found = nominating.nominated_node(task)
            if found is not None:
                merits = merits.copy()
                merits[found[0]] += found[1]
        return merits

    def _slot_left(self, row: int, groups: Sequence[str]) -> bool:
        """A newly shared device needs a pod slot for its reservation pod, besides that of the task."""
        nodes = self.session.nodes
        free = int(nodes.allocatable[PODS, row] - nodes.used[PODS, row])
        free += int(nodes.releasing[PODS, row] - nodes.pipelined[PODS, row])
        return free >= 2 or all(group.isdecimal() for group in groups)

    def _put(self, task: int, row: int, groups: tuple[str, ...], *, promised: bool) -> None:
        session, statement = self.session, self.statement
        job, kind = session.job_of(task), session.class_of(task)
        assert job is not None
        if self.evicted is not None and task in self.evicted and session.status[task] == TaskStatus.RELEASING:
            held = () if session.devices is None else session.devices.groups.get(task, ())
            # A pod that was moved before is still on the node that it leaves: finding it there takes back only its last eviction.
            left = session.left_places.get(task, {}).get(row)
            same = (session.node[task] == row and held == groups) or left == groups
            if same and all(plugin.same_place(task, row) for plugin in session.implementing(SamePlace)):
                statement.restore(task)
                return
        if promised:
            statement.pipeline(job, (task,), (row,), kind, groups, evicting=self.evicted is not None)
        else:
            statement.allocate(job, (task,), (row,), kind, groups)

    def _wait_for_all(self, tree: GangTree, start: int) -> None:
        """If a part waits for resources in release and is below its minimum without them, the whole job waits, also for resources
        that were promised to it before."""
        operations = self.statement.operations[start:]
        if not tree.job.counts[TaskStatus.PIPELINED] or all(op.kind == TaskStatus.PIPELINED for op in operations):
            return
        status = self.session.status
        for leaf in tree.leaves:
            active = tree.counts_of(leaf).active
            waiting = sum(1 for task in active if status[task] == TaskStatus.PIPELINED)
            if waiting and len(active) - waiting < tree.required(leaf):
                break
        else:
            return
        for operation in operations:  # one by one: the books of a shared GPU see the others of the job all the time
            if operation.kind != TaskStatus.PIPELINED:
                self.statement.undo(operation)
                self._put(operation.tasks[0], operation.nodes[0], operation.groups, promised=True)
