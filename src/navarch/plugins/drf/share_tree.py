"""A tree of queues in which dominant shares are compared level by level (hierarchical DRF).

Queues are paths (`root/research/vision`) with a weight at each level; jobs are leaves. The amount of an inner node is not the plain
sum of its children: a child that could still grow is scaled down to the smallest share among such children, so that one job does
not make its whole branch look large. A job is saturated when it holds all it requested of some resource, or that resource is used
up in the cluster; a node is saturated when all its children are. Unsaturated nodes go first, then the smaller share by weight.

Nodes are computed when a comparison needs them and something below them changed, each in a few passes over its jobs.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Rows
from navarch.engine.queue import MOST_LEVELS, ROOT, Queue
from navarch.engine.session import Session
from navarch.engine.victims.owed import QueueShares
from navarch.model.resources import UNLIMITED, BoolArray, FloatArray, IntArray
from navarch.model.status import IS_ALLOCATED, TaskStatus
from navarch.model.tables.columns import sums_by_group
from navarch.plugins.queues.amounts import CLOSE
from navarch.plugins.queues.owed_shares import Claims, owed_down

PATH = "volcano.sh/hierarchy"
WEIGHTS = "volcano.sh/hierarchy-weights"


class Branch(Struct, eq=False):
    weight: float
    parent: Branch | None = None
    children: dict[str, Branch] = field(default_factory=dict)
    jobs: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    stale: bool = True
    share: float = 0.0
    saturated: bool = False
    allocated: FloatArray = field(default_factory=lambda: np.zeros(0))


class ShareTree:
    def __init__(self, session: Session, queue_of_job: Rows) -> None:
        jobs = session.snapshot.jobs
        self.total: IntArray = session.total
        self.dims: Rows = np.flatnonzero(session.total >= CLOSE)
        self.held: IntArray = jobs.allocated.copy()
        self.request: IntArray = jobs.allocated + jobs.pending + _others(session)
        self.all_held: IntArray = self.held[:, queue_of_job >= 0].sum(axis=1)
        self.demanding: BoolArray = self._demanding()
        self.root = Branch(1.0)
        self.path: dict[int, list[str]] = {}
        self._branch: dict[int, Branch] = {}
        for queue in sorted(session.queues.values(), key=lambda q: q.number):
            rows = np.flatnonzero(queue_of_job == queue.number)
            self.path[queue.number], weights = path_of(queue)
            if len(rows):
                self._grow(queue, weights, rows)

    def _grow(self, queue: Queue, weights: list[float], rows: Rows) -> None:
        branch = self.root
        for name, weight in zip(self.path[queue.number][1:], weights[1:]):
            child = branch.children.get(name)
            if child is None:
                child = branch.children[name] = Branch(weight, branch)
            branch = child
        branch.jobs = np.concatenate([branch.jobs, rows])
        self._branch[queue.number] = branch

    def shift(self, queue: Queue, job: int, change: IntArray) -> None:
        """A job of the queue holds this much more (or less)."""
        self.held[:, job] += change
        self.all_held += change
        demanding = self._demanding()
        if not np.array_equal(demanding, self.demanding):
            self.demanding = demanding
            self._spoil_all(self.root)
        branch: Branch | None = self._branch.get(queue.number)
        while branch is not None:
            branch.stale = True
            branch = branch.parent

    def compare(self, left: Queue, right: Queue) -> float:
        """Negative: `left` is served first; zero: no difference on the way that both share."""
        self._update(self.root)
        a, b = self.root, self.root
        names = list(zip(self.path[left.number], self.path[right.number]))
        for level in range(len(names)):
            if a.saturated != b.saturated:
                return 1.0 if a.saturated else -1.0
            difference = a.share / a.weight - b.share / b.weight
            if difference:
                return difference
            if level + 1 < len(names):
                mine, yours = a.children.get(names[level + 1][0]), b.children.get(names[level + 1][1])
                if mine is None or yours is None:
                    return 0.0
                a, b = mine, yours
        return 0.0

    def owed(self) -> QueueShares:
        """The cluster divided by weight and demand level by level. Inner nodes of the tree are numbered after the queues."""
        numbers = {id(branch): number for number, branch in self._branch.items()}
        branches = {numbers[id(branch)]: branch for branch in self._branch.values()}
        below: dict[int, list[int]] = {}
        parents: dict[int, int] = {}
        free = max(self.path, default=-1) + 1
        waiting = [self.root]
        while waiting:
            branch = waiting.pop()
            for child in branch.children.values():
                number = numbers.setdefault(id(child), free)
                if number == free:
                    free += 1
                branches[number] = child
                if branch is not self.root:
                    parents[number] = numbers[id(branch)]
                    below.setdefault(numbers[id(branch)], []).append(number)
                waiting.append(child)
        request = np.zeros((free, len(self.total)), dtype=np.int64)
        weight = np.ones(free)
        lines: list[tuple[int, ...]] = [()] * free
        for number, branch in branches.items():
            weight[number] = branch.weight
            line = [number]
            while line[0] in parents:
                line.insert(0, parents[line[0]])
            lines[number] = tuple(line)
            request[line] += self.request[:, branch.jobs].sum(axis=1)
        for number, branch in self._branch.items():  # several queues may name one path
            lines[number] = lines[numbers[id(branch)]]
        unlimited = np.full_like(request, UNLIMITED)
        claims = Claims(weight=weight, limit=unlimited, request=request, entitled=np.zeros_like(request))
        top = sorted(number for number in branches if number not in parents)
        return QueueShares(owed_down(self.total, top, below, claims), lines)

    def _demanding(self) -> BoolArray:
        """Resources that are not used up in the cluster."""
        some: BoolArray = (self.total >= CLOSE) & (self.all_held < self.total)
        return some

    def _spoil_all(self, branch: Branch) -> None:
        branch.stale = True
        for child in branch.children.values():
            self._spoil_all(child)

    def _update(self, branch: Branch) -> None:
        if not branch.stale:
            return
        held = self.held[:, branch.jobs]
        shares = (held[self.dims] / self.total[self.dims, None]).max(axis=0, initial=0.0)
        full = self._saturated(held, self.request[:, branch.jobs])
        smallest = min(1.0, shares[(shares != 0) & ~full].min(initial=1.0))
        for child in branch.children.values():
            self._update(child)
            if child.share and not child.saturated:
                smallest = min(smallest, child.share)
        grows = (shares != 0) & ~full
        branch.allocated = held[:, full].sum(axis=1) + (held[:, grows] * (smallest / shares[grows])).sum(axis=1)
        for child in branch.children.values():
            if child.share:
                branch.allocated += child.allocated if child.saturated else child.allocated * (smallest / child.share)
        branch.share = float((branch.allocated[self.dims] / self.total[self.dims]).max(initial=0.0))
        branch.saturated = bool(full.all()) and all(child.saturated for child in branch.children.values())
        branch.stale = False

    def _saturated(self, held: IntArray, request: IntArray) -> BoolArray:
        complete = (held > 0) & (request != 0) & ((held >= request) | ~self.demanding[:, None])
        out: BoolArray = complete.any(axis=0)
        return out


def path_of(queue: Queue) -> tuple[list[str], list[float]]:
    """Names and weights from the root down: as annotated, else by the queue's ancestors and their weights. Levels past
    `MOST_LEVELS` count as one with the level above them.

    >>> from navarch.model.cluster import Cluster
    >>> from navarch.model.spec import QueueSpec
    >>> path_of(Queue(0, QueueSpec("b", annotations={PATH: "root/a/b", WEIGHTS: "100/3/0"}), Cluster().snapshot().jobs, None))
    (['root', 'a', 'b'], [100.0, 3.0, 1.0])
    """
    annotations = queue.spec.annotations
    path, weights = annotations.get(PATH, ""), annotations.get(WEIGHTS, "")
    if path and weights:
        names = path.split("/")[:MOST_LEVELS]
        given = [_weight(text) for text in weights.split("/")[:MOST_LEVELS]]
        return names, given + [1.0] * (len(names) - len(given))
    line = [queue, *queue.ancestors][::-1]
    below = [q for q in line if q.name != ROOT]
    return [ROOT, *(q.name for q in below)], [1.0, *(float(max(q.spec.weight, 1)) for q in below)]


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return max(weight, 1.0) if math.isfinite(weight) else 1.0


def _others(session: Session) -> IntArray:
    """What tasks that are neither placed nor pending ask for, by job: leaving and finished ones belong to its request too."""
    snapshot = session.snapshot
    tasks, jobs = snapshot.tasks, snapshot.jobs.allocated.shape[1]
    rows = np.flatnonzero(tasks.alive & (tasks.job >= 0) & ~IS_ALLOCATED[tasks.status] & (tasks.status != TaskStatus.PENDING))
    sums: IntArray = sums_by_group(snapshot.shape_charge[:, tasks.shape[rows]], tasks.job[rows], jobs)
    return sums
