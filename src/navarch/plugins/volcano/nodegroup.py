"""Nodegroup: nodes belong to groups by label, and queues say which groups their pods must, should and should not use.

A group is allowed if the queue requires or prefers it. A group under required anti-affinity is refused, unless it is also under
preferred anti-affinity. A queue may have a limit in a group (annotation `volcano.sh/nodegroup-resource-limits`, JSON of group ->
resources). With `enableHierarchy` a queue without affinity uses that of its nearest ancestor that has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.engine.queue import ROOT, Queue
from navarch.engine.session import Session
from navarch.model.quantity import QuantityError
from navarch.model.resources import BoolArray, FloatArray, IntArray, requests_from
from navarch.model.status import IS_ALLOCATED
from navarch.model.tables.columns import sums_by_group
from navarch.plugins.predicates.nodes.properties import node_properties
from navarch.plugins.queues.ledger import queue_of_job

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
REQUIRED, PREFERRED = 100.0, 50.0
AVOIDED = -1.0
NO_LABEL = "node group label not found"
NO_AFFINITY = "node group affinity not specified"
UNSATISFIED = "node does not satisfy the node group affinity"
EXCEEDED = "node group resource limit exceeded"
INVALID = "node group resource limit annotation invalid"
Affinity = Mapping[str, tuple[str, ...]]
Limits = dict[str, dict[int, int]]
"""Group -> resource dimension -> most that the queue may hold there."""


class NodeGroup(Plugin):
    """Keeps queues to their groups of nodes"""

    name = "nodegroup"
    arguments = (
        Argument("strict", "bool", True, "a node without a group takes no pod; otherwise pods of queues without affinity"),
        Argument("enablePreferredOrder", "bool", False, "preferred groups score by their place in the list"),
    )

    def open(self) -> None:
        session = self.session
        session.distinguish_queues()
        column = node_properties(session.snapshot).label(LABEL)
        self.groups = sorted(column.values)
        number = {group: i for i, group in enumerate(self.groups)}
        self.group_of_node: IntArray = np.array([*(number[group] for group in column.values), -1], dtype=np.intp)[column.codes]
        self.affinity = {name: self._affinity(queue) for name, queue in session.queues.items()}
        self.limits: dict[str, Limits | None] = {}
        """Queues with limits; None where the annotation is invalid."""
        for name, queue in session.queues.items():
            if LIMITS in queue.spec.annotations:
                self.limits[name] = read_limits(session, queue.spec.annotations[LIMITS])
        self.held = self._held() if self.limits else {}

    def _affinity(self, queue: Queue) -> Affinity | None:
        if queue.spec.node_groups is not None or not self.option.is_enabled("hierarchy"):
            return queue.spec.node_groups
        line = list(queue.ancestors)
        root = self.session.queues.get(ROOT)
        if root is not None and root is not queue and root not in line:
            line.append(root)
        return next((q.spec.node_groups for q in line if q.spec.node_groups is not None), None)

    def _held(self) -> dict[str, IntArray]:
        """What each limited queue holds in each group, (R, groups), the last for nodes without one."""
        session = self.session
        tasks = session.snapshot.tasks
        queue = np.append(queue_of_job(session), -1)[tasks.job]
        out = {}
        for name in self.limits:
            mine = tasks.alive & (queue == session.queues[name].number) & IS_ALLOCATED[session.status] & (session.node >= 0)
            rows = np.flatnonzero(mine)
            group = self.group_of_node[session.node[rows]] % (len(self.groups) + 1)
            out[name] = sums_by_group(session.snapshot.shape_request[:, session.shape[rows]], group, len(self.groups) + 1)
        return out

    def node_filters(self) -> list[NodeFilter]:
        filters: list[NodeFilter] = [GroupAffinity(self)]
        return [*filters, GroupLimits(self)] if self.limits else filters

    def node_scorers(self) -> list[NodeScorer]:
        return [GroupPreference(self)]

    def on_allocate(self, change: Change) -> None:
        self._move(change, 1)

    def on_deallocate(self, change: Change) -> None:
        self._move(change, -1)

    def _move(self, change: Change, sign: int) -> None:
        held = self.held.get(change.job.queue.name)
        if held is not None:
            counts = np.bincount(self.group_of_node[list(change.nodes)] % held.shape[1], minlength=held.shape[1])
            held += sign * change.task.request[:, None] * counts

    def by_group(self, values: Iterable[float], none: float) -> FloatArray:
        """A value a group, as a table that a node's group number indexes; -1, no group, finds the last."""
        return np.array([*values, none], dtype=np.float64)


def read_limits(session: Session, text: str) -> Limits | None:
    index = {name: i for i, name in enumerate(session.snapshot.resource_names)}
    try:
        groups = {group: requests_from(resources) for group, resources in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError, QuantityError):
        return None
    return {group: {index[name]: amount for name, amount in found if name in index} for group, found in groups.items()}


class GroupAffinity(NodeFilter):
    name = "nodegroup"
    scope = Scope.ROW

    def __init__(self, plugin: NodeGroup) -> None:
        self.plugin = plugin
        self._allowed: dict[str, BoolArray] = {}

    def allowed(self, queue: str) -> BoolArray:
        """By group number, nodes without a group last."""
        found = self._allowed.get(queue)
        if found is None:
            affinity, plugin = self.plugin.affinity.get(queue), self.plugin
            groups = [affinity is not None and group_allowed(affinity, group) for group in plugin.groups]
            unlabelled = affinity is None and not plugin.given.flag("strict")
            found = self._allowed[queue] = np.array([*groups, unlabelled], dtype=bool)
        return found

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        mask: BoolArray = self.allowed(task.queue)[self.plugin.group_of_node[at.rows]]
        return mask

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        refused = ~self.mask(task, at)
        unlabelled = self.plugin.group_of_node[at.rows] < 0
        why = NO_AFFINITY if self.plugin.affinity.get(task.queue) is None else UNSATISFIED
        yield Refusal(NO_LABEL, refused & unlabelled, True, "NodeGroup")
        yield Refusal(why, refused & ~unlabelled, True, "NodeGroup")


def group_allowed(affinity: Affinity, group: str) -> bool:
    if group in affinity.get("anti.preferred", ()):
        return True
    if group in affinity.get("anti.required", ()):
        return False
    return group in affinity.get("affinity.required", ()) or group in affinity.get("affinity.preferred", ())


class GroupLimits(NodeFilter):
    """Asked after every placement: what a queue holds of a group decides for all the group's nodes."""

    name = "nodegroup-limits"
    scope = Scope.GLOBAL

    def __init__(self, plugin: NodeGroup) -> None:
        self.plugin = plugin

    def applies(self, task: TaskClass) -> bool:
        return task.queue in self.plugin.limits

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        limits, groups = self.plugin.limits[task.queue], self.plugin.groups
        room = np.full(len(groups) + 1, limits is not None)
        held = self.plugin.held[task.queue]
        for number, group in enumerate(groups):
            for dim, most in (limits or {}).get(group, {}).items():
                if task.request[dim] > 0 and held[dim, number] + task.request[dim] > most:
                    room[number] = False
        mask: BoolArray = room[self.plugin.group_of_node[at.rows]]
        return mask

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        invalid = self.plugin.limits[task.queue] is None
        yield Refusal(INVALID if invalid else EXCEEDED, ~self.mask(task, at), invalid, "NodeGroupLimit")


class GroupPreference(NodeScorer):
    name = "nodegroup"
    scope = Scope.ROW

    def __init__(self, plugin: NodeGroup) -> None:
        self.plugin = plugin
        self._scores: dict[str, FloatArray] = {}

    def applies(self, task: TaskClass) -> bool:
        return self.plugin.affinity.get(task.queue) is not None

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        scores = self._scores.get(task.queue)
        if scores is None:
            affinity = self.plugin.affinity[task.queue]
            assert affinity is not None
            ordered = self.plugin.given.flag("enablePreferredOrder")
            values = (group_score(affinity, group, ordered=ordered) for group in self.plugin.groups)
            scores = self._scores[task.queue] = self.plugin.by_group(values, 0.0)
        column: FloatArray = scores[self.plugin.group_of_node[at.rows]]
        return column


def group_score(affinity: Affinity, group: str, *, ordered: bool = False) -> float:
    """
    >>> group_score({"affinity.preferred": ("fast", "slow")}, "slow", ordered=True)
    25.0
    """
    if group in affinity.get("anti.preferred", ()):
        return AVOIDED
    score = REQUIRED if group in affinity.get("affinity.required", ()) else 0.0
    preferred = affinity.get("affinity.preferred", ())
    if group in preferred:
        score += PREFERRED * (len(preferred) - preferred.index(group)) / len(preferred) if ordered else PREFERRED
    return score
