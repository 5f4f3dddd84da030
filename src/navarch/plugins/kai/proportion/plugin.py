"""KAI's proportion: fair shares in a tree of queues, the order of queues, and the rules of reclaim.

When a session opens, the cluster is divided over the tree (`share_division`) by the amounts that each subtree holds and requests.
The shares are fixed for the cycle; the allocated amounts follow every placement and eviction. The limits
(`queue_tree.over_capacity`), the order of queues (`queue_ranking`) and the rules of reclaim (`reclaim_rules`) use these figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.job import Job
from navarch.engine.placement.hopeless_tasks import HopelessTasks
from navarch.engine.plugin import Plugin
from navarch.engine.points.gang_protocols import Scenario
from navarch.engine.points.protocols import Change, HardLimit
from navarch.engine.queue import MOST_LEVELS, Queue
from navarch.engine.reasons import Event, Reason
from navarch.engine.record import QueueFigures
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.objects.queue_usage import QUEUE_USAGE
from navarch.model.resources import BoolArray, IntArray
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import IS_ALLOCATED, TaskStatus
from navarch.plugins.kai.amounts import GPU, RESOURCES, KaiAmounts
from navarch.plugins.kai.proportion.queue_problems import displaced
from navarch.plugins.kai.proportion.queue_ranking import LAST, QueueRankKey, rank_key
from navarch.plugins.kai.proportion.queue_tree import QueueTree, over_capacity
from navarch.plugins.kai.proportion.reclaim_rules import may_reclaim, may_take, most_taken, worth_reclaiming
from navarch.plugins.kai.proportion.share_division import NO_PARENT, UNLIMITED, Floats, Ints, QueueClaims, fair_shares, seniority
from navarch.plugins.kai.quota_messages import beyond_share, over_limit, over_quota

_ZERO = [0.0] * len(RESOURCES)
_NOTHING: Floats = np.zeros(len(RESOURCES))
_UNDONE_BY = (Event.POD_REMOVED, Event.QUEUE_CHANGED, Event.JOB_CHANGED)
DEFAULT_PART = "default"
"""The only part of a job without sub-groups."""
OVER_LIMIT, OVER_QUOTA = "OverLimit", "NonPreemptibleOverQuota"
"""Codes of refusals, as KAI names them in the status of a group."""


class KaiProportion(Plugin):
    """Divides the cluster over a tree of queues: quota first, then what is left by weight and past usage"""

    name = "proportion"
    dialect = "kai"
    arguments = (
        Argument("kValue", "float", 1.0, "how much past usage weighs; 0: not at all", minimum=0.0),
        Argument("relcaimerSaturationMultiplier", "float", 1.0, "how much more saturated a victim queue must be", minimum=1.0),
    )

    def after_open(self) -> None:
        """What is asked for in vain is known only when the node functions are."""
        session = self.session
        self.amounts = session.shared(KaiAmounts)
        self.full = bool(session.policy.param("fullHierarchyFairness"))
        self.queues = linked(session.queues.values(), full=self.full)
        self.row = {queue.name: row for row, (queue, _) in enumerate(self.queues)}
        parent = np.array([self.row.get(above, NO_PARENT) for _, above in self.queues], dtype=np.intp)
        self.total = self.amounts.total()
        self.everything: list[float] = self.total.tolist()
        allocated, fixed, request = self._held(parent)
        self.claims = self._claims(request)
        shares = fair_shares(parent, self.claims, self.total, self.given.number("kValue"))
        self.tree = QueueTree(parent, self.claims.quota, self.claims.limit, shares, allocated, fixed)
        self.request = request
        self.displaced = displaced(session.queues, RESOURCES, frozenset(session.snapshot.jobs.queue_names))
        """Queues in which no job may stand, and why."""
        self.moved = [0] * len(self.queues)
        self._hard: dict[tuple[int, str], HardLimit | None] = {}
        self._held_by_victims: tuple[Sequence[Job], list[tuple[int, Floats]]] | None = None
        """The victims of the last question, with the queue and the holdings of each: a search asks many times."""
        self._worth: dict[int, tuple[tuple[int, ...], bool]] = {}
        self.paths = [list(self.tree.path(row)) for row in range(len(self.queues))]
        self.bounded = [bool(np.isfinite(self.tree.limit[:, path]).any()) for path in self.paths]
        """Whether any limit on the way up is finite."""
        due = self.tree.allocatable()
        self.fixed_figures = [
            (self.tree.share[:, r].tolist(), self.tree.quota[:, r].tolist(), due[:, r].tolist()) for r in range(len(self.queues))
        ]

    def close(self) -> None:
        """Give the reason to jobs in a queue without a place in the tree; no action reaches them."""
        if not self.displaced:
            return
        for job in self.session.jobs_with_pending():
            reason = self.displaced.get(job.queue.name)
            if reason is not None:
                job.refuse(reason)

    @property
    def saturation(self) -> float:
        return self.given.number("relcaimerSaturationMultiplier")

    # set-up

    def _held(self, parent: Ints) -> tuple[Floats, Floats, Floats]:
        """(resources, queues): allocated, the part of it that cannot be preempted, and asked for, subtrees included.

        Summed by queue and shape; only shares of memory, which count by the node they are on, are looked at one by one."""
        session = self.session
        allocated, fixed, request = (np.zeros((len(RESOURCES), len(self.queues))) for _ in range(3))
        rows, queue, soft = self._counted_tasks()
        pending = session.status[rows] == TaskStatus.PENDING
        shapes = session.shape[rows]
        by_memory = np.array([s.devices is not None and s.devices.memory > 0 for s in session.snapshot.shapes], dtype=bool)
        single = ~pending & by_memory[shapes] if by_memory.any() else np.zeros(len(rows), dtype=bool)
        kinds, first, inverse = np.unique(shapes, return_index=True, return_inverse=True)
        amounts = np.array([self.amounts.pending(int(rows[i])) for i in first]).T.reshape(len(RESOURCES), len(kinds))
        for into, wanted in ((request, ~single), (allocated, ~single & ~pending), (fixed, ~single & ~pending & ~soft)):
            for resource, amount in enumerate(amounts):
                into[resource] += np.bincount(queue[wanted], weights=amount[inverse[wanted]], minlength=len(self.queues))
        for i in np.flatnonzero(single).tolist():
            amount = self.amounts.placed(int(rows[i]), int(session.node[rows[i]]))
            for into in (request, allocated) if soft[i] else (request, allocated, fixed):
                into[:, queue[i]] += amount
        for row in deepest_first(parent):
            if parent[row] != NO_PARENT:
                for figures in (allocated, fixed, request):
                    figures[:, parent[row]] += figures[:, row]
        return allocated, fixed, request

    def _counted_tasks(self) -> tuple[Ints, Ints, BoolArray]:
        """Tasks that count for a queue: their rows, their queues, and whether they can be preempted. What jobs wait for counts
        whether they take part in this cycle or not; what no node could ever hold counts only where the policy wants it so."""
        session, tasks, jobs = self.session, self.session.snapshot.tasks, self.session.snapshot.jobs
        counted: BoolArray = IS_ALLOCATED[session.status] | ((session.status == TaskStatus.PENDING) & ~tasks.gated)
        if not session.semantics.impossible_demand_counts:
            counted[session.shared(HopelessTasks).rows] = False
        rows = np.flatnonzero(counted & tasks.alive & (tasks.job >= 0))
        numbers = np.array([self.row.get(name, -1) for name in jobs.queue_names] + [-1], dtype=np.intp)
        owner = tasks.job[rows]
        queue = numbers[jobs.queue[owner]]
        member = queue >= 0
        for i in np.flatnonzero(member & (jobs.in_parts[owner] | tasks.in_part[rows])).tolist():
            spec = jobs.spec_of(int(owner[i]))
            member[i] = spec is not None and is_member(spec, session.task(int(rows[i])))
        return rows[member], queue[member], jobs.preemptable[owner[member]]

    def _claims(self, request: Floats) -> QueueClaims:
        specs = [queue.spec for queue, _ in self.queues]
        shares = [[spec.shares[name] for spec in specs] for name in RESOURCES]
        usage = self.session.snapshot.objects.get(QUEUE_USAGE, {})
        size = (len(RESOURCES), len(specs))
        return QueueClaims(
            quota=_bounds([[share.quota for share in row] for row in shares], size),
            limit=_bounds([[share.limit for share in row] for row in shares], size),
            weight=np.array([[share.over_quota_weight for share in row] for row in shares]).reshape(size),
            request=request,
            usage=np.array([[usage.get(("", s.name), {}).get(name, 0.0) for s in specs] for name in RESOURCES]).reshape(size),
            priority=np.array([spec.priority for spec in specs], dtype=np.intp),
            seniority=seniority([spec.created for spec in specs], [spec.uid or spec.name for spec in specs]),
        )

    # figures that follow placements

    def on_allocate(self, change: Change) -> None:
        self._move(change, 1.0)

    def on_deallocate(self, change: Change) -> None:
        self._move(change, -1.0)

    def on_evicted_again(self, job: Job, task: int, node: int, sign: int) -> None:
        """A victim that a scenario names twice is taken from its queue's figures twice."""
        self._add(job, sign * self.amounts.placed(task, node))

    def _move(self, change: Change, sign: float) -> None:
        amounts = self.amounts
        if len(change.tasks) == 1:
            total = sign * amounts.placed(change.tasks[0], change.nodes[0])
        else:
            total = sign * np.sum([amounts.placed(t, n) for t, n in zip(change.tasks, change.nodes, strict=True)], axis=0)
        self._add(change.job, total)

    def _add(self, job: Job, amount: Floats) -> None:
        row = self.row.get(job.queue.name)
        if row is None:
            return
        tree = self.tree
        for above in self.paths[row]:
            self.moved[above] += 1
            tree.allocated[:, above] += amount
            if not job.spec.preemptable:
                tree.fixed[:, above] += amount

    # the order of queues

    def weigh_waiting(self, tasks: Sequence[int]) -> Floats:
        if len(tasks) == 1:
            return self.amounts.pending(tasks[0])
        return np.sum([self.amounts.pending(task) for task in tasks], axis=0) if tasks else np.zeros(len(RESOURCES))

    def weigh_held(self, tasks: Sequence[int]) -> Floats:
        """What the allocated tasks request. GPU memory counts no GPU here; a promise counts nothing."""
        status = self.session.status
        if len(tasks) == 1:
            return self.amounts.asked(tasks[0]) if IS_ALLOCATED[status[tasks[0]]] else _NOTHING
        held = [self.amounts.asked(task) for task in tasks if IS_ALLOCATED[status[task]]]
        return np.sum(held, axis=0) if held else np.zeros(len(RESOURCES))

    def rank_version(self, queue: Queue) -> int:
        row = self.row.get(queue.name)
        return -1 if row is None else self.moved[row]

    def above(self, queue: Queue) -> Queue | None:
        return queue.parent if self.full else None

    def queue_rank(self, queue: Queue, waiting: Floats | None, leaving: Floats | None) -> QueueRankKey:
        row = self.row.get(queue.name)
        if row is None:
            return LAST
        zero = _ZERO
        share, quota, due = self.fixed_figures[row]
        return rank_key(
            self.tree.allocated[:, row].tolist(),
            share,
            quota,
            due,
            self.everything,
            queue.spec.priority,
            zero if waiting is None else waiting.tolist(),
            zero if leaving is None else leaving.tolist(),
        )

    # bounds

    def chunk_refusal(self, job: Job, tasks: Sequence[int]) -> Reason | None:
        """Why these tasks of the job may not be placed together, if a limit or a quota up to the root forbids it."""
        row = self.row.get(job.queue.name)
        if row is None:
            return self.displaced[job.queue.name]
        if job.spec.preemptable and not self.bounded[row]:
            return None
        amount = np.sum([self.amounts.at_least(task) for task in tasks], axis=0)
        return self.refusal(job, row, amount)

    def within_bounds(self, job: Job, task: int) -> BoolArray | None:
        """Nodes on which the task stays within the limits. Only requests for GPU memory differ between nodes."""
        devices = self.session.class_of(task).shape.devices
        row = self.row.get(job.queue.name)
        if devices is None or not devices.memory or row is None:
            return None
        memories = self.amounts.memory
        fits = {
            int(memory): self.refusal(job, row, self.amounts.placed(task, int(node))) is None
            for memory, node in zip(*np.unique(memories, return_index=True), strict=True)
        }
        return np.array([fits[int(memory)] for memory in memories], dtype=bool)

    def bounds_reason(self, job: Job, task: int, node: int) -> Reason | None:
        row = self.row.get(job.queue.name)
        return None if row is None else self.refusal(job, row, self.amounts.placed(task, node))

    def refusal(self, job: Job, row: int, amount: Floats, *, limits: bool = True) -> Reason | None:
        """`limits` False: quotas alone are asked."""
        broken = over_capacity(self.tree, row, amount, job.spec.preemptable, limits=limits)
        if broken is None:
            return None
        queue, tree, worst = self.queues[broken.queue][0].name, self.tree, int(np.argmax(broken.resources))
        resource = RESOURCES[worst]
        bound = tree.limit if broken.over_limit else tree.quota
        held = tree.allocated if broken.over_limit else tree.fixed
        asked, most, has = float(amount[worst]), float(bound[worst, broken.queue]), float(held[worst, broken.queue])
        figures: dict[str, int | float | str] = {"queue": queue, "resource": resource}
        figures |= {"requested": asked, "bound": most, "held": has}
        words = over_limit if broken.over_limit else over_quota
        text = words(queue, resource, asked, most, has)
        code = OVER_LIMIT if broken.over_limit else OVER_QUOTA
        return Reason(code, text, figures=figures, undone_by=_UNDONE_BY)

    def hard_limits(self, job: Job) -> Sequence[HardLimit]:
        """Limits on the way up; for a job that cannot be preempted quotas too."""
        row = self.row.get(job.queue.name)
        if row is None:
            return ()
        codes = (OVER_LIMIT,) if job.spec.preemptable else (OVER_LIMIT, OVER_QUOTA)
        found = (self._hard_limit(above, code) for above in self.paths[row] for code in codes)
        return [limit for limit in found if limit is not None]

    def _hard_limit(self, row: int, code: str) -> HardLimit | None:
        if (row, code) not in self._hard:
            tree, queue = self.tree, self.queues[row][0].name
            bound = (tree.limit if code == OVER_LIMIT else tree.quota)[:, row].tolist()
            held = (tree.allocated if code == OVER_LIMIT else tree.fixed)[:, row].tolist()
            left = {name: most - has for name, most, has in zip(RESOURCES, bound, held) if np.isfinite(most)}
            words = over_limit if code == OVER_LIMIT else over_quota

            def told(resource: str, asked: float, left: float) -> str:
                most = bound[RESOURCES.index(resource)]
                return words(queue, resource, asked, most, most - left)

            self._hard[row, code] = HardLimit(left, self._least, told, code) if left else None
        return self._hard[row, code]

    def _least(self, task: int) -> dict[str, float]:
        return {name: amount for name, amount in zip(RESOURCES, self.amounts.at_least(task).tolist()) if amount > 0}

    # reclaim

    def search_started(self, job: Job) -> None:
        """Keep what the queues hold before anything is evicted for the job: reclaim is judged by it."""
        self.before = replace(self.tree, allocated=self.tree.allocated.copy(), fixed=self.tree.fixed.copy())

    def may_reclaim(self, job: Job, tasks: Sequence[int]) -> Reason | None:
        row = self.row.get(job.queue.name)
        if row is None:
            return self.chunk_refusal(job, tasks)
        amount = self.weigh_waiting(tasks)
        if may_reclaim(self.tree, row, amount, job.spec.preemptable):
            return None
        return self.refusal(job, row, amount) or self._beyond_share(job, row, amount)

    def may_preempt(self, job: Job, tasks: Sequence[int]) -> Reason | None:
        """Refuses a non-preemptible job above the quota of its queue: evicting inside the queue does not lower what its
        non-preemptible jobs hold. Limits are not asked here: evicting inside the queue may bring it below them."""
        row = self.row.get(job.queue.name)
        if job.spec.preemptable or row is None:
            return None
        amount = np.sum([self.amounts.at_least(task) for task in tasks], axis=0)
        return self.refusal(job, row, amount, limits=False)

    def _beyond_share(self, job: Job, row: int, amount: Floats) -> Reason:
        tree, queue = self.tree, job.queue.name
        held, bound = tree.allocated[:, row], tree.share[:, row]
        worst = int(np.argmax(held + amount > bound))
        has, asked, most = float(held[worst]), float(amount[worst]), float(bound[worst])
        text = beyond_share(queue, RESOURCES[worst], asked, most, has)
        figures: dict[str, int | float | str] = {"queue": queue, "resource": RESOURCES[worst]}
        figures |= {"requested": asked, "bound": most, "held": has}
        return Reason("OverFairShare", text, figures=figures, undone_by=_UNDONE_BY)

    def reclaim_victim(self, job: Job, tasks: Sequence[int], victim: Job) -> bool:
        queue, giver = self.row.get(job.queue.name), self.row.get(victim.queue.name)
        if queue is None or giver is None:
            return False
        key = (job.row, job.version, self.moved[queue], self.moved[giver], len(tasks))
        kept = self._worth.get(giver)
        if kept is None or kept[0] != key:
            kept = self._worth[giver] = (key, worth_reclaiming(self.tree, queue, self.weigh_waiting(tasks), giver))
        return kept[1]

    def reclaim_scenario(self, scenario: Scenario) -> bool:
        """Of each job, every task beyond what its parts need goes as a unit of its own; then what they need goes as one unit."""
        moved_free = bool(self.session.policy.param("allowConsolidatingReclaim"))
        takings: dict[int, list[Floats]] = {}
        for job, tasks in scenario.victims:
            if len(job.tasks) == 1:
                if not (moved_free and tasks[0] in scenario.stays):
                    amount = self.amounts.placed(tasks[0], scenario.came_from[tasks[0]])
                    takings.setdefault(self.row[job.queue.name], []).append(amount)
                continue
            core = np.zeros(len(RESOURCES))
            elastic: list[Floats] = []
            in_core: dict[str, int] = {}
            has_core = False
            for task in tasks:
                leaf = job.tree.leaf_of(task)
                if leaf is None:
                    continue
                taken = in_core.get(leaf.name, 0)
                in_core[leaf.name] = taken + 1
                if moved_free and task in scenario.stays:
                    continue
                amount = self.amounts.placed(task, scenario.came_from[task])
                if taken < job.tree.required(leaf):
                    core, has_core = core + amount, True
                else:
                    elastic.append(amount)
            units = [*elastic, core] if has_core else elastic
            if units:
                takings.setdefault(self.row[job.queue.name], []).extend(units)
        queue, required = self.row[scenario.job.queue.name], self.weigh_waiting(scenario.tasks)
        return may_take(self.before, queue, required, scenario.job.spec.preemptable, list(takings.items()), self.saturation)

    def reclaim_bound(self, job: Job, tasks: Sequence[int], victims: Sequence[Job], lacking: IntArray) -> bool:
        """Columns of GPUs count whole ones, so a task holds no less of the shared figure than of any of them."""
        short = dict.fromkeys(RESOURCES, 0.0)
        for name, amount in zip(self.session.snapshot.resource_names, lacking.tolist(), strict=True):
            if name in ("cpu", "memory"):
                short[name] = amount
            elif name in GPU_RESOURCES and amount > 0:
                short["gpu"] += amount / 1000
        if self._held_by_victims is None or self._held_by_victims[0] is not victims:
            self._held_by_victims = victims, [(self.row[each.queue.name], self._held_by(each)) for each in victims]
        most = most_taken(self.before, self.row[job.queue.name], self.weigh_waiting(tasks), self._held_by_victims[1])
        return all(short[name] <= amount for name, amount in zip(RESOURCES, most.tolist(), strict=True))

    def _held_by(self, job: Job) -> Floats:
        node, active = self.session.node, job.tree.active
        if len(active) == 1:  # most victims
            return self.amounts.placed(active[0], int(node[active[0]]))
        total: Floats = np.sum([self.amounts.placed(task, int(node[task])) for task in active], axis=0)
        return total

    # for people

    def queue_figures(self, queue: Queue) -> QueueFigures:
        row = self.row.get(queue.name)
        if row is None:
            return QueueFigures(queue.name, {}, {}, {}, 0.0)
        tree = self.tree
        held, due = tree.allocated[:, row], tree.allocatable(row)
        due = np.where(np.isinf(due), self.total, due)
        share = max((float(h / d) for h, d in zip(held, due, strict=True) if d > 0), default=0.0)
        return QueueFigures(
            queue=queue.name,
            deserved={name: value for name, value in _mapping(tree.quota[:, row]).items() if np.isfinite(value)},
            allocated={name: round(value) for name, value in _mapping(held).items()},
            request={name: round(value) for name, value in _mapping(self.request[:, row]).items()},
            share=share,
            fair_share=_mapping(tree.share[:, row]),
            with_below=True,
        )


def linked(queues: Iterable[Queue], *, full: bool) -> list[tuple[Queue, str]]:
    """Queues with the name of their parent, by name: those with shares whose parents lead to a root. Without `full` the tree is
    flat: all queues that hold jobs are siblings under one root."""
    found = {queue.name: queue for queue in queues if set(RESOURCES) <= set(queue.spec.shares)}

    def reaches_top(queue: Queue) -> bool:
        seen: set[str] = set()
        name = queue.name
        while name:
            if name in seen or name not in found or len(seen) > MOST_LEVELS:
                return False
            seen.add(name)
            name = found[name].spec.parent
        return True

    kept = [found[name] for name in sorted(found) if reaches_top(found[name])]
    if full:
        return [(queue, queue.spec.parent) for queue in kept]
    parents = {queue.spec.parent for queue in kept}
    return [(queue, "") for queue in kept if queue.name not in parents]


def deepest_first(parent: Ints) -> list[int]:
    """Rows so that every queue comes before its parent."""
    depth = np.zeros(len(parent), dtype=np.intp)
    for row in range(len(parent)):
        above = int(parent[row])
        while above != NO_PARENT:
            depth[row] += 1
            above = int(parent[above])
    return [int(row) for row in np.argsort(-depth, kind="stable")]


def _bounds(rows: list[list[float]], size: tuple[int, int]) -> Floats:
    figures = np.array(rows, dtype=np.float64).reshape(size)
    return np.where(figures < 0, UNLIMITED, figures)


def _mapping(amounts: Floats) -> dict[str, float]:
    """By the names that other parts know: a GPU is a thousand of `nvidia.com/gpu`."""
    return {"cpu": float(amounts[0]), "memory": float(amounts[1]), "nvidia.com/gpu": float(amounts[GPU]) * 1000}


def part_of(job: JobSpec, task: TaskSpec) -> str | None:
    """The name of the task's sub-group; None if the job does not have it as a leaf.

    >>> from navarch.model.spec import Shape, SubGroupSpec
    >>> job = JobSpec("n/j", "q", sub_groups=(SubGroupSpec("a"), SubGroupSpec("b", parent="a")))
    >>> [part_of(job, TaskSpec("u", "n", "t", Shape(), sub_group=name)) for name in ("b", "a", "")]
    ['b', None, None]"""
    parents = {group.parent for group in job.sub_groups}
    leaves = {group.name for group in job.sub_groups if group.name not in parents} or {DEFAULT_PART}
    name = task.sub_group or DEFAULT_PART
    return name if name in leaves else None


def is_member(job: JobSpec, task: TaskSpec) -> bool:
    return (not job.sub_groups and not task.sub_group) or part_of(job, task) is not None
