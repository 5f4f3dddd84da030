"""Forecasts of clusters where thousands of jobs run: ends are taken in steps, over the caller's own model, which is given back.

`forecast` copies the cluster and runs a cycle after every end. With 100,000 pods the copy alone takes seconds, so few draws would fit
into the time. Here:

- the model is changed in place and put back after each draw. A job that ends leaves finished pods behind, which hold nothing;
- a step has at least one end for each 500 running jobs, later 30 % of those that there were before it. Jobs start
  when these end, in their order. So ten thousand ends take about twenty-five steps;
- the cycle at the present moment is the same for all draws. It is run once, over all jobs;
- later cycles try the first jobs of each queue that have idle room, as many as have ended (`idle_room`). With fewer the jobs ahead
  would start too late, and the job in question before them. What could start by eviction alone is found by the first cycle, or not
  at all.

Cycles are those of `decide`. What is left out makes it an estimate; the basis of a start time says that steps were taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush

import numpy as np
from msgspec.structs import replace

from navarch.engine.cycle import decide
from navarch.engine.points.waiting_order import waiting_order
from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord, JobDecision
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.ingest.settings import settings_for
from navarch.model.changed_cluster import ChangedCluster
from navarch.model.cluster import Cluster
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import ON_NODE, TaskStatus
from navarch.offline.cycles import lasting_promises
from navarch.simulator.jobs import TraceJob
from navarch.simulator.start_times.idle_room import IdleRoom
from navarch.simulator.workload import Workload

STEPS_FROM = 1000
"""With more running jobs than this, ends are taken in steps."""
GROWTH = 0.3
"""Ends of a step for each end before it."""
FIRST_ENDS = 500
"""A step has at least one end for so many running jobs."""
MOST_CYCLES = 2
"""Of one step: one evicts, the next binds; or those behind have their turn."""


class StepForecast:
    """Made once for a cluster, and closed. `run` is called for each draw."""

    def __init__(self, cluster: Cluster, policy: Policy, registry: Registry, now: float, wanted: Collection[str]) -> None:
        self.cluster, self.now, self.wanted = cluster, now, frozenset(wanted)
        self._policy, self._registry = policy, registry
        self._snapshot: Snapshot | None = None
        self.workload = Workload(settings_for(policy), cluster)
        self._changed = ChangedCluster(cluster)
        order = self._order()
        at_first = _Course(self, self._changed, IdleRoom(cluster, self._changed.hold, self.wanted))
        for key in _running(cluster):
            at_first.running.add(key)
        at_first.cycles()
        self._room, self._running = at_first.room, at_first.running
        self._starts = at_first.starts
        for key in order:
            at_first.wait(key)

    def close(self) -> None:
        """Give the model back as it was."""
        self._changed.restore()

    def run(
        self,
        remaining: Mapping[str, float],
        random: np.random.Generator,
        *,
        until: float,
        arrivals: Iterable[TraceJob] = (),
        proceed: Callable[[], bool] = lambda: True,
    ) -> dict[str, float] | None:
        """Key of each wanted job that starts until then -> when. `remaining`: seconds that jobs still run, or run once they start.
        None: `proceed` said no."""
        changed = ChangedCluster(self.cluster)
        course = _Course(self, changed, self._room.copy(changed.hold))
        course.starts.update(self._starts)
        try:
            return course.go_on(self._running, remaining, random, until, arrivals, proceed)
        finally:
            changed.restore()

    def cycle(self, now: float) -> CycleRecord:
        policy = self._policy
        self._snapshot = self.cluster.snapshot(policy.semantics.node_order, instead_of=self._snapshot)
        return decide(
            self._snapshot,
            policy,
            self._registry,
            now,
            "step",
            devices="step",
            report_all=False,
            report_queues=False,
            report_pods=False,
        )

    def _order(self) -> list[str]:
        """Keys of waiting jobs, in the policy's order."""
        session = Session(self.cluster.snapshot(self._policy.semantics.node_order), self._policy, self._registry, self.now)
        found = [job.key for job in waiting_order(session, session.jobs_with_pending())]
        session.dissolve()
        return found


def _running(cluster: Cluster) -> list[str]:
    """Keys of jobs with pods on nodes."""
    out = []
    for row, spec in enumerate(cluster.jobs.specs):
        if spec is not None:
            found = (cluster.tasks.specs[each] for each in cluster.jobs.tasks[row])
            if any(task is not None and task.node and ON_NODE[task.status] for task in found):
                out.append(spec.key)
    return out


class _Course:
    """One course of events, over a model that is changed."""

    def __init__(self, forecast: StepForecast, changed: ChangedCluster, room: IdleRoom) -> None:
        self._forecast, self._cluster = forecast, forecast.cluster
        self._changed, self.room = changed, room
        self.running: set[str] = set()
        """Jobs that have their minimum on nodes."""
        self.starts: dict[str, float] = {}
        self._remaining: Mapping[str, float] = {}
        self._lengths: dict[str, float] = {}
        """Run times of jobs that came after now."""
        self._random: np.random.Generator | None = None
        self._ends: list[tuple[float, str]] = []
        """A heap; an entry counts while `_end_of` has the same time."""
        self._end_of: dict[str, float] = {}
        self._ended = self._at_first = self._step_ends = 0
        self._now = forecast.now
        """The moment of this step, at which its last job ends."""
        self._moments = [forecast.now]
        """When jobs end in this step."""

    def go_on(
        self,
        running: Collection[str],
        remaining: Mapping[str, float],
        random: np.random.Generator,
        until: float,
        arrivals: Iterable[TraceJob],
        proceed: Callable[[], bool],
    ) -> dict[str, float] | None:
        self._remaining, self._random = remaining, random
        self.running = set(running)
        self._at_first = len(running)
        self._end_of = {key: end for key in running if math.isfinite(end := self._forecast.now + self._length(key))}
        self._ends = [(end, key) for key, end in self._end_of.items()]
        heapify(self._ends)
        source = iter(arrivals)
        coming = next(source, None)
        while len(self.starts) < len(self._forecast.wanted):
            if not proceed():
                return None
            ends = self._next_ends(until)
            if not ends and coming is None:
                break
            time = ends[-1][0] if ends else coming.submit if coming is not None else math.inf
            if time > until:
                break
            self._moments = [max(each, self._now) for each, _ in ends] or [max(time, self._now)]
            self._now = self._moments[-1]
            for _, key in ends:
                self._end(key)
            self._changed.end_jobs(key for _, key in ends)
            while coming is not None and coming.submit <= time:
                self._arrive(coming)
                coming = next(source, None)
            self._step_ends = len(ends)
            if self.room.choose(self._step_ends):
                self.cycles()
        return self.starts

    def _next_ends(self, until: float) -> list[tuple[float, str]]:
        """The ends of the next step, in order."""
        out: list[tuple[float, str]] = []
        most = max(1, self._at_first // FIRST_ENDS, int(self._ended * GROWTH))
        while self._ends and len(out) < most and (not out or self._ends[0][0] <= until):
            time, key = heappop(self._ends)
            if self._end_of.get(key) == time:
                out.append((time, key))
        return out

    def _length(self, key: str) -> float:
        found = self._remaining.get(key)
        return max(0.0, self._lengths.get(key, math.inf) if found is None else found)

    def _end(self, key: str) -> None:
        self._ended += 1
        del self._end_of[key]
        self.running.discard(key)
        self.room.remove(key)
        spec = self._spec(key)
        if spec is not None:
            self.room.ends(spec.queue)

    def _arrive(self, trace: TraceJob) -> None:
        if trace.queue not in self._cluster.queues:
            return
        spec, tasks = self._forecast.workload.specs(trace, None)
        self._lengths[spec.key] = trace.duration
        self._changed.put_job(spec)
        for task in tasks:
            self._changed.put_task(task)
        self.wait(spec.key)

    def wait(self, key: str) -> None:
        """Let the job wait for what it still lacks; it waits no more if that is nothing."""
        self.room.remove(key)
        spec, tasks = self._spec(key), self._tasks(key)
        pending = [task for task in tasks if task.status == TaskStatus.PENDING]
        if spec is not None and pending:
            self.room.add(key, spec.queue, pending, max(1, spec.min_member - _held(tasks)))

    def _spec(self, key: str) -> JobSpec | None:
        return self._cluster.job(key)

    def _tasks(self, key: str) -> list[TaskSpec]:
        jobs = self._cluster.jobs
        found = (self._cluster.tasks.specs[each] for each in jobs.tasks[jobs.rows.of[key]]) if key in jobs.rows.of else ()
        return [task for task in found if task is not None]

    # cycles

    def cycles(self) -> None:
        """Cycles at the moment of this step."""
        for _ in range(MOST_CYCLES):
            record = self._forecast.cycle(self._now)
            self._apply(record)
            if not record.evictions and not (record.binds and self._random is not None and self.room.choose(self._step_ends)):
                return

    def _apply(self, record: CycleRecord) -> None:
        moved: dict[str, None] = {}
        for eviction in record.evictions:
            task = self._cluster.task(eviction.uid)
            if task is not None:
                fresh = replace(task, node="", status=TaskStatus.PENDING, started=None, gpu_groups=(), phase="Pending")
                self._changed.put_task(fresh)
                moved[eviction.job] = None
        for bind in record.binds:
            task = self._cluster.task(bind.uid)
            if task is not None:
                placed = replace(
                    task,
                    node=bind.node,
                    status=TaskStatus.RUNNING,
                    started=self._now,
                    nominated_node="",
                    gpu_groups=bind.gpu_groups,
                    annotations=task.annotations_with(bind.annotations),
                    phase="Running",
                )
                self._changed.put_task(placed)
                moved[bind.job] = None
        for number, key in enumerate(moved):
            self._settle(key, number, len(moved))
        for uid, node in lasting_promises(record).items():
            task = self._cluster.task(uid)
            if task is not None and not task.node and task.nominated_node != node:
                self._changed.put_task(replace(task, nominated_node=node))
        for decision in record.jobs:
            self._note(decision)

    def _settle(self, key: str, number: int, of: int) -> None:
        """Pods of the job were placed or evicted: it runs or waits from now on. It is the `number`th `of` those that the cycle moved:
        the first ones start when the first jobs of the step end."""
        spec = self._spec(key)
        if spec is None:
            return
        self.wait(key)
        if _held(self._tasks(key)) < max(1, spec.min_member):
            self.running.discard(key)
            self._end_of.pop(key, None)
        elif key not in self.running:
            self.running.add(key)
            moments = self._moments
            part = 0.0 if self._random is None else (number + float(self._random.random())) / of
            start = moments[int(part * len(moments))]
            end = start + self._length(key)
            if self._random is not None and math.isfinite(end):
                self._end_of[key] = end
                heappush(self._ends, (end, key))
            if key in self._forecast.wanted and key not in self.starts:
                self.starts[key] = start

    def _note(self, decision: JobDecision) -> None:
        spec = self._spec(decision.job)
        if spec is None:
            return
        times = (decision.last_started, decision.last_evicted, decision.stale_since)
        if decision.phase != spec.phase or times != (spec.last_started, spec.last_evicted, spec.stale_since):
            started, evicted, stale = times
            fresh = replace(spec, phase=decision.phase, last_started=started, last_evicted=evicted, stale_since=stale)
            self._changed.put_job(fresh)


def _held(tasks: Iterable[TaskSpec]) -> int:
    return sum(bool(task.node) and bool(ON_NODE[task.status]) for task in tasks)
