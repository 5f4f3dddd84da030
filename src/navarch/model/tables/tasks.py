"""The task table: every pod that is pending for this scheduler or holds a node, as columns beside its immutable spec."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from navarch.model.resources import BoolArray, FloatArray, IntArray, RowArray
from navarch.model.spec import TaskSpec
from navarch.model.tables.columns import Rows, grown

StatusArray = npt.NDArray[np.int8]


_INT64 = range(-(1 << 63), 1 << 63)


def check_numbers(spec: TaskSpec) -> None:
    """OverflowError if a number of the pod does not fit into its column. Called before anything is written: a pod that fails half-way
    through would leave figures behind that no other pod gets right again."""
    if spec.priority not in _INT64 or spec.pod_priority not in _INT64:
        raise OverflowError("a priority of the pod does not fit into 64 bits")


class TaskTable:
    def __init__(self) -> None:
        self.rows = Rows()
        self.specs: list[TaskSpec | None] = []
        self.status: StatusArray = np.zeros(8, dtype=np.int8)
        self.alive: BoolArray = np.zeros(8, dtype=bool)
        self.shape: RowArray = np.zeros(8, dtype=np.int32)
        self.job: RowArray = np.full(8, -1, dtype=np.int32)
        self.node: RowArray = np.full(8, -1, dtype=np.int32)
        self.priority: IntArray = np.zeros(8, dtype=np.int64)
        self.labels: RowArray = np.zeros(8, dtype=np.int32)
        """Number of the pod's (namespace, label set) pair in `identities`."""
        self.created: FloatArray = np.zeros(8, dtype=np.float64)
        self.started: FloatArray = np.zeros(8, dtype=np.float64)
        """When the pod began to run; infinite before that."""
        self.gated: BoolArray = np.zeros(8, dtype=bool)
        """The pod has scheduling gates."""
        self.preemptable: BoolArray = np.zeros(8, dtype=bool)
        self.pod_priority: IntArray = np.zeros(8, dtype=np.int64)
        """spec.priority of the pod, which kube-scheduler's preemption compares."""
        self.nominated: BoolArray = np.zeros(8, dtype=bool)
        """The pod was promised a node."""
        self.in_part: BoolArray = np.zeros(8, dtype=bool)
        """The pod names its sub-group."""
        self.index: IntArray = np.zeros(8, dtype=np.int64)
        """The number that the pod's name ends in, -1 for none."""
        self.touched: set[int] = set()
        """Rows written since the last snapshot (see `incremental_copy`)."""

    def add(self, spec: TaskSpec, *, shape: int, job: int, node: int, labels: int) -> int:
        row = self.rows.assign(spec.uid)
        if row == len(self.specs):
            self.specs.append(spec)
            if row >= self.status.shape[0]:
                for name in (*COLUMNS, "node"):
                    setattr(self, name, grown(getattr(self, name), row + 1))
        self.alive[row] = True
        self.shape[row] = shape
        self.job[row] = job
        self.labels[row] = labels
        self.index[row] = pod_index(spec.name)
        self.restate(row, spec, node)
        return row

    def add_all(self, specs: Sequence[TaskSpec], *, shapes: RowArray, jobs: RowArray, nodes: RowArray, labels: RowArray) -> RowArray:
        """Add many pods, in their order. The rows are those that `add` would give."""
        rows = np.fromiter(map(self.rows.assign, (spec.uid for spec in specs)), dtype=np.int32, count=len(specs))
        for row, spec in zip(rows.tolist(), specs):
            if row == len(self.specs):
                self.specs.append(spec)
        if len(self.specs) > self.status.shape[0]:
            for name in (*COLUMNS, "node"):
                setattr(self, name, grown(getattr(self, name), len(self.specs)))
        self.alive[rows] = True
        self.shape[rows] = shapes
        self.job[rows] = jobs
        self.labels[rows] = labels
        self.index[rows] = [pod_index(spec.name) for spec in specs]
        self.restate_all(rows, specs, nodes)
        return rows

    def restate_all(self, rows: RowArray, specs: Sequence[TaskSpec], nodes: RowArray) -> None:
        """As `restate` for many pods."""
        for row, spec in zip(rows.tolist(), specs):
            self.specs[row] = spec
        self.node[rows] = nodes
        self.status[rows] = [spec.status for spec in specs]
        self.priority[rows] = [spec.priority for spec in specs]
        self.created[rows] = [spec.created for spec in specs]
        self.started[rows] = [np.inf if spec.started is None else spec.started for spec in specs]
        self.gated[rows] = [bool(spec.gates) for spec in specs]
        self.preemptable[rows] = [spec.preemptable for spec in specs]
        self.pod_priority[rows] = [spec.pod_priority for spec in specs]
        self.nominated[rows] = [bool(spec.nominated_node) for spec in specs]
        self.in_part[rows] = [bool(spec.sub_group) for spec in specs]
        self.touched.update(rows.tolist())

    def restate(self, row: int, spec: TaskSpec, node: int) -> None:
        """A newer version of the same pod: same shape, job, name and labels."""
        self.specs[row] = spec
        self.status[row] = spec.status
        self.node[row] = node
        self.priority[row] = spec.priority
        self.created[row] = spec.created
        self.started[row] = np.inf if spec.started is None else spec.started
        self.gated[row] = bool(spec.gates)
        self.preemptable[row] = spec.preemptable
        self.pod_priority[row] = spec.pod_priority
        self.nominated[row] = bool(spec.nominated_node)
        self.in_part[row] = bool(spec.sub_group)
        self.touched.add(row)

    def drop(self, uid: str) -> None:
        row = self.rows.give_back(uid)
        self.specs[row] = None
        self.alive[row] = False
        self.job[row] = self.node[row] = -1
        self.touched.add(row)


COLUMNS = (
    "status",
    "alive",
    "shape",
    "job",
    "priority",
    "labels",
    "created",
    "started",
    "gated",
    "preemptable",
    "pod_priority",
    "nominated",
    "in_part",
    "index",
)
"""Columns that a snapshot copies as they are. `node` is copied apart, because a snapshot numbers nodes in another order."""


def pod_index(name: str) -> int:
    """The number at the end of a name of at least three parts, else -1.

    >>> pod_index("job-worker-7"), pod_index("web-7"), pod_index("a-b-c")
    (7, -1, -1)
    """
    parts = name.rsplit("-", 2)
    last = parts[-1]
    return int(last) if len(parts) == 3 and last.isascii() and last.isdigit() and len(last) < 18 else -1
