"""One cycle's isolated view of the cluster: columns of its own and immutable specs it shares.

Columns that a session changes (status and node of tasks, figures of nodes) are writable copies of `opening`. The others are read
only. Both are reused for the next snapshot and updated by changed rows (`tables/incremental_copy.py`).

Node rows are dense and in the cycle's node order, so that the first best row is the tie-break. Task and job rows keep the
cluster's numbers; dead rows are marked (`TaskColumns.alive`, a job spec of None).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from navarch.model.resources import BoolArray, FloatArray, IntArray, ResourceSpace, RowArray
from navarch.model.spec import (
    DisruptionBudgetSpec,
    JobSpec,
    NamespaceSpec,
    NodeSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    Shape,
    TaskSpec,
)
from navarch.model.tables.job_marks import JobMarks
from navarch.model.tables.tasks import StatusArray

RowNumbers = npt.NDArray[np.intp]


FIGURES = ("allocatable", "used", "requested", "scoring", "releasing", "pipelined")
"""The columns of a block of figures, in their order."""


def split_figures(figures: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """The columns `FIGURES` of a block, as views."""
    size = (len(figures) - 2) // 5
    scoring = 3 * size
    releasing = scoring + 2
    return (
        figures[:size],
        figures[size : 2 * size],
        figures[2 * size : scoring],
        figures[scoring:releasing],
        figures[releasing : releasing + size],
        figures[releasing + size :],
    )


@dataclass(slots=True)
class NodeColumns:
    names: list[str]
    specs: list[NodeSpec]
    figures: IntArray
    """The columns below, one under the other: a node is copied with all its figures in one step."""
    version: Hashable
    """Equal versions mean equal rows, labels, taints and everything else that static node functions read."""
    nothing_leaves: bool = False
    """True: nothing is releasing when the cycle opens. False: something may be."""
    opening: Mapping[str, IntArray] | None = None
    """`figures` before the first session wrote them, by that name; None: no copy of them is kept."""
    written: list[RowNumbers] | None = field(default_factory=list)
    """Rows whose figures were written since these arrays exist: the log of the session. None: other rows may have been, too."""
    read: int = 0
    """How much of the log was there when the snapshot was taken."""
    _row: dict[str, int] | None = field(default=None)
    allocatable: IntArray = field(init=False)
    """(R, nodes), as all but `scoring`, which is (2, nodes). `engine/figures.py` says what they mean."""
    used: IntArray = field(init=False)
    requested: IntArray = field(init=False)
    scoring: IntArray = field(init=False)
    releasing: IntArray = field(init=False)
    pipelined: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.allocatable, self.used, self.requested, self.scoring, self.releasing, self.pipelined = split_figures(self.figures)

    def __len__(self) -> int:
        return len(self.names)

    def row(self, name: str) -> int | None:
        if self._row is None:
            self._row = {n: i for i, n in enumerate(self.names)}
        return self._row.get(name)


@dataclass(slots=True)
class TaskColumns:
    specs: list[TaskSpec | None]
    status: StatusArray
    alive: BoolArray
    shape: RowArray
    job: RowArray
    node: RowArray
    priority: IntArray
    created: FloatArray
    started: FloatArray
    labels: RowArray
    gated: BoolArray
    preemptable: BoolArray
    pod_priority: IntArray
    nominated: BoolArray
    in_part: BoolArray
    index: IntArray
    opening: Mapping[str, RowArray | StatusArray] | None = None
    """As in `NodeColumns`: `status` and `node` before the first session wrote them."""

    def spec(self, row: int) -> TaskSpec:
        spec = self.specs[row]
        assert spec is not None, f"task row {row} is dead"
        return spec


@dataclass(slots=True)
class JobColumns:
    keys: list[str]
    specs: list[JobSpec | None]
    tasks: list[dict[int, None]]
    counts: IntArray
    """(jobs, statuses)"""
    best_effort_pending: IntArray
    allocated: IntArray
    """(R, jobs)"""
    pending: IntArray
    min_resources: IntArray
    has_min_resources: BoolArray
    min_member: IntArray
    priority: IntArray
    preemptable: BoolArray
    expected_duration: FloatArray
    queue: RowArray
    phase: RowArray
    in_parts: BoolArray
    queue_names: list[str]
    phases: list[str]
    queue_allocated: IntArray
    """(R, queues), by the number of the queue's name"""
    queue_pending: IntArray
    queue_jobs: IntArray
    """How many jobs name each queue."""
    marks: JobMarks
    held: dict[int, JobSpec]
    """Specs of jobs that take no part because they are held; `specs` lacks them."""
    left_out: dict[int, JobSpec] = field(default_factory=dict)
    """Specs that were taken out of this snapshot alone."""
    sitting_out: set[int] = field(default_factory=set)
    """Jobs whose pending pods wait for a later cycle, although their other pods are here: `marks.waiting` lacks them."""

    def spec_of(self, row: int) -> JobSpec | None:
        """The job's, whether it takes part or not."""
        return self.specs[row] or self.held.get(row) or self.left_out.get(row)

    @property
    def taking_part(self) -> BoolArray:
        """(jobs,): neither held nor left out, and in a queue, be it one that exists or not."""
        there: BoolArray = (self.queue >= 0) & ~self.marks.absent
        there[list(self.left_out)] = False
        return there

    def sit_out(self, row: int) -> None:
        """The job gets nothing in this cycle; what it holds stays its own."""
        self.marks.waiting[row] = False
        self.sitting_out.add(row)

    def leave_out(self, row: int) -> None:
        """The job takes no part in this cycle."""
        spec = self.specs[row]
        if spec is not None:
            self.left_out[row], self.specs[row] = spec, None


@dataclass(slots=True)
class Snapshot:
    resource_names: tuple[str, ...]
    space: ResourceSpace
    nodes: NodeColumns
    tasks: TaskColumns
    jobs: JobColumns
    shapes: list[Shape]
    shape_request: IntArray
    """(R, shapes): what a pod asks of its node."""
    shape_charge: IntArray
    """(R, shapes): what a pod counts for in the accounts of jobs and queues: its request, and its parts of GPUs."""
    shape_best_effort: list[bool]
    shape_node_rules: list[Shape]
    """By shape: what it says about nodes. The same object where shapes say the same."""
    shares_devices: bool
    """Whether any pod asks for a part of a device."""
    queues: dict[str, QueueSpec]
    priority_classes: dict[str, PriorityClassSpec]
    budgets: dict[tuple[str, str], DisruptionBudgetSpec]
    quotas: dict[tuple[str, str], QuotaSpec]
    namespaces: dict[str, NamespaceSpec]
    objects: dict[str, dict[tuple[str, str], Any]]
    versions: Mapping[str, int]
    identities: list[tuple[str, tuple[tuple[str, str], ...]]]
    memo: dict[Hashable, Any]
    number: int = 0
    """The serial number of this snapshot of its cluster."""
    session: Any = None
    """The session of the last cycle, for the next one (`engine/kept_session.py`). None: there is none to go on with."""
