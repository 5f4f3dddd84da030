"""The parts of a job as a tree: leaves hold tasks and need a minimum of them, inner parts need a number of their children.

A job without sub-groups has one leaf. Counts are computed from the session's statuses when needed and cached until a task of the
job moves. A *copy* of a tree holds fewer tasks of the same job, for a search that considers a part of the job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from navarch.model.spec import TopologyDemand
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.job import Job

DEFAULT_PART = "default"
"""The one leaf of a job that names no parts."""
_ACTIVE = frozenset(
    int(s) for s in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
)
_PENDING, _RELEASING = int(TaskStatus.PENDING), int(TaskStatus.RELEASING)


class Part:
    """`minimum` of a leaf counts tasks, of an inner part children; None: all of them. `tasks` are in task order."""

    __slots__ = ("children", "minimum", "name", "parent", "tasks", "topology")

    def __init__(self, name: str, minimum: int | None, topology: TopologyDemand | None = None, parent: Part | None = None) -> None:
        self.name = name
        self.minimum = minimum
        self.topology = topology
        self.parent = parent
        self.children: list[Part] = []
        self.tasks: list[int] = []
        if parent is not None:
            parent.children.append(self)

    def leaf_parts(self) -> Iterator[Part]:
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaf_parts()

    def descendants(self) -> Iterator[Part]:
        yield self
        for child in self.children:
            yield from child.descendants()

    def __repr__(self) -> str:
        return f"Part({self.name!r}, {self.minimum}, {self.tasks})"


class SubGroupCounts:
    """One leaf: tasks that hold or are promised a node, how many tasks use a node in any way, and pending tasks."""

    __slots__ = ("active", "pending", "releasing", "used")

    def __init__(self) -> None:
        self.active: list[int] = []
        self.pending: list[int] = []
        self.releasing: list[int] = []
        self.used = 0


class GangTree:
    __slots__ = ("_counts", "_version", "job", "leaves", "root")

    def __init__(self, job: Job, root: Part) -> None:
        self.job = job
        self.root = root
        self.leaves = list(root.leaf_parts())
        self._version = -1
        self._counts: list[SubGroupCounts] = []

    # copies

    def holding(self, tasks: Collection[int]) -> GangTree:
        """The tree of a job with only these tasks: without empty parts, and with no minimum above the number of tasks."""
        root = _copy(self.root, None, set(tasks), clip=True)
        return GangTree(self.job, root if root is not None else Part(self.root.name, 0))

    def without(self, tasks: Collection[int]) -> GangTree:
        """The tree without these tasks, minima as they are."""
        gone = set(tasks)
        root = _copy(self.root, None, {t for leaf in self.leaves for t in leaf.tasks if t not in gone}, clip=False)
        assert root is not None
        return GangTree(self.job, root)

    # what stands where

    def counts_of(self, leaf: Part) -> SubGroupCounts:
        if self._version != self.job.version:
            self._count()
        return self._counts[0 if len(self.leaves) == 1 else self.leaves.index(leaf)]

    def _count(self) -> None:
        session = self.job.session
        status, gated = session.status, session.snapshot.tasks.gated
        self._counts = []
        for leaf in self.leaves:
            here = SubGroupCounts()
            for task in leaf.tasks:
                at = int(status[task])
                if at in _ACTIVE:
                    here.active.append(task)
                elif at == _PENDING:
                    if not gated[task]:
                        here.pending.append(task)
                elif at == _RELEASING:
                    here.releasing.append(task)
            here.used = len(here.active) + len(here.releasing)
            self._counts.append(here)
        self._version = self.job.version

    def required(self, part: Part) -> int:
        if part.children:
            return len(part.children) if part.minimum is None else part.minimum
        return part.minimum or 0

    def count(self, part: Part) -> int:
        if part.children:
            return sum(1 for child in part.children if self.satisfied(child))
        return len(self.counts_of(part).active)

    def satisfied(self, part: Part) -> bool:
        return self.count(part) >= self.required(part)

    def could_start(self, part: Part | None = None) -> bool:
        """Whether enough tasks run or wait, gates aside."""
        part = self.root if part is None else part
        if part.children:
            return sum(1 for child in part.children if self.could_start(child)) >= self.required(part)
        here = self.counts_of(part)
        return len(here.active) + len(here.pending) >= self.required(part)

    @property
    def active(self) -> list[int]:
        """Not to be changed: the tree keeps it until the job changes."""
        if len(self.leaves) == 1:
            return self.counts_of(self.leaves[0]).active
        return [task for leaf in self.leaves for task in self.counts_of(leaf).active]

    @property
    def used(self) -> int:
        return sum(self.counts_of(leaf).used for leaf in self.leaves)

    @property
    def has_pending(self) -> bool:
        if not self.job.counts[_PENDING]:
            return False
        return any(self.counts_of(leaf).pending for leaf in self.leaves)

    @property
    def is_whole(self) -> bool:
        """Every leaf holds its minimum, tasks that are leaving included."""
        return all(self.counts_of(leaf).used >= self.required(leaf) for leaf in self.leaves)

    @property
    def is_elastic(self) -> bool:
        """Some leaf has more tasks than it needs."""
        return any(len(leaf.tasks) > self.required(leaf) for leaf in self.leaves)

    @property
    def fill(self) -> int:
        """-1: some leaf is below its minimum; 1: none is, and one is above; 0: all are at it."""
        above = 0
        for leaf in self.leaves:
            surplus = len(self.counts_of(leaf).active) - self.required(leaf)
            if surplus < 0:
                return -1
            above |= surplus > 0
        return above

    def leaf_of(self, task: int) -> Part | None:
        return next((leaf for leaf in self.leaves if task in leaf.tasks), None)


def gang_tree(job: Job) -> GangTree:
    """The tree of a job's parts, with its tasks in task order. A task that names a part which is no leaf is in no part."""
    spec, session = job.spec, job.session
    root = Part("", spec.min_sub_groups, spec.topology)
    if not spec.sub_groups:
        leaf = Part(DEFAULT_PART, spec.min_member, None, root)
        leaf.tasks = session.tasks_by_age([t for t in job.tasks if session.task(t).sub_group in ("", DEFAULT_PART)])
        return GangTree(job, root)
    parents = {group.parent for group in spec.sub_groups}
    parts: dict[str, Part] = {"": root}
    waiting = list(spec.sub_groups)
    while waiting:
        left = []
        for group in waiting:
            if group.parent in parts:
                inner = group.name in parents
                minimum = group.min_sub_groups if inner else group.min_member
                parts[group.name] = Part(group.name, minimum, group.topology, parts[group.parent])
            else:
                left.append(group)
        if len(left) == len(waiting):
            break
        waiting = left
    by_name: dict[str, list[int]] = {}
    for task in job.tasks:
        by_name.setdefault(session.task(task).sub_group or DEFAULT_PART, []).append(task)
    for name, tasks in by_name.items():
        part = parts.get(name)
        if part is not None and name not in parents:
            part.tasks = session.tasks_by_age(tasks)
    return GangTree(job, root)


def _copy(part: Part, parent: Part | None, kept: set[int], *, clip: bool) -> Part | None:
    tasks = [task for task in part.tasks if task in kept]
    if clip and not any(task in kept for leaf in part.leaf_parts() for task in leaf.tasks):
        return None
    out = Part(part.name, part.minimum, part.topology, parent)
    out.tasks = tasks
    for child in part.children:
        _copy(child, out, kept, clip=clip)
    if clip and out.minimum is not None:
        out.minimum = min(out.minimum, len(out.children) if part.children else len(tasks))
    return out
