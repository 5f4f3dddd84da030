"""TDM, time-division multiplexing: nodes that belong to batch work only at certain times of the day.

A node labelled `volcano.sh/revocable-zone` is open to revocable tasks, and preferred by them, while the window of its zone is open
(`tdm.revocable-zone.NAME: "20:00-06:00"`, times of day in UTC; an end at or before the start is on the next day). When the window
closes, preemptable tasks there are named as victims for `shuffle`, once a period and only as many of a job as its own budget
allows. On other nodes, a job that is not preemptable may evict preemptable tasks.

The time is that of the session. The time of the last evictions is kept in the cluster's memo, so a restarted scheduler starts a new
period; the same time asked again gives the same answer.

Rules are evaluated once for each zone and looked up by node. The zone of each node is read again only when node labels change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.engine.points.protocols import Vote
from navarch.model.label_syntax import parse_count
from navarch.model.resources import BoolArray, FloatArray
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus
from navarch.plugins.predicates.nodes.properties import node_properties

ZONE = "volcano.sh/revocable-zone"
MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
MIN_AVAILABLE = "volcano.sh/jdb-min-available"
SCORE = 100.0
DAY = 86400
_WINDOW = re.compile(r"\s*([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)\s*")
_LAST = ("tdm", "victims were last named at")


class Tdm(Plugin):
    """Shares nodes between services and batch work by the time of day"""

    name = "tdm"
    turns_in_one_step = True
    arguments = (
        Argument("tdm.revocable-zone.*", "str", None, 'the window of a zone, "HH:MM-HH:MM" in UTC'),
        Argument("tdm.evict.period", "duration", 60.0, "how often a closed zone is cleared"),
    )

    def open(self) -> None:
        session = self.session
        windows = {zone: str(text) for zone, text in self.given.matching("tdm.revocable-zone.*").items()}
        self.zones: dict[str, bool] = {}
        """Zone -> whether it is open now. A zone whose window cannot be read is neither entered nor cleared."""
        for zone, text in windows.items():
            opened = is_open(text, session.now)
            if opened is None:
                message = f'argument tdm.revocable-zone.{zone}: found {text!r}, expected "HH:MM-HH:MM"; the zone stays closed'
                session.record.warnings.append(message)
            else:
                self.zones[zone] = opened
        column = node_properties(session.snapshot).label(ZONE)
        self.named = [*column.values, ""]
        """Zones that nodes name; the last, no zone, is that of nodes without the label."""
        self.zone_of_node = column.codes
        """By node: its zone's place among the named."""

    def node_filters(self) -> list[NodeFilter]:
        return [ZoneOpen(self)] if any(self.named) else []

    def node_scorers(self) -> list[NodeScorer]:
        return [ZonePreferred(self)] if any(self.zones.get(zone) for zone in self.named) else []

    # jobs

    def job_order(self, job: Job) -> OrderKey:
        return job.spec.preemptable

    def job_pipelined(self, job: Job) -> Vote:
        occupied = job.ready_count + job.counts[TaskStatus.PIPELINED]
        return Vote.PERMIT if occupied >= job.min_member else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return not job.spec.preemptable and job.counts[TaskStatus.PENDING] > 0

    # victims

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        spec = self.session.task(preemptor)
        if spec.preemptable or is_revocable(spec):
            return []
        return self._within_budgets(task for task in candidates if not self._zone_of(task))

    def victim_tasks(self, candidates: Sequence[int]) -> list[int] | None:
        memo, now = self.session.snapshot.memo, self.session.now
        last = memo.get(_LAST)
        period = self.given.number("tdm.evict.period")
        if isinstance(last, float) and last < now < last + period:
            return None
        memo[_LAST] = now
        closed = {zone for zone, opened in self.zones.items() if not opened}
        return self._within_budgets(task for task in candidates if self._zone_of(task) in closed)

    def _zone_of(self, task: int) -> str:
        node = int(self.session.node[task])
        return self.named[self.zone_of_node[node]] if node >= 0 else ""

    def _within_budgets(self, tasks: Iterable[int]) -> list[int]:
        """Of the preemptable running tasks, job by job, as many as the job's budget lets go."""
        session, taken, out = self.session, dict[int, int](), []
        for task in tasks:
            job = session.job_of(task)
            if job is None or session.status[task] != TaskStatus.RUNNING or not session.task(task).preemptable:
                continue
            if taken.get(job.row, 0) < most_evictions(job):
                taken[job.row] = taken.get(job.row, 0) + 1
                out.append(task)
        return out


def is_revocable(spec: TaskSpec) -> bool:
    return any(name == ZONE for name, _ in spec.shape.hints)


def is_open(window: str, now: float) -> bool | None:
    """Whether a window holds at this moment; None if it is no window.

    >>> is_open("22:00-06:00", 3 * 3600), is_open("10:00-12:00", 12 * 3600), is_open("10-12", 0)
    (True, True, None)
    """
    parts = _WINDOW.fullmatch(window)
    if parts is None:
        return None
    hours, minutes, end_hours, end_minutes = (int(part) for part in parts.groups())
    start, end = 60 * (60 * hours + minutes), 60 * (60 * end_hours + end_minutes)
    at = math.floor(now) % DAY
    if start < end:
        return start <= at <= end
    return at >= start or at <= end


def most_evictions(job: Job) -> int:
    """How many running pods the job can lose at once, by its annotations; one without them."""
    annotations, counts = job.spec.annotations, job.counts
    running, tasks = counts[TaskStatus.RUNNING], len(job.tasks)
    if MIN_AVAILABLE in annotations:
        return max(running - _count(annotations[MIN_AVAILABLE], tasks), 0)
    if MAX_UNAVAILABLE in annotations:
        missing = tasks - counts[TaskStatus.SUCCEEDED] - counts[TaskStatus.FAILED] - running
        return max(_count(annotations[MAX_UNAVAILABLE], tasks) - missing, 0)
    return 1


def _count(text: str, tasks: int) -> int:
    """A number of pods, or a percentage of them rounded up; 0 if it is neither."""
    number = parse_count(text.strip().removesuffix("%"))
    if number is None:
        return 0
    return -(-tasks * number // 100) if "%" in text else number


class ZoneOpen(NodeFilter):
    name = "tdm"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, plugin: Tdm) -> None:
        self.plugin = plugin
        named, of_node = plugin.named, plugin.zone_of_node
        self.in_zone: BoolArray = np.array([bool(zone) for zone in named], dtype=bool)[of_node]
        self.open: BoolArray = np.array([plugin.zones.get(zone, False) for zone in named], dtype=bool)[of_node]

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        revocable = any(name == ZONE for name, _ in task.shape.hints)
        mask: BoolArray = ~self.in_zone[at.rows] | (self.open[at.rows] & revocable)
        return mask

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        refused = ~self.mask(task, at)
        opened = self.open[at.rows]
        yield Refusal("the node's revocable zone is closed now", refused & ~opened, True, "RevocableZone")
        yield Refusal("the task is not allowed on revocable nodes", refused & opened, True, "RevocableZone")

    def identity(self) -> Hashable:
        return (super().identity(), tuple(sorted(self.plugin.zones.items())))


class ZonePreferred(NodeScorer):
    """Revocable tasks prefer the nodes of open zones."""

    name = "tdm"
    scope = Scope.STATIC
    reads_only_node_rules = True

    def __init__(self, plugin: Tdm) -> None:
        self.plugin = plugin
        self.scores: FloatArray = np.array([SCORE if plugin.zones.get(zone) else 0.0 for zone in plugin.named])[plugin.zone_of_node]

    def applies(self, task: TaskClass) -> bool:
        return any(name == ZONE for name, _ in task.shape.hints)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        column: FloatArray = self.scores[at.rows]
        return column

    def identity(self) -> Hashable:
        return (super().identity(), tuple(sorted(self.plugin.zones.items())))
