"""One policy over one trace: events in virtual time, and between them cycles by the same `decide` that schedules a cluster.

At each moment all that ends ends, nodes fail or return, jobs arrive, and then cycles run until nothing more can start. What a
cluster does between two cycles is played here: bound pods run at once, evicted pods are gone at once and wait again, a job that is
done frees its nodes. Nothing here decides where a pod goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Protocol

from msgspec.structs import replace

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy
from navarch.engine.reasons import Event as Undoing
from navarch.engine.record import CycleRecord, JobDecision
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.snapshot import Snapshot
from navarch.model.status import TaskStatus
from navarch.offline.plan import settings_for
from navarch.simulator.events import EventQueue, Kind
from navarch.simulator.jobs import TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.waiting import waiting_for
from navarch.simulator.workload import Workload

MOST_CYCLES = 64
"""At one moment. A policy that evicts and binds the same pods for ever goes on at the next event."""
PERIOD = 60.0
"""Seconds after which jobs that wait for time to pass are tried again."""


class Observer(Protocol):
    """Told of everything that happens, in order. See `measures.Measures`."""

    def arrived(self, now: float, job: TraceJob) -> None: ...

    def moved(self, now: float, job: SimulatedJob) -> None:
        """Pods of the job were placed or taken from their nodes."""

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        """The job left. `done` False: its walltime was over."""

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None: ...


class Simulation:
    """`run` plays the whole trace. `cluster` holds the nodes and queues and is changed."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        registry: Registry,
        observer: Observer,
        *,
        checkpoint: float | None = None,
        expected: Callable[[TraceJob], float | None] | None = None,
        patience: float | None = None,
        skip: bool = True,
    ) -> None:
        """`checkpoint`: seconds of work between checkpoints of jobs that do not say; None: they have none. `expected`: how long a
        job's owner says that it will run. `patience`: a job that has not started so many seconds after it came leaves; None: it
        waits. `skip` False: run a cycle over everything at every event."""
        self.cluster = cluster
        self.policy = policy
        self.registry = registry
        self.observer = observer
        self.now = 0.0
        self.cycles = 0
        self.jobs: dict[str, SimulatedJob] = {}
        """Those that wait or run, by key."""
        self._checkpoint = checkpoint
        self._patience = patience
        self._expected = expected or (lambda job: job.duration if job.walltime is None else job.walltime)
        self._workload = Workload(settings_for(policy), cluster)
        self._waiting = waiting_for(policy, registry, cluster, skip=skip)
        self._events = EventQueue()
        self._snapshot: Snapshot | None = None
        self._ticks = False
        """Whether a cycle is planned because time passes."""

    def run(self, jobs: Iterable[TraceJob], until: float | None = None) -> None:
        """Play jobs that come in order of submission, until all that can end has ended or `until`."""
        for _ in self.steps(jobs, until):
            pass

    def steps(self, jobs: Iterable[TraceJob], until: float | None = None) -> Iterator[float]:
        """The same, moment by moment: yields the virtual time after each."""
        source = iter(jobs)
        coming = next(source, None)
        events = self._events
        while True:
            time = events.next_time
            if coming is not None and (time is None or coming.submit < time):
                time = coming.submit
            if time is None or (until is not None and time > until):
                return
            self.now = time
            while (event := events.pop_at(time)) is not None:
                if event.kind is Kind.JOB_ENDS:
                    self._end(event.subject, event.version)
                elif event.kind is Kind.CYCLE:
                    self._ticks = False
                    self._waiting.changes()
            while coming is not None and coming.submit == time:
                self._arrive(coming)
                coming = next(source, None)
            self._run_cycles()
            yield time

    @property
    def waiting(self) -> list[SimulatedJob]:
        """Jobs none of whose pods run, in order of arrival."""
        return [job for job in self.jobs.values() if not job.nodes]

    # what happens

    def _arrive(self, trace: TraceJob) -> None:
        spec, tasks = self._workload.specs(trace, self._expected(trace))
        job = self.jobs[spec.key] = SimulatedJob(trace, spec, tasks, self._checkpoint)
        self.cluster.put_job(spec)
        for task in tasks:
            self.cluster.put_task(task)
        self._waiting.arrives(job)
        self.observer.arrived(self.now, trace)
        if self._patience is not None:  # out of date once the job has started
            self._events.plan(self.now + self._patience, Kind.JOB_ENDS, spec.key, job.version)

    def _end(self, key: str, version: int) -> None:
        job = self.jobs.get(key)
        if job is None or job.version != version:
            return
        job.account(self.now)
        del self.jobs[key]
        nodes = dict.fromkeys(job.nodes.values())
        for uid in job.tasks:
            self.cluster.remove_task(uid)
        self.cluster.remove_job(key)
        self._waiting.leaves(job)
        for node in nodes:
            self._waiting.gains_room(node)
        self.observer.ended_job(self.now, job, done=job.is_done)

    # cycles

    def _run_cycles(self) -> None:
        for _ in range(MOST_CYCLES):
            if not self._waiting.is_due:
                return
            self._waiting.begin_cycle()
            started = perf_counter()
            self._snapshot = self.cluster.snapshot(self.policy.semantics.node_order, instead_of=self._snapshot)
            self.cycles += 1
            uid = f"cycle-{self.cycles}"
            record = decide(
                self._snapshot, self.policy, self.registry, self.now, uid, devices=uid, report_all=False, report_queues=False
            )
            self.observer.decided(self.now, record, perf_counter() - started)
            self._apply(record)
            self._waiting.end_cycle()

    def _apply(self, record: CycleRecord) -> None:
        decisions = {each.job: each for each in record.jobs}
        moved: dict[str, SimulatedJob] = {}
        for eviction in record.evictions:
            job = self.jobs[eviction.job]
            job.displace(eviction.uid)
            moved[eviction.job] = job
        for bind in record.binds:
            job = self.jobs[bind.job]
            job.place(bind.uid, bind.node)
            task = replace(
                job.tasks[bind.uid],
                node=bind.node,
                status=TaskStatus.RUNNING,
                started=self.now,
                nominated_node="",
                gpu_groups=bind.gpu_groups,
                phase="Running",
            )
            job.tasks[bind.uid] = task
            self.cluster.put_task(task)
            moved[bind.job] = job
        for key, job in moved.items():
            self._settle(job, decisions.pop(key, None), evicted=bool(record.evictions))
        if self.policy.semantics.nominations_last:
            for nomination in record.nominations:
                job = self.jobs[nomination.job]
                task = job.tasks[nomination.uid] = replace(job.tasks[nomination.uid], nominated_node=nomination.node)
                self.cluster.put_task(task)
        for key, decision in decisions.items():
            self._note(self.jobs[key], decision)
        if record.evictions:
            self._waiting.changes()

    def _settle(self, job: SimulatedJob, decision: JobDecision | None, *, evicted: bool) -> None:
        """Pods of the job were placed or evicted: it runs, or stops, from now on."""
        end = job.settle(self.now)
        if evicted and end is None:
            job.spec = replace(job.spec, attained_service=job.ran * job.job.gpus)
            for uid in list(job.nodes):  # what is left of a gang that lost its minimum starts again with the rest
                job.displace(uid)
        if evicted:
            for uid, task in job.tasks.items():
                if task.node and uid not in job.nodes:
                    job.tasks[uid] = replace(task, node="", status=TaskStatus.PENDING, started=None, gpu_groups=(), phase="Pending")
                    self.cluster.put_task(job.tasks[uid])
        if end is not None:
            self._events.plan(end, Kind.JOB_ENDS, job.spec.key, job.version)
        if len(job.nodes) == len(job.tasks):
            self._waiting.leaves(job)
        else:
            self._waiting.arrives(job)
        if decision is not None:
            phase = "Running" if end is not None else decision.phase
            self._put(job, decision, phase)
        self.observer.moved(self.now, job)

    def _note(self, job: SimulatedJob, decision: JobDecision) -> None:
        """The job was looked at and nothing of it moved."""
        spec = job.spec
        times = (decision.last_started, decision.last_evicted, decision.stale_since)
        if decision.phase != spec.phase or times != (spec.last_started, spec.last_evicted, spec.stale_since):
            self._put(job, decision, decision.phase)
        if not self._ticks and any(Undoing.TIME_PASSED in reason.undone_by for reason in decision.reasons):
            self._ticks = True
            self._events.plan(self.now + PERIOD, Kind.CYCLE)

    def _put(self, job: SimulatedJob, decision: JobDecision, phase: str) -> None:
        job.spec = replace(
            job.spec,
            phase=phase,
            conditions=decision.conditions,
            last_started=decision.last_started,
            last_evicted=decision.last_evicted,
            stale_since=decision.stale_since,
        )
        self.cluster.put_job(job.spec)
