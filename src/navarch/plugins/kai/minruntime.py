"""Minimum run times: jobs that started a short time ago are protected from preemption and reclaim, by queue.

A protected job is no victim, except an elastic job that keeps its minimum. For reclaim the setting of the victim's queue counts, at
the level just below the common ancestor of both queues, or of the nearest ancestor that has one.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.arguments import Argument
from navarch.engine.gangs.job_times import JobTimes
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.gang_protocols import Scenario
from navarch.engine.queue import Queue
from navarch.engine.reasons import Event, Reason
from navarch.model.status import TaskStatus
from navarch.model.timestamps import rfc3339


class MinRuntime(Plugin):
    """Protects jobs that started a short while ago from being evicted"""

    name = "minruntime"
    arguments = (
        Argument("defaultReclaimMinRuntime", "duration", 0.0, "how long a job runs before other queues may take from it"),
        Argument("defaultPreemptMinRuntime", "duration", 0.0, "how long a job runs before jobs of its queue may preempt it"),
        Argument("reclaimResolveMethod", "str", "lca", "whose guard counts for reclaim", ("lca", "queue")),
    )

    def open(self) -> None:
        self.job_times = self.session.shared(JobTimes)
        self._guards: dict[tuple[str, str], float] = {}
        self._spared: dict[int, tuple[Job, str, float]] = {}
        """Row of a job that looked for victims -> the job, the protected one that may go first, and when that is."""

    def close(self) -> None:
        for job, victim, until in self._spared.values():
            if job.counts[TaskStatus.PENDING] and not job.tree.active:
                text = f"Workloads that could be evicted for it are within their minimal run time, {victim} until {rfc3339(until)}"
                figures: dict[str, int | float | str] = {"victim": victim, "until": until}
                job.refuse(Reason("VictimsProtected", text, figures=figures, undone_by=(Event.TIME_PASSED,)))

    def reclaim_victim(self, job: Job, tasks: Sequence[int], victim: Job) -> bool:
        return self._may_go(job, victim, self._reclaim_guard(job.queue, victim.queue))

    def preempt_victim(self, job: Job, victim: Job) -> bool:
        return self._may_go(job, victim, self._preempt_guard(victim.queue))

    def protected_until(self, job: Job, victim: Job) -> float | None:
        """When the guard of a victim ends; None: it has none against this job, or it is over."""
        same = job.queue is victim.queue
        guard = self._preempt_guard(victim.queue) if same else self._reclaim_guard(job.queue, victim.queue)
        return (self.job_times.started(victim) or 0.0) + guard if self._protected(victim, guard) else None

    def _may_go(self, job: Job, victim: Job, guard: float) -> bool:
        if not self._protected(victim, guard) or victim.tree.is_elastic:
            return True
        until = (self.job_times.started(victim) or 0.0) + guard
        first = self._spared.get(job.row)
        if first is None or (until, victim.key) < (first[2], first[1]):
            self._spared[job.row] = job, victim.key, until
        return False

    def reclaim_scenario(self, scenario: Scenario) -> bool:
        queue = scenario.job.queue
        return all(
            self._keeps_minimum(victim, tasks)
            for victim, tasks in scenario.victims
            if self._protected(victim, self._reclaim_guard(queue, victim.queue))
        )

    def preempt_scenario(self, scenario: Scenario) -> bool:
        return all(
            self._keeps_minimum(victim, tasks)
            for victim, tasks in scenario.victims
            if self._protected(victim, self._preempt_guard(victim.queue))
        )

    def _protected(self, victim: Job, guard: float) -> bool:
        if guard <= 0:
            return False
        started = self.job_times.started(victim)
        return started is not None and started + guard > self.session.now

    def _keeps_minimum(self, victim: Job, tasks: Sequence[int]) -> bool:
        """Whether each part that loses a task keeps its minimum. A task that is named twice counts twice."""
        tree = victim.tree
        gone = [(leaf, sum(tasks.count(task) for task in leaf.tasks)) for leaf in tree.leaves]
        return all(tree.counts_of(leaf).used - lost >= tree.required(leaf) for leaf, lost in gone if lost)

    def _preempt_guard(self, queue: Queue) -> float:
        kept = self._guards.get(("", queue.name))
        if kept is None:
            kept = self._guards["", queue.name] = self._find_preempt_guard(queue)
        return kept

    def _reclaim_guard(self, queue: Queue, victim: Queue) -> float:
        kept = self._guards.get((queue.name, victim.name))
        if kept is None:
            kept = self._guards[queue.name, victim.name] = self._find_reclaim_guard(queue, victim)
        return kept

    def _find_preempt_guard(self, queue: Queue) -> float:
        for each in (queue, *queue.ancestors):
            if each.spec.preempt_min_runtime is not None:
                return each.spec.preempt_min_runtime
        return self.given.number("defaultPreemptMinRuntime")

    def _find_reclaim_guard(self, queue: Queue, victim: Queue) -> float:
        way = [victim, *victim.ancestors]
        if self.given.text("reclaimResolveMethod") == "lca":
            ours = {each.name for each in (queue, *queue.ancestors)}
            below = [each for each in way if each.name not in ours]
            common = way[len(below) :]
            if below:
                way = below[-1:] + common
        for each in way:
            if each.spec.reclaim_min_runtime is not None:
                return each.spec.reclaim_min_runtime
        return self.given.number("defaultReclaimMinRuntime")
