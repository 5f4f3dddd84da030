"""One policy over one trace: events in virtual time, and between them cycles by the same `decide` that schedules a cluster.

At each moment all that ends ends, nodes fail or return, jobs arrive, and then cycles run until nothing more can start. What a
cluster does between two cycles is played here: bound pods run at once, evicted pods are gone at once and are made again a little
later, a job that is done frees its nodes. Nothing here decides where a pod goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import thread_time
from typing import Protocol

from msgspec.structs import replace

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy
from navarch.engine.reasons import Event as Undoing
from navarch.engine.record import CycleRecord, JobDecision
from navarch.engine.registry import Registry
from navarch.ingest.settings import settings_for
from navarch.model.cluster import Cluster
from navarch.model.objects.devices import RESOURCE_CLAIM
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, NodeSpec
from navarch.model.status import ON_NODE, TaskStatus
from navarch.offline.cycles import lasting_promises
from navarch.offline.settled_claims import give_back_claims, settle_claims
from navarch.simulator.estimates import Estimates
from navarch.simulator.events import EventQueue, Kind
from navarch.simulator.failures import NodeFailures, NodeSchedule
from navarch.simulator.fragmentation import FragmentationProbe
from navarch.simulator.jobs import TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.waiting import waiting_for
from navarch.simulator.workload import Workload

MOST_CYCLES = 64
"""At one moment. A policy that evicts and binds the same pods for ever goes on at the next event."""
PERIOD = 60.0
"""Seconds after which jobs that wait for time to pass are tried again."""
MADE_AGAIN = 30.0
"""Seconds until the pods of an evicted job are there again: they are told to end, and their controller makes new ones."""
GIVE_UP = 86400.0
"""The simulation ends when nothing runs and no job has moved for so many seconds."""


class Observer(Protocol):
    """Told of everything that happens, in order. See `measures.Measures`."""

    def arrived(self, now: float, job: TraceJob) -> None: ...

    def moved(self, now: float, job: SimulatedJob) -> None:
        """Pods of the job were placed or taken from their nodes."""

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        """The job left. `done` False: its walltime was over."""

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        """A cycle ran. `seconds`: of processor time."""

    def fragmented_by(self, now: float, gpus: float) -> None:
        """So many GPUs are free and of no use to the pods that come."""


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
        estimates: str = "walltime",
        failures: NodeFailures | None = None,
        patience: float | None = None,
        skip: bool = True,
    ) -> None:
        """`checkpoint`: seconds of work between checkpoints of jobs that do not say; None: they have none. `estimates`: where expected
        durations come from (see `estimates`). `failures`: when nodes fail; None: never. `patience`: a job that has not started so many
        seconds after it came leaves; None: it waits. `skip` False: run a cycle over everything at every event."""
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
        self._estimates = Estimates(estimates)
        self._probe = FragmentationProbe(cluster)
        self._workload = Workload(settings_for(policy), cluster, policy.dialect)
        self._waiting = waiting_for(policy, registry, cluster, skip=skip)
        self._events = EventQueue()
        self._snapshot: Snapshot | None = None
        self._ticks = False
        """Whether a cycle is planned because time passes."""
        self._failures = failures
        self._schedules: dict[str, NodeSchedule] = {}
        self.nodes_away: dict[str, NodeSpec] = {}
        """Nodes that failed and have not returned, by name."""
        self.node_failures = 0
        self._last_move = 0.0
        """When a job last arrived or moved."""
        self.subject = ""
        """Key of the job that is being played; empty: the scheduler runs. Where a run fails, it names whose failure that is."""

    def run(self, jobs: Iterable[TraceJob], until: float | None = None) -> None:
        """Play jobs that come in order of submission, until all that can end has ended or `until`."""
        for _ in self.steps(jobs, until):
            pass

    def steps(self, jobs: Iterable[TraceJob], until: float | None = None) -> Iterator[float]:
        """The same, moment by moment: yields the virtual time after each."""
        source = iter(jobs)
        coming = next(source, None)
        events = self._events
        if self._failures is not None and coming is not None:
            self._plan_failures(coming.submit)
        while coming is not None or self.jobs:
            time = events.next_time
            if coming is not None and (time is None or coming.submit < time):
                time = coming.submit
            if time is None or (until is not None and time > until) or (coming is None and self._is_stuck(time)):
                return
            self.now = time
            while (event := events.pop_at(time)) is not None:
                if event.kind is Kind.JOB_ENDS:
                    self._end(event.subject, event.version)
                elif event.kind is Kind.NODE_FAILS:
                    self._fail(event.subject)
                elif event.kind is Kind.NODE_RETURNS:
                    self._return(event.subject)
                elif event.kind is Kind.PODS_RETURN:
                    self._make_again(event.subject)
                elif event.kind is Kind.CYCLE:
                    self._ticks = False
                    self._waiting.changes()
            while coming is not None and coming.submit == time:
                self._arrive(coming)
                coming = next(source, None)
            self._run_cycles()
            if self._probe.is_due(time):
                self.observer.fragmented_by(time, self._probe.look(time))
            yield time

    def _is_stuck(self, time: float) -> bool:
        """Whether nothing runs and nothing has happened to a job for so long that nothing will."""
        return time - self._last_move > GIVE_UP and not any(job.nodes for job in self.jobs.values())

    @property
    def waiting(self) -> list[SimulatedJob]:
        """Jobs none of whose pods run, in order of arrival."""
        return [job for job in self.jobs.values() if not job.nodes]

    def why_waiting(self) -> str:
        """Why the first of those jobs waits, by one more cycle over all of them; empty: none waits."""
        first = next((job.spec.key for job in self.jobs.values() if not job.nodes), None)
        if first is None:
            return ""
        snapshot = self.cluster.snapshot_with_held(self.policy.semantics.node_order)
        record = decide(snapshot, self.policy, self.registry, self.now, "cycle-last", devices="cycle-last")
        reasons = next((each.reasons for each in record.jobs if each.job == first), ())
        if not reasons and first not in record.tried:
            return f"no action of the policy tries to place it; its actions are {', '.join(self.policy.actions)}"
        return reasons[0].message if reasons else "it would start in a further cycle at this moment"

    def adopt(self, job: SimulatedJob, now: float) -> None:
        """Go on from a job that the cluster holds already: it runs on its nodes from `now` on, or waits."""
        self.now = max(self.now, now)
        self._last_move = self.now
        self.subject = job.spec.key
        self.jobs[job.spec.key] = job
        for uid, task in job.tasks.items():
            if task.node and ON_NODE[task.status]:
                job.place(uid, task.node)
        end = job.settle(now) if job.nodes else None
        if end is not None:
            self._events.plan(end, Kind.JOB_ENDS, job.spec.key, job.version)
        if len(job.nodes) < len(job.tasks):
            self._waiting.arrives(job)
        self._events.plan(now, Kind.CYCLE)

    # what happens

    def _arrive(self, trace: TraceJob) -> None:
        spec, tasks = self._workload.specs(trace, self._estimates.expected(trace))
        job = self.jobs[spec.key] = SimulatedJob(trace, spec, tasks, self._checkpoint)
        self.cluster.put_job(spec)
        for task in tasks:
            self.cluster.put_task(task)
        self._waiting.arrives(job)
        self._last_move = self.now
        self._probe.arrived(trace)
        self.observer.arrived(self.now, trace)
        if self._patience is not None:  # out of date once the job has started
            self._events.plan(self.now + self._patience, Kind.JOB_ENDS, spec.key, job.version)

    def _end(self, key: str, version: int) -> None:
        job = self.jobs.get(key)
        if job is None or job.version != version:
            return
        self.subject = key
        job.account(self.now)
        del self.jobs[key]
        nodes = dict.fromkeys(job.nodes.values())
        give_back_claims(self.cluster, job.tasks.values())
        for uid in job.tasks:
            self.cluster.remove_task(uid)
        self.cluster.remove_job(key)
        self._waiting.leaves(job)
        for node in nodes:
            self._waiting.gains_room(node)
        self._estimates.ended(job.job, job.ran)
        self.observer.ended_job(self.now, job, done=job.is_done)

    # nodes

    def _plan_failures(self, start: float) -> None:
        assert self._failures is not None
        for spec in self.cluster.nodes.specs:
            if spec is not None:
                schedule = self._schedules[spec.name] = self._failures.schedule(spec.name)
                self._events.plan(schedule.next_failure(start), Kind.NODE_FAILS, spec.name)

    def _fail(self, name: str) -> None:
        """The node is gone with all that runs on it."""
        spec = self.cluster.nodes.specs[self.cluster.nodes.rows.of[name]]
        assert spec is not None
        self.nodes_away[name] = spec
        self.node_failures += 1
        hit = [job for job in self.jobs.values() if name in job.nodes.values()]
        for job in hit:
            for uid in [uid for uid, node in job.nodes.items() if node == name]:
                job.displace(uid)
            self._settle(job, None, evicted=True)
        self.cluster.remove_node(name)
        self._waiting.changes()
        self._events.plan(self._schedules[name].next_return(self.now), Kind.NODE_RETURNS, name)

    def _return(self, name: str) -> None:
        self.cluster.put_node(self.nodes_away.pop(name))
        self._waiting.changes()
        self._events.plan(self._schedules[name].next_failure(self.now), Kind.NODE_FAILS, name)

    # cycles

    def _run_cycles(self) -> None:
        for _ in range(MOST_CYCLES):
            if not self._waiting.is_due:
                return
            self._waiting.begin_cycle()
            self.subject = ""
            started = thread_time()
            self._snapshot = self.cluster.snapshot(self.policy.semantics.node_order, instead_of=self._snapshot)
            self.cycles += 1
            uid = f"cycle-{self.cycles}"
            record = decide(
                self._snapshot, self.policy, self.registry, self.now, uid, devices=uid, report_all=False, report_queues=False
            )
            self.observer.decided(self.now, record, thread_time() - started)
            self._apply(record)
            self._waiting.end_cycle()

    def _apply(self, record: CycleRecord) -> None:
        decisions = {each.job: each for each in record.jobs}
        moved: dict[str, SimulatedJob] = {}
        for eviction in record.evictions:
            self.subject = eviction.job
            if eviction.job not in self.jobs:  # a pod that is there, of a job that is not played
                self.cluster.remove_task(eviction.uid)
                continue
            job = self.jobs[eviction.job]
            job.displace(eviction.uid)
            moved[eviction.job] = job
        for bind in record.binds:
            self.subject = bind.job
            job = self.jobs[bind.job]
            job.place(bind.uid, bind.node)
            task = replace(
                job.tasks[bind.uid],
                node=bind.node,
                status=TaskStatus.RUNNING,
                started=self.now,
                nominated_node="",
                gpu_groups=bind.gpu_groups,
                annotations=job.tasks[bind.uid].annotations_with(bind.annotations),
                phase="Running",
            )
            job.tasks[bind.uid] = task
            self.cluster.put_task(task)
            moved[bind.job] = job
        if record.claims or record.releases or self.cluster.objects.get(RESOURCE_CLAIM):
            settle_claims(self.cluster, record, (), self.now)
        for key, job in moved.items():
            self.subject = key
            self._settle(job, decisions.pop(key, None), evicted=bool(record.evictions))
        if record.nominations:
            self._nominate(record)
        for key, decision in decisions.items():
            self.subject = key
            self._note(decision)
        if record.evictions:
            self._waiting.changes()

    def _nominate(self, record: CycleRecord) -> None:
        for uid, node in lasting_promises(record).items():
            task = self.cluster.task(uid)
            if task is not None and not task.node and task.nominated_node != node:
                task = self.jobs[task.job].tasks[uid] = replace(task, nominated_node=node)
                self.cluster.put_task(task)

    def _settle(self, job: SimulatedJob, decision: JobDecision | None, *, evicted: bool) -> None:
        """Pods of the job were placed or evicted: it runs, or stops, from now on."""
        self._last_move = self.now
        end = job.settle(self.now)
        if evicted and end is None:
            job.spec = replace(job.spec, attained_service=job.ran * job.job.gpus)
            for uid in list(job.nodes):  # what is left of a gang that lost its minimum starts again with the rest
                job.displace(uid)
        if evicted:
            self._take_away(job)
        if end is not None:
            self._events.plan(end, Kind.JOB_ENDS, job.spec.key, job.version)
        if len(job.nodes) == len(job.tasks) or job.away:
            self._waiting.leaves(job)
        else:
            self._waiting.arrives(job)
        if decision is not None:
            phase = "Running" if end is not None else decision.phase
            job.spec = self._put(job.spec, decision, phase)
        self.observer.moved(self.now, job)

    def _take_away(self, job: SimulatedJob) -> None:
        """Pods that lost their node are gone until their controller has made them again."""
        for uid, task in job.tasks.items():
            if task.node and uid not in job.nodes:
                give_back_claims(self.cluster, (task,))
                job.tasks[uid] = replace(task, node="", status=TaskStatus.PENDING, started=None, gpu_groups=(), phase="Pending")
                self.cluster.remove_task(uid)
                if not job.away:
                    self._events.plan(self.now + MADE_AGAIN, Kind.PODS_RETURN, job.spec.key)
                job.away.append(uid)

    def _make_again(self, key: str) -> None:
        job = self.jobs.get(key)
        if job is None:
            return
        for uid in job.away:
            self.cluster.put_task(job.tasks[uid])
        job.away.clear()
        self._waiting.arrives(job)

    def _note(self, decision: JobDecision) -> None:
        """The job was looked at and nothing of it moved. Groups without pods are looked at too, and no job is played for them."""
        job = self.jobs.get(decision.job)
        spec = job.spec if job is not None else self.cluster.job(decision.job)
        if spec is None:
            return
        times = (decision.last_started, decision.last_evicted, decision.stale_since)
        if decision.phase != spec.phase or times != (spec.last_started, spec.last_evicted, spec.stale_since):
            spec = self._put(spec, decision, decision.phase)
        if job is None:
            return
        job.spec = spec
        if not self._ticks and any(Undoing.TIME_PASSED in reason.undone_by for reason in decision.reasons):
            self._ticks = True
            self._events.plan(self.now + PERIOD, Kind.CYCLE)

    def _put(self, spec: JobSpec, decision: JobDecision, phase: str) -> JobSpec:
        """Tell the cluster of the job as it is now."""
        fresh = replace(
            spec,
            phase=phase,
            conditions=decision.conditions,
            last_started=decision.last_started,
            last_evicted=decision.last_evicted,
            stale_since=decision.stale_since,
        )
        self.cluster.put_job(fresh)
        return fresh
