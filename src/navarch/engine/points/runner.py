"""The plugin runner: finds the plugins that implement an extension point and combines their answers.

Each point is a protocol (`protocols`, `gang_protocols`). `implementing(QueueOrder)` gives the plugins that implement it, typed, in
policy order. The rules for combining answers are in `combine`. The runner adds the last tie-break (age, then name), so that
every order is total.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cmp_to_key
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from navarch.engine.containment.guarded_plugins import GUARDED_POINTS, guarded
from navarch.engine.gangs.gang_tree import GangTree, Part
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points import combine
from navarch.engine.points.gang_protocols import PartOrder
from navarch.engine.points.order_key import OrderKey
from navarch.engine.points.profiles import THE_FIRST
from navarch.engine.points.protocols import (
    POINTS,
    PREFERENCES,
    Allocatable,
    HyperNodeGradient,
    HyperNodeOrder,
    JobEnqueueable,
    JobEnqueued,
    JobMissing,
    JobOrder,
    JobPipelined,
    JobReady,
    JobStarving,
    JobTurn,
    JobValid,
    Overused,
    Preemptable,
    Preemptive,
    PrePredicate,
    Purpose,
    QueueOrder,
    Reclaimable,
    SubJobMissing,
    SubJobOrder,
    SubJobPipelined,
    SubJobReady,
    TaskOrder,
    UnifiedEvictable,
    VictimQueueOrder,
    VictimTasks,
)
from navarch.engine.queue import Queue
from navarch.engine.reasons import Event, Reason
from navarch.engine.semantics import Semantics
from navarch.model.snapshot import Snapshot
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.policy.values import PluginOption, Policy
    from navarch.engine.registry import Registry

PREFERENCE_POINTS = [POINTS[name] for name in sorted(PREFERENCES)]
REFUSING_POINTS = [POINTS[name] for name in sorted(GUARDED_POINTS)]
NO_QUEUE_ROOM = Reason("QueueLimit", "the queue has no room for the task", undone_by=(Event.POD_REMOVED, Event.QUEUE_CHANGED))
_NONE: Mapping[str, Reason | None] = MappingProxyType({})
P = TypeVar("P")


class PluginRunner:
    policy: Policy
    semantics: Semantics
    snapshot: Snapshot
    stopwatch: Callable[[], float]
    """Seconds of some clock, for timings only; decisions never read it."""
    timings: dict[str, float]

    def open_plugins(
        self, registry: Registry, without_preferences: Collection[str] = (), failed: Mapping[str, Reason | None] = _NONE
    ) -> None:
        """`without_preferences`: plugins whose orders and scores failed, so that this cycle does without them. `failed`: plugins that
        refuse where they fail, or in everything for a reason (`containment/guarded_plugins.py`)."""

        def left(name: str, points: list[type]) -> list[type]:
            """The points at which the plugin is asked in this cycle."""
            if name in without_preferences:
                points = [point for point in points if point not in PREFERENCE_POINTS]
            return [point for point in points if point in REFUSING_POINTS] if name in failed else points

        def make(kind: type[Plugin], option: PluginOption, *, guard: bool) -> Plugin:
            if not guard and kind.name not in failed:
                return kind(self, option)  # type: ignore[arg-type]
            return guarded(kind, failed.get(kind.name))(self, option)  # type: ignore[arg-type]

        self.plugins: list[Plugin] = []
        selected = self.selected = registry.select_plugins(self.policy)
        self._tiers: defaultdict[type, list[list[Any]]] = defaultdict(list)
        """Point -> the plugins that implement it, tier by tier."""
        self._plugins: defaultdict[type, list[Any]] = defaultdict(list)
        """Point -> the same plugins in one list. `open_plugins` puts a plugin only under protocols that its class implements."""
        for number, tier in enumerate(selected.tiers):
            for kind, option, points in tier:
                points = left(kind.name, points)
                plugin = make(kind, option, guard=kind.name in without_preferences and not points)
                self.plugins.append(plugin)
                for point in points:
                    self._plugins[point].append(plugin)
                    tiers = self._tiers[point]
                    while len(tiers) <= number:
                        tiers.append([])
                    tiers[number].append(plugin)
        self.plugins += [make(kind, option, guard=kind.name in without_preferences) for kind, option, _ in selected.added]
        self._further = {
            name: [(number, left(self.plugins[number].name, points)) for number, points in profile]
            for name, profile in selected.further.items()
        }
        for plugin in self.plugins:
            plugin.before_open()
        for plugin in self.plugins:
            started = self.stopwatch()
            plugin.open()
            self.timings[f"{plugin.name} (open)"] = self.stopwatch() - started

    def implementing(self, point: type[P]) -> list[P]:
        """The plugins that implement an extension point and are switched on there, in policy order."""
        return self._plugins[point]

    def in_tiers(self, point: type[P]) -> list[list[P]]:
        """The same plugins, tier by tier. A tier without such a plugin may be an empty list."""
        return self._tiers[point]

    def implementing_by_profile(self, point: type[P]) -> dict[str, list[P]]:
        """Profile -> the plugins that implement a point in that profile, in policy order."""
        further: dict[str, list[Any]] = {
            name: [self.plugins[number] for number, points in profile if point in points] for name, profile in self._further.items()
        }
        return {THE_FIRST: self.implementing(point), **further}

    def stop_asking(self, plugin: Plugin, *points: type) -> None:
        """Remove a plugin from these points for this session. A plugin calls it when its own configuration or the cluster leaves
        it without an answer there (an invalid tree of queues, for example)."""
        for point in points:
            for tier in self._tiers[point]:
                if plugin in tier:
                    tier.remove(plugin)
            self._plugins[point] = [x for x in self._plugins[point] if x is not plugin]

    # orders

    def queue_order(self, left: Queue, right: Queue) -> int:
        return self.queue_opinion(left, right) or _compare((left.spec.created, left.name), (right.spec.created, right.name))

    def queue_opinion(self, left: Queue, right: Queue) -> int:
        """The plugins' order alone: 0 where none of them tells the queues apart."""
        return combine.first_opinion(p.queue_order(left, right) for p in self.implementing(QueueOrder))

    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        plugins = self.implementing(VictimQueueOrder)
        opinion = combine.first_opinion(p.victim_queue_order(left, right, preemptor) for p in plugins)
        return opinion or -self.queue_order(left, right)

    def job_order_by_plugins(self, job: Job) -> OrderKey:
        return tuple(p.job_order(job) for p in self.implementing(JobOrder))

    def job_order(self, job: Job) -> OrderKey:
        return (*(p.job_order(job) for p in self.implementing(JobOrder)), job.spec.created, job.key)

    def job_orders(self, jobs: Sequence[Job]) -> list[OrderKey]:
        """`job_order` of each of these jobs."""
        columns = [list(map(plugin.job_order, jobs)) for plugin in self.implementing(JobOrder)]
        return list(zip(*columns, [job.spec.created for job in jobs], [job.key for job in jobs]))

    def sub_job_order(self, sub_job: SubJob) -> OrderKey:
        return (*(p.sub_job_order(sub_job) for p in self.implementing(SubJobOrder)), sub_job.match_index, sub_job.name)

    def sorted_tasks(self, tasks: Sequence[int], *, reverse: bool = False) -> list[int]:
        """Tasks by the plugins' order, then by the number their names end in, then by age and UID."""
        rows = list(tasks)
        if len(rows) < 2:
            return rows
        columns = self.snapshot.tasks
        numbers = columns.index[rows].tolist()
        by_plugins = [list(map(plugin.task_order, rows)) for plugin in self.implementing(TaskOrder)]
        if min(numbers) < 0 <= max(numbers):  # only some names end in a number: pairs decide how to compare
            firsts: Iterable[Any] = zip(*by_plugins) if by_plugins else [()] * len(rows)
            keys = list(zip(firsts, numbers, columns.created[rows].tolist(), (self.task(t).uid for t in rows)))
            compare = cmp_to_key(_compare_tasks)
            order = sorted(range(len(rows)), key=lambda i: compare(keys[i]))
        else:
            # What all tasks share does not order them. Where each has a number of its own, as the pods of a gang have, nothing after
            # the number does.
            telling = [column for column in (*by_plugins, numbers) if column.count(column[0]) != len(rows)]
            if len(set(numbers)) < len(rows):
                telling += [columns.created[rows].tolist(), [self.task(t).uid for t in rows]]
            by: Sequence[Any] = telling[0] if len(telling) == 1 else list(zip(*telling))
            order = sorted(range(len(rows)), key=by.__getitem__)
        return [rows[i] for i in (reversed(order) if reverse else order)]

    def tasks_by_age(self, tasks: Sequence[int]) -> list[int]:
        """Tasks by the plugins' order, then by age and UID: for rules that do not read numbers out of names."""
        if len(tasks) < 2:
            return list(tasks)
        plugins, created = self.implementing(TaskOrder), self.snapshot.tasks.created
        return sorted(tasks, key=lambda t: (*(p.task_order(t) for p in plugins), float(created[t]), self.task(t).uid))

    def parts_in_order(self, tree: GangTree, parts: Sequence[Part]) -> list[Part]:
        """Parts of a job by the plugins' order, then by name."""
        plugins = self.implementing(PartOrder)
        return sorted(parts, key=lambda part: (*(p.part_order(tree, part) for p in plugins), part.name))

    def compare_tasks(self, left: int, right: int) -> int:
        plugins, columns = self.implementing(TaskOrder), self.snapshot.tasks
        keys = [
            (
                tuple(p.task_order(t) for p in plugins),
                int(columns.index[t]),
                float(columns.created[t]),
                self.task(t).uid,
            )
            for t in (left, right)
        ]
        return _compare_tasks(keys[0], keys[1])

    # jobs

    def job_valid(self, job: Job) -> Reason | None:
        for plugin in self.implementing(JobValid):
            reason = plugin.job_valid(job)
            if reason is not None:
                return reason
        return None

    def job_enqueueable(self, job: Job) -> Reason | None:
        answer = combine.votes(self.in_tiers(JobEnqueueable), lambda p: p.job_enqueueable(job))
        if isinstance(answer, Reason):
            return answer
        return None if answer else Reason("NotAdmitted", "the job was not admitted to its queue", undone_by=(Event.QUEUE_CHANGED,))

    def job_enqueued(self, job: Job) -> None:
        for plugin in self.implementing(JobEnqueued):
            plugin.job_enqueued(job)

    def job_ready(self, job: Job) -> bool:
        return all(p.job_ready(job) for p in self.implementing(JobReady))

    def job_missing(self, job: Job) -> int:
        """How many tasks may be placed before readiness has to be asked again: at least one."""
        return max((p.job_missing(job) for p in self.implementing(JobMissing)), default=1)

    def job_pipelined(self, job: Job) -> bool:
        return combine.votes(self.in_tiers(JobPipelined), lambda p: p.job_pipelined(job)) is True

    def job_starving(self, job: Job) -> bool:
        if self.semantics.starving_is_pending:
            return job.counts[TaskStatus.PENDING] > 0
        return combine.starving(self.in_tiers(JobStarving), lambda p: p.job_starving(job))

    def turn_refusal(self, job: Job) -> Reason | None:
        for plugin in self.implementing(JobTurn):
            reason = plugin.turn_refusal(job)
            if reason is not None:
                return reason
        return None

    def turn_failed(self, job: Job) -> None:
        for plugin in self.implementing(JobTurn):
            plugin.turn_failed(job)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        if not sub_job.job.spec.sub_groups:
            return self.job_ready(sub_job.job)
        return all(p.sub_job_ready(sub_job) for p in self.implementing(SubJobReady))

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        if not sub_job.job.spec.sub_groups:
            return self.job_pipelined(sub_job.job)
        return combine.votes(self.in_tiers(SubJobPipelined), lambda p: p.sub_job_pipelined(sub_job)) is True

    def sub_job_missing(self, sub_job: SubJob) -> int:
        """How many tasks of a sub-job may be placed before its readiness has to be asked again: at least one."""
        if not sub_job.job.spec.sub_groups:
            return self.job_missing(sub_job.job)
        return max((p.sub_job_missing(sub_job) for p in self.implementing(SubJobMissing)), default=1)

    # domains

    def hyper_node_scores(self, sub_job: SubJob, domains: Sequence[int]) -> list[float]:
        """How good each of these domains is for the sub-job, all plugins together."""
        scores = [0.0] * len(domains)
        for plugin in self.implementing(HyperNodeOrder):
            scores = [sum(pair) for pair in zip(scores, plugin.hyper_node_order(sub_job, domains))]
        return scores

    def gradient_for_job(self, job: Job, root: int, purpose: Purpose) -> list[list[int]]:
        for plugin in self.implementing(HyperNodeGradient):
            return plugin.hyper_node_gradient_for_job(job, root, purpose)
        return [[root]]

    def gradient_for_sub_job(self, sub_job: SubJob, root: int, purpose: Purpose) -> list[list[int]]:
        for plugin in self.implementing(HyperNodeGradient):
            return plugin.hyper_node_gradient_for_sub_job(sub_job, root, purpose)
        return [[root]]

    # queues

    def overused(self, queue: Queue) -> Reason | None:
        for plugin in self.implementing(Overused):
            reason = plugin.overused(queue)
            if reason is not None:
                return reason
        return None

    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> tuple[int, Reason | None]:
        """How many of `count` tasks the queue may take on, and why not more if it is none."""
        for plugin in self.implementing(Allocatable):
            answer = plugin.allocatable(queue, task, count)
            if isinstance(answer, Reason):
                return 0, answer
            count = min(count, answer)
            if not count:
                return 0, NO_QUEUE_ROOM
        return count, None

    def preemptive(self, queue: Queue, task: TaskClass) -> Reason | None:
        for plugin in self.implementing(Preemptive):
            reason = plugin.preemptive(queue, task)
            if reason is not None:
                return reason
        return None

    # victims

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int]:
        tiers, candidates = self.in_tiers(Preemptable), self.evictable(candidates)
        return combine.victims(tiers, lambda p: p.preemptable(preemptor, candidates), candidates, self.semantics)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int]:
        tiers, candidates = self.in_tiers(Reclaimable), self.evictable(candidates)
        return combine.victims(tiers, lambda p: p.reclaimable(reclaimer, candidates), candidates, self.semantics)

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int]:
        tiers, candidates = self.in_tiers(UnifiedEvictable), self.evictable(candidates)
        return combine.victims(tiers, lambda p: p.unified_evictable(job, candidates, reclaim=reclaim), candidates, self.semantics)

    def victim_tasks(self, candidates: Sequence[int]) -> list[int]:
        candidates = self.evictable(candidates)
        return combine.united(self.in_tiers(VictimTasks), lambda p: p.victim_tasks(candidates))

    def pre_predicate(self, task: TaskClass) -> Reason | None:
        for plugin in self.implementing(PrePredicate):
            reason = plugin.pre_predicate(task)
            if reason is not None:
                return reason
        return None

    if TYPE_CHECKING:

        def task(self, row: int) -> TaskSpec: ...

        def evictable(self, candidates: Sequence[int]) -> Sequence[int]: ...


def _compare(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _compare_tasks(left: Any, right: Any) -> int:
    if left[0] != right[0]:
        return _compare(left[0], right[0])
    if left[1] >= 0 and right[1] >= 0 and left[1] != right[1]:
        return _compare(left[1], right[1])
    return _compare(left[2:], right[2:])
