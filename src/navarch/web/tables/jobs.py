"""One array a job, made again for the jobs that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from navarch.engine.close import phase_for
from navarch.engine.semantics import Semantics
from navarch.model.cluster import Cluster
from navarch.model.spec import Labels, TaskSpec
from navarch.model.status import TaskStatus
from navarch.views.jobs import FindPod, JobRow, job_row
from navarch.views.prospects import Prospect

S = TaskStatus
COLUMNS: Final = (
    "id",
    "namespace",
    "name",
    "kind",
    "queue",
    "state",
    "phase",
    "minMember",
    "pending",
    "running",
    "terminating",
    "succeeded",
    "failed",
    "priority",
    "created",
    "gpus",
    "place",
    "of",
    "start",
    "startUnknown",
    "cause",
    "never",
)
NUMBER: Final = {name: number for number, name in enumerate(COLUMNS)}
ID, NAMESPACE, NAME, QUEUE, STATE, CAUSE = (NUMBER[name] for name in ("id", "namespace", "name", "queue", "state", "cause"))
STATES: Final = ("waiting", "running", "terminating", "succeeded", "failed", "empty")
Row = tuple[Any, ...]
NOT_FORECAST: Final = "not estimated yet"


@dataclass(frozen=True)
class Starts:
    """Key of a job -> moments by which it starts with a chance of 50 % and of 90 %, or why that is not known. `reason`: of the
    others."""

    known: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    reason: str = NOT_FORECAST

    def why_unknown(self, key: str) -> str:
        return "" if key in self.known else self.unknown.get(key, self.reason)


class JobTable:
    """`rows` by key, in no order."""

    def __init__(self, cluster: Cluster, semantics: Semantics, find_pod: FindPod, served: frozenset[str] | None) -> None:
        self.rows: dict[str, Row] = {}
        self.waiting: set[str] = set()
        """Keys of rows in the state `waiting`."""
        self.states: Counter[str] = Counter()
        """State -> how many rows."""
        self.prospects: Mapping[str, Prospect] = {}
        self.starts = Starts()
        self.semantics = semantics
        self._cluster, self._find_pod, self._served = cluster, find_pod, served

    def update(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Make these rows again. Returns the keys of those that differ now, and of those that are gone."""
        changed, removed = [], []
        for key in keys:
            row = self._row(key)
            before = self.rows.get(key)
            if row == before:
                continue
            if before is not None:
                self.states[before[STATE]] -= 1
            self.waiting.discard(key)
            if row is None:
                del self.rows[key]
                removed.append(key)
                continue
            self.rows[key] = row
            self.states[row[STATE]] += 1
            if row[STATE] == "waiting":
                self.waiting.add(key)
            changed.append(key)
        return changed, removed

    def set_prospects(self, found: Mapping[str, Prospect]) -> set[str]:
        """Returns the keys of jobs with another prospect than before."""
        before, self.prospects = self.prospects, found
        return {key for key in before.keys() | found.keys() if before.get(key) != found.get(key)}

    def set_starts(self, found: Starts) -> set[str]:
        """Returns the keys of waiting jobs with another start than before."""
        before, self.starts = self.starts, found
        return {
            key
            for key in self.waiting
            if before.known.get(key) != found.known.get(key) or before.why_unknown(key) != found.why_unknown(key)
        }

    def _row(self, key: str) -> Row | None:
        number = self._cluster.jobs.rows.of.get(key)
        if number is None:
            return None
        shown = self.shown(key, number)
        return None if shown is None else self._as_array(shown, number)

    def shown(self, key: str, number: int) -> JobRow | None:
        """The job as `navarch jobs` shows it."""
        table = self._cluster.jobs
        spec, counts = table.specs[number], table.counts[number].tolist()
        leaving = sum(bool(task.node) for task in self.tasks(key) if task.status == S.RELEASING) if counts[S.RELEASING] else 0
        before, needed = (spec.phase, spec.min_member) if spec is not None else ("", 0)
        phase = phase_for(counts, leaving, needed, before, self.semantics)
        return job_row(self._cluster, key, number, phase, self._find_pod, self._served, self.prospects.get(key))

    def _as_array(self, row: JobRow, number: int) -> Row:
        prospect, waits, state = row.prospect, row.pending > 0, state_of(row)
        starts = state == "waiting" and prospect is not None and not prospect.never
        return (
            row.key,
            row.namespace,
            row.name,
            row.kind,
            row.queue,
            state,
            row.phase,
            row.min_member,
            row.pending,
            row.running,
            row.leaving,
            row.succeeded,
            row.failed,
            row.priority,
            row.created or None,
            row.gpus,
            prospect.place if prospect is not None and waits else None,
            prospect.of if prospect is not None and waits else None,
            self.starts.known.get(row.key) if starts else None,
            self.starts.why_unknown(row.key) if starts else "",
            row.why,
            prospect.never if prospect is not None and waits else "",
        )

    def tasks(self, key: str) -> list[TaskSpec]:
        """The pods of a job, by name."""
        number = self._cluster.jobs.rows.of.get(key)
        if number is None:
            return []
        found = (self._cluster.tasks.specs[task] for task in self._cluster.jobs.tasks[number])
        return sorted((task for task in found if task is not None), key=lambda task: task.name)

    def labels(self, key: str) -> list[Labels]:
        """Those of its group and of its pods."""
        number = self._cluster.jobs.rows.of.get(key)
        spec = self._cluster.jobs.specs[number] if number is not None else None
        own = [spec.labels] if spec is not None and spec.labels else []
        return own + [task.labels for task in self.tasks(key) if task.labels]


def state_of(row: JobRow) -> str:
    if row.pending and (row.running < row.min_member or not row.running):
        return "waiting"
    if row.running:
        return "running"
    if row.leaving:
        return "terminating"
    if row.failed:
        return "failed"
    return "succeeded" if row.succeeded else "empty"
