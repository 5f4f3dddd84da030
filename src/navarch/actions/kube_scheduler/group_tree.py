"""`scheduling.k8s.io` groups as a tree: groups with pods are the leaves, CompositePodGroups stand above them.

A group without a composite is a tree of its own. The root takes the turn: kube-scheduler's queue holds roots. A tree that is not
valid (a composite that does not exist, a ring, more than four levels) is refused with its reason, and its pods wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.objects.composite_groups import DEEPEST, CompositeGroup, composite_groups
from navarch.model.status import IS_ALLOCATED, ON_NODE
from navarch.object_types import ObjectKey

GANG_API = "upstream"


@dataclass(eq=False, slots=True)
class GroupNode:
    """A group with pods (`job`), or a group of groups (`composite`)."""

    name: str
    minimum: int
    label: str
    priority: int | None
    """None: that of its pods."""
    disrupted_together: bool
    preemption_policy: str
    uid: str
    job: Job | None = None
    composite: CompositeGroup | None = None
    parent: GroupNode | None = None
    children: list[GroupNode] = field(default_factory=list)
    problem: str = ""
    """Why the tree of this root is not valid; empty: it is."""

    def leaves(self) -> Iterator[GroupNode]:
        if self.job is not None:
            yield self
        for child in self.children:
            yield from child.leaves()

    @property
    def root(self) -> GroupNode:
        return self if self.parent is None else self.parent.root


class GroupTrees:
    """The trees of all groups that the session has. Made once a cycle."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._composites = composite_groups(session.snapshot)
        self._made: dict[ObjectKey, GroupNode] = {}
        self._leaves: dict[int, GroupNode] = {}
        self._any: bool | None = None
        if self._composites:
            specs = session.snapshot.jobs.specs
            for job in session.jobs_at([row for row, spec in enumerate(specs) if spec is not None and spec.composite]):
                self.leaf(job)

    @property
    def any_group(self) -> bool:
        """Whether any group could change how its pods are preempted: by a priority of its own, or by its disruption mode."""
        if self._any is None:
            specs = self.session.snapshot.jobs.specs
            self._any = bool(self._composites) or any(
                spec is not None and spec.dialect == GANG_API and (spec.disrupted_together or not spec.priority_of_tasks)
                for spec in specs
            )
        return self._any

    def leaf(self, job: Job) -> GroupNode:
        found = self._leaves.get(job.row)
        if found is None:
            found = self._leaves[job.row] = self._leaf(job)
        return found

    def dissolve(self) -> None:
        """Parents and children refer to each other: let the session go without the garbage collector."""
        for node in (*self._leaves.values(), *self._made.values()):
            node.parent = None
            node.children.clear()

    def _leaf(self, job: Job) -> GroupNode:
        spec = job.spec
        label = spec.topology.label if spec.topology is not None else ""
        priority = None if spec.priority_of_tasks else job.priority
        node = GroupNode(
            spec.name, spec.min_member, label, priority, spec.disrupted_together, spec.preemption_policy, spec.uid, job=job
        )
        if spec.composite:
            self._hang(node, (spec.namespace, spec.composite), [])
        return node

    def _hang(self, node: GroupNode, key: ObjectKey, below: list[ObjectKey]) -> None:
        """Put the node below the composite of this key, and that below its own parent."""
        if key in below:
            node.problem = f'the composite pod group "{key[1]}" is its own ancestor'
            return
        if len(below) + 2 > DEEPEST:
            node.problem = f"the tree of composite pod groups has more than {DEEPEST} levels"
            return
        above = self._made.get(key)
        if above is None:
            found = self._composites.get(key)
            if found is None:
                node.problem = f'the composite pod group "{key[1]}" does not exist'
                return
            above = self._made[key] = self._composite(found)
            if found.parent:
                self._hang(above, (found.namespace, found.parent), [*below, key])
        node.parent = above
        above.children.append(node)
        above.children.sort(key=lambda child: (child.job is None, child.name))

    def _composite(self, found: CompositeGroup) -> GroupNode:
        priority = found.priority
        if priority is None and found.priority_class:
            known = self.session.snapshot.priority_classes.get(found.priority_class)
            priority = known.value if known is not None else 0
        return GroupNode(
            found.name,
            found.minimum,
            found.label,
            priority or 0,
            found.disrupted_together,
            found.preemption_policy,
            found.uid,
            composite=found,
        )


def scheduled(session: Session, node: GroupNode) -> list[int]:
    """Pods of the group, or of the groups below it, that hold a node and stay there."""
    return [task for task in _tasks(node) if IS_ALLOCATED[session.status[task]]]


def on_nodes(session: Session, node: GroupNode) -> list[int]:
    """The same with the pods that are leaving, and those whose state is unknown."""
    return [task for task in _tasks(node) if session.node[task] >= 0 and ON_NODE[session.status[task]]]


def _tasks(node: GroupNode) -> Iterator[int]:
    for leaf in node.leaves():
        if leaf.job is not None:
            yield from leaf.job.tasks
