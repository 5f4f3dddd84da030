"""One scheduling cycle in progress: the snapshot's figures, the plugins of the policy, and the decisions so far.

A session owns copies of the columns that change; only statements change them. Jobs are made when first needed. `points` combines
the plugins' answers; `placement` chooses nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Rows
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.node_state import NodeState
from navarch.engine.placement.shards import shard_nodes
from navarch.engine.placement.shared_devices import SharedDevices
from navarch.engine.placement.task_classes import TaskClasses
from navarch.engine.placement.tasks_by_node import TasksByNode
from navarch.engine.points.conversation import Conversation
from navarch.engine.points.placement_events import PlacementEvents
from navarch.engine.points.profiles import functions_by_profile
from navarch.engine.points.protocols import NodeFilters, NodeScorers, Purpose
from navarch.engine.points.runner import PluginRunner
from navarch.engine.policy.values import Policy
from navarch.engine.queue import Queue, queues_of
from navarch.engine.reasons import Reason
from navarch.engine.record import CycleRecord
from navarch.engine.semantics import Semantics
from navarch.engine.statement import Statement
from navarch.engine.steps import Steps
from navarch.engine.topology.job_domains import JobDomains
from navarch.engine.victims.protected import ProtectedPods
from navarch.model.node_facts import usable_nodes
from navarch.model.resources import BoolArray, IntArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Requests, TaskSpec
from navarch.model.status import TaskStatus

if TYPE_CHECKING:
    from navarch.engine.registry import Registry

S = TypeVar("S")


class CycleStopped(BaseException):
    """The caller of the cycle wants no more of it. No rule is at fault, so containment does not take it."""


class CycleSettings(Struct, frozen=True):
    """What a cycle is told besides its input; see `engine.cycle.decide`."""

    uid: str = ""
    devices: str = "new"
    report_all: bool = True
    report_queues: bool = True
    report_pods: bool = True
    stopwatch: Callable[[], float] = float
    timings: dict[str, float] = field(default_factory=dict)
    conversation: Conversation = field(default_factory=Conversation)
    """Questions to servers outside."""
    proceed: Callable[[], bool] | None = None
    note_job: Callable[[str], None] | None = None
    steps: int | None = None


class Session(PluginRunner):
    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        registry: Registry,
        now: float,
        settings: CycleSettings | None = None,
        *,
        without_preferences: Collection[str] = (),
        guarded: Mapping[str, Reason | None] | None = None,
    ) -> None:
        settings = CycleSettings() if settings is None else settings
        self.policy = policy
        self.semantics: Semantics = policy.semantics
        self.stopwatch = stopwatch = settings.stopwatch
        self.may_be_kept = False
        """Whether each of its plugins has `next_cycle`, and none has failed (`kept_session.py`)."""
        self.nodes = NodeState(snapshot.nodes)
        self.runs_spread = False
        """Whether the last run of equal tasks went over many nodes: the next one of this policy will too."""
        self.run_nodes = 1
        """How many nodes it took."""
        self.claimable_dims: frozenset[int] = frozenset()
        """Resources that devices serve on nodes that do not report them, where a plugin sees to that: not compared there."""
        self.total: IntArray = snapshot.nodes.allocatable.sum(axis=1)
        self.devices: SharedDevices | None = None
        """Accounts of shared devices, once an action called `share_devices`."""
        self._classes = TaskClasses(self)
        self.begin_cycle(snapshot, now, settings)
        self.shard_problems: list[str] = []
        self.shard, self.shard_is_hard = self._shard()
        self.queues: dict[str, Queue] = queues_of(snapshot)
        self._views: dict[int, ClassView] = {}
        self.resources_by_filters = False
        """True: a filter of the policy checks resources by the pods' view, and the engine's own accounts do not."""
        self.open_plugins(registry, without_preferences, guarded or {})
        self.functions = functions_by_profile(self.implementing_by_profile(NodeFilters), self.implementing_by_profile(NodeScorers))
        self.filters: list[NodeFilter] = list(dict.fromkeys(f for each in self.functions.values() for f in each.filters))
        """The filters of all profiles. `filters_for` gives those of a class."""
        self.scorers: list[NodeScorer] = list(dict.fromkeys(s for each in self.functions.values() for s in each.scorers))
        for plugin in self.plugins:
            started = stopwatch()
            plugin.after_open()
            self.timings[f"{plugin.name} (open)"] += stopwatch() - started

    def begin_cycle(self, snapshot: Snapshot, now: float, settings: CycleSettings) -> None:
        """Set everything that belongs to one cycle. All else stays while a session is kept (`kept_session.py`)."""
        self.snapshot = snapshot
        self._proceed = settings.proceed
        self.steps = Steps(settings.steps)
        self.note_job = settings.note_job
        """Gets the key of each job that a rule begins to work on; None: it is not noted."""
        self.turn = ""
        """The key of the job whose turn it is; kept where `note_job` is given."""
        self.now = now
        self.uid = settings.uid
        self.devices_named = settings.devices
        self.report_all = settings.report_all
        self.timings = settings.timings
        self.conversation = settings.conversation
        self.vetoed: dict[int, Reason] = {}
        """Tasks of the placement under way that a plugin refuses, for `Statement`: filled in `on_allocate`."""
        self.action = ""
        self.record = CycleRecord()
        self._specs = snapshot.tasks.specs
        self.status = snapshot.tasks.status
        self.node = snapshot.tasks.node
        self.shape = snapshot.tasks.shape
        self.queues_are_open = False
        """True while a dry run asks queues that are closed as if they were open (see `dry_run_minds_queue`)."""
        self.left_places: dict[int, dict[int, tuple[str, ...]]] = {}
        """Task row -> node -> shared devices: places that a moved task leaves. Its pod is there until it is gone."""
        self.repeated_evictions: dict[int, int] = {}
        """Job row -> how many of its tasks on nodes a count leaves out, because they were evicted again (`counted_active`).
        An eviction adds one if another task of the job has the status that the task had before. Undoing an eviction always subtracts
        one, so the number may be negative."""
        self.zones: dict[int, tuple[int, ...]] = {}
        """Task row -> the NUMA zones that its placement of this cycle uses, where a plugin tracks them."""
        self.numa_placements: dict[int, tuple[tuple[str, Requests], ...]] = {}
        """Task row -> the amounts that its placement of this cycle takes of each zone, by the zone's name."""
        self.cpus: dict[int, str] = {}
        """Task row -> the CPU ids that its placement of this cycle would get, where a plugin predicts them."""
        self.bind_annotations: dict[int, dict[str, str]] = {}
        """Task row -> annotations that the pod gets with its binding, where a plugin chooses devices for it."""
        self._any_gated: bool | None = None
        self.stuck: frozenset[int] = frozenset()
        """Tasks whose deletion takes too long: their resources are not promised to others."""
        self.residents = TasksByNode(self)
        self._jobs: dict[int, Job | None] = {}
        self._waiting: list[Job] | None = None
        self._status_due: list[Job] | None = None
        """Jobs whose status may need a write whatever this cycle does."""
        self._classes.begin_cycle()
        self._class_of_task = self._classes.of_task
        self._shared: dict[Any, Any] = {}
        self.events = PlacementEvents(self)
        self.tried: dict[str, None] = {}
        """Keys of jobs in the order in which an allocating action first tried to place them."""
        self.placing: Job | None = None
        """The job of the current attempt, for messages only: the amounts of its queue include pods that the attempt placed."""
        self.beyond_shares = False
        """True while allocate offers what the shares leave over: plugins enforce limits of queues, not their deserved shares."""
        self.promised_by_eviction: set[int] = set()

    def dissolve(self) -> None:
        """Drop all references. Session and plugins refer to each other and to the snapshot. Without this call they would stay
        until the garbage collector runs, which would then take longer than a cycle."""
        for view in self._views.values():
            vars(view).clear()
        vars(self).clear()

    # what is there

    def serve_by_claims(self, amounts: Mapping[int, int]) -> None:
        """Count devices as capacity: resource column -> how much of it devices serve on nodes that do not report the resource."""
        self.claimable_dims = frozenset(amounts)
        self.total = self.total.copy()
        for dim, amount in amounts.items():
            self.total[dim] += amount

    def left_to_claims(self, dims: Rows) -> BoolArray | None:
        """(dims, nodes): where claims on devices decide, because the node does not report the resource. None: nowhere."""
        if not self.claimable_dims:
            return None
        claimable = np.isin(dims, list(self.claimable_dims))
        return claimable[:, None] & (self.snapshot.nodes.allocatable[dims] == 0) if claimable.any() else None

    @property
    def any_gated(self) -> bool:
        if self._any_gated is None:
            self._any_gated = bool(np.count_nonzero(self.snapshot.tasks.gated))
        return self._any_gated

    def task(self, row: int) -> TaskSpec:
        spec = self._specs[row]
        assert spec is not None
        return spec

    def job(self, row: int) -> Job | None:
        """The job at this row; None if it has no group or its queue does not exist."""
        try:
            return self._jobs[row]
        except KeyError:
            spec = self.snapshot.jobs.specs[row]
            queue = None if spec is None else self.queues.get(spec.queue)
            job = None if spec is None or queue is None else Job(self, row, spec, queue)
            self._jobs[row] = job
            return job

    def job_of(self, task: int) -> Job | None:
        row = int(self.snapshot.tasks.job[task])
        return None if row < 0 else self.job(row)

    def jobs_at(self, rows: Iterable[int]) -> list[Job]:
        return [job for row in rows if (job := self.job(row)) is not None]

    def jobs_with_pending(self) -> list[Job]:
        """Jobs that had a pending task when the cycle began, by key."""
        if self._waiting is None:
            self._waiting = sorted(self.jobs_at(_set_rows(self.snapshot.jobs.marks.waiting)), key=_key)
        return self._waiting.copy()

    def unadmitted_jobs(self) -> list[Job]:
        """Jobs whose phase is not admitted yet, by key."""
        return sorted(self.jobs_at(_set_rows(self.snapshot.jobs.marks.unadmitted)), key=_key)

    def unadmitted_without_pods(self) -> list[Job]:
        """Jobs that are not admitted and have no pods. There are few, because most jobs that are not admitted have pending pods."""
        marks = self.snapshot.jobs.marks
        return [job for job in self.jobs_at(_set_rows(marks.unadmitted > marks.waiting)) if not job.tasks]

    def all_jobs(self) -> list[Job]:
        """Every job with a group and a queue, by key. The cost grows with all jobs: for close, small clusters and tests."""
        return sorted(self.jobs_at(range(len(self.snapshot.jobs.specs))), key=_key)

    def jobs_to_conclude(self) -> list[Job]:
        """Jobs whose phase or conditions may need a write, by key; every job where the report is complete.

        A job is left out if this cycle did not change it, it is ready, it has the Scheduled condition where a plugin sets that,
        and its phase matches its pods."""
        if self.report_all:
            return self.all_jobs()
        if self._status_due is None:
            marks = self.snapshot.jobs.marks
            status_due = marks.status_due_when_held if self.semantics.placed_gang_is_running else marks.status_due
            if any(plugin.says_scheduled for plugin in self.plugins):
                status_due = status_due | marks.lacks_scheduled_condition
            self._status_due = self.jobs_at(_set_rows(status_due))
        return self._and_changed(self._status_due)

    def jobs_maybe_broken(self) -> list[Job]:
        """Jobs that hold nodes and may be below their minimum or that of a part, by key. Jobs with parts are always included,
        because their counts do not show it."""
        tasks = self.snapshot.tasks
        broken = self.snapshot.jobs.marks.broken.copy()
        owner = tasks.job[tasks.in_part & tasks.alive]
        broken[owner[owner >= 0]] = True
        return self._and_changed(self.jobs_at(_set_rows(broken)))

    def _and_changed(self, jobs: Sequence[Job]) -> list[Job]:
        changed = (job for job in self.touched_jobs if job.has_changed)
        return sorted({job.row: job for job in (*jobs, *changed)}.values(), key=_key)

    @property
    def touched_jobs(self) -> list[Job]:
        return [job for job in self._jobs.values() if job is not None]

    # classes of tasks

    def distinguish_labels(self, keys: Iterable[str]) -> None:
        """Declare that a rule reads these labels of pods: tasks that differ in them become different classes."""
        self._classes.distinguish_labels(keys)

    def distinguish_queues(self) -> None:
        """Declare that a node function reads the task's queue: tasks of different queues become different classes."""
        self._classes.distinguish_queues()

    def distinguish_by(self, reads: Callable[[int], Hashable]) -> None:
        """Declare that a node function reads this value of a task: tasks that differ in it become different classes."""
        self._classes.distinguish_by(reads)

    def class_of(self, task: int) -> TaskClass:
        found = self._class_of_task.get(task)
        return self._classes.find(task) if found is None else found

    def share_class(self, tasks: Sequence[int]) -> bool:
        """Whether these tasks of one job are of one class, by their shapes alone. False: they must be asked one by one."""
        return self._classes.are_one(tasks)

    def filters_for(self, task: TaskClass) -> list[NodeFilter]:
        """The filters that apply to the class, in policy order."""
        return [each for each in self.functions[task.profile].filters if each.applies(task)]

    def scorers_for(self, task: TaskClass) -> list[NodeScorer]:
        return [each for each in self.functions[task.profile].scorers if each.weight and each.applies(task)]

    def view(self, task: TaskClass) -> ClassView:
        """Masks and scores of a class over all nodes, up to date."""
        view = self._views.get(task.number)
        if view is None:
            view = self._views[task.number] = ClassView(self, task)
        view.task = task  # its first task is one of this cycle, in a kept session too
        return view

    @property
    def view_count(self) -> int:
        return len(self._views)

    def share_devices(self) -> None:
        """Start the accounts of shared devices. Must be called before the first view of a class."""
        if self.devices is None:
            assert not self._views, "classes were looked at before their devices were"
            self.devices = SharedDevices(self)

    def ignore_stuck_tasks(self, seconds: float) -> None:
        """Do not count the resources of tasks that have been leaving for longer than this as released."""
        rows = np.flatnonzero(self.snapshot.tasks.alive & (self.status == TaskStatus.RELEASING) & (self.node >= 0)).tolist()
        late = [t for t in rows if self._since_deletion(t) > seconds]
        for task in late:
            self.nodes.stop_releasing(int(self.node[task]), self.class_of(task).request)
        self.stuck = frozenset(late)

    def _since_deletion(self, task: int) -> float:
        spec = self.task(task)
        return self.now - spec.deleted if spec.deleted is not None and spec.phase == "Running" else 0.0

    def ready_nodes(self) -> BoolArray:
        """Nodes whose conditions say that they are ready for work. Cached until a node changes (`model/node_facts.py`)."""
        return usable_nodes(self.snapshot)

    # where a gang may be put together

    @property
    def domains(self) -> JobDomains:
        """The tree of HyperNodes, and the domains of the jobs in it."""
        return self.shared(JobDomains)

    def evict_domains(self, job: Job, limit: int) -> list[int]:
        """Domains in which room for the whole job may be made, widest first."""
        lists = self.gradient_for_job(job, self.domains.tree.top, Purpose.EVICT)
        return [domain for each in lists for domain in each][:limit]

    def evict_domains_of(self, sub_job: SubJob, domain: int) -> list[int]:
        """Domains inside the job's domain in which one sub-job may be placed."""
        return [each for found in self.gradient_for_sub_job(sub_job, domain, Purpose.EVICT) for each in found]

    def start_turn(self, job: Job | None) -> None:
        """An action begins to work on this job, or ended its turns. Raises StepsUsedUp where the cycle may do no more."""
        if job is not None:
            self.steps.check()
            self.steps.spend(1)
        if self.note_job is not None:
            self.turn = "" if job is None else job.key
            self.note_job(self.turn)

    # changes, through statements alone

    def statement(self, *, trial: bool = False) -> Statement:
        """An undo log for one attempt. Raises CycleStopped where the caller of the cycle wants no further attempt. `trial`: what it
        undoes leaves no note on the job."""
        if self._proceed is not None and not self._proceed():
            raise CycleStopped
        return Statement(self, trial=trial)

    def shared(self, kind: Callable[[Session], S]) -> S:
        """The session's only object of this class, made when first asked for. Plugins share figures by it.

        If it has the methods of `AllocateEvents`, it gets every change before the plugins do."""
        found: S | None = self._shared.get(kind)
        if found is None:
            found = self._shared[kind] = kind(self)
            self.events.add(found)
        return found

    def evictable(self, candidates: Sequence[int]) -> Sequence[int]:
        """Candidates without the pods that the Eviction API would refuse to evict."""
        protected = self.shared(ProtectedPods)
        return candidates if protected.rows is None else [task for task in candidates if not protected.has(task)]

    def residents_changed(self, tasks: Sequence[int], nodes: Sequence[int], *, joined: bool) -> None:
        self.residents.moved(tasks, nodes, joined=joined)

    # set-up

    def _shard(self) -> tuple[BoolArray | None, bool]:
        """(mask of the nodes in this scheduler's shard, whether the shard is hard); (None, False) without sharding."""
        mode = self.policy.params.get("shardingMode")
        if mode not in ("hard", "soft"):
            return None, False
        own, self.shard_problems = shard_nodes(self.snapshot, self.policy)
        return np.array([name in own for name in self.nodes.names], dtype=bool), mode == "hard"


def _set_rows(marks: BoolArray) -> list[int]:
    """The rows that are marked. Several times quicker than `np.flatnonzero` for the few thousand jobs of most clusters."""
    rows: list[int] = marks.nonzero()[0].tolist()
    return rows


def _key(job: Job) -> str:
    return job.key
