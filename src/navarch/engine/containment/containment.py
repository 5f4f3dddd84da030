"""Contains failures: what raises while it works on a job costs that job its place in this cycle, and no other job anything.

The cycle starts again from the same figures without the job. That is exact: every other job is decided as if this one did not exist,
whatever state the failure left behind. Restarts are bounded; after the last one only the failures are decided, and the next cycle
goes on without the jobs and nodes that failed. A shape that fails twice costs every job that has it its place, a namespace with
several failures all its waiting jobs. What raises while it reads a node costs that node its place: the cycle starts again without the
node. If it raises for the same job on another node, the job is set aside.

A plugin that fails without a job or node at hand, or on too many jobs, is not left out: a cycle without one of its rules would place
pods where they must not be. The cycle starts again with a guard around the plugin, and where it fails again it refuses
(`guarded_plugins`). Its orders and scores are left out, because they forbid nothing. What cannot be laid to any job, node or plugin
ends the cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from traceback import format_exception

import numpy as np

from navarch.engine.containment.culprit import Culprit, error_text, find_culprit
from navarch.engine.containment.left_out_nodes import LeftOutNodes
from navarch.engine.containment.set_aside import OpeningFigures, SetAside
from navarch.engine.pod_conditions import pod_reason
from navarch.engine.reasons import Event, Reason
from navarch.engine.record import CycleRecord, JobDecision, JobFailure, NodeFailure, PluginFailure, TaskRefusal
from navarch.model.snapshot import Snapshot
from navarch.model.status import STATUS_NAMES, TaskStatus

MOST_RESTARTS = 16
TOO_LONG = "the cycle took too long: nothing was decided but that the job or node at hand is set aside"
TOO_MANY = f"rules failed on jobs or nodes more than {MOST_RESTARTS} times: nothing else was decided in this cycle"
REFUSED = "what needs its consent is refused"
MOST_IN_NAMESPACE = 3
"""Restarts for jobs of one namespace; then all its waiting jobs are set aside."""
_UNDONE_BY = (Event.QUEUE_CHANGED, Event.POLICY_CHANGED)
"""Beside its back-off and changes of its own, which every job that waits is tried again for."""


class CycleFailed(RuntimeError):
    """A failure that no job, no node and no plugin can be made responsible for."""


class CycleTimeout(Exception):
    """The cycle takes longer than it may: raised from outside into whatever is running."""

    def __str__(self) -> str:
        return "the cycle took too long"


class LostCount(Exception):
    """A guarded plugin failed when it was told what happens. It has to refuse from the beginning of the cycle."""

    def __init__(self, plugin: str, reason: Reason) -> None:
        super().__init__(reason.message)
        self.plugin, self.reason = plugin, reason


class Containment:
    def __init__(
        self,
        snapshot: Snapshot,
        set_aside: Collection[str] = (),
        left_out_nodes: Collection[str] = (),
        failed_before: Sequence[JobFailure] = (),
    ) -> None:
        """`set_aside`, `left_out_nodes`: keys of jobs and names of nodes that take no part from the beginning.
        `failed_before`: failures of such jobs that are still to be told."""
        self.snapshot = snapshot
        self.opening = OpeningFigures(snapshot)
        self._aside = SetAside(snapshot)
        self._restarts = 0
        self.gave_up = ""
        """Why nothing but the failures is decided in this cycle; empty while it goes on."""
        self._shapes: Counter[int] = Counter()
        self._namespaces: Counter[str] = Counter()
        self._failures: dict[int, JobFailure] = {}
        self._nodes = LeftOutNodes(snapshot)
        self._nodes.add(sorted(left_out_nodes))
        self._node_failures: list[NodeFailure] = []
        self._read_nodes: set[tuple[int, ...]] = set()
        """Jobs on whose behalf a node was read that was then left out."""
        self.without_preferences: dict[str, str] = {}
        """Plugin from outside of Navarch whose orders and scores take no part in this cycle -> why."""
        self.guarded: dict[str, Reason | None] = {}
        """Plugin that refuses where it fails, for the rest of this cycle -> why it refuses whatever it is asked about; None: it does
        not."""
        self._plugin_failures: list[PluginFailure] = []
        told = {failure.job: failure for failure in failed_before}
        for row, key in enumerate(snapshot.jobs.keys if set_aside else ()):
            if key in set_aside:
                if key in told and snapshot.jobs.specs[row] is not None:
                    self._failures[row] = told[key]
                self._aside.add(row)
                self._aside.add(row)  # pods on nodes as well: it failed before

    def take(self, error: BaseException) -> bool:
        """Set the job aside, or leave the node out, on which this was raised, or guard the plugin that raised it. False: there were
        too many failures, or one took too long. Nothing more is decided in this cycle then, but what failed is told, so that the next
        cycle goes on without it. CycleFailed: no job, no node and no plugin is to blame."""
        culprit = find_culprit(error, self.snapshot)
        self.opening.put_back()
        if isinstance(error, LostCount) and self.guarded[error.plugin] is None:
            self.guarded[error.plugin] = error.reason
            return True
        self._restarts += 1
        told = "".join(format_exception(error))
        removed = of_node = self._leave_out_node(culprit, error, told)
        rows = [] if of_node else self._rows(culprit)
        for row in rows:
            removed |= self._aside.add(row)
            key = self.snapshot.jobs.keys[row]
            failure = JobFailure(key, culprit.where, error_text(error), told, isinstance(error, CycleTimeout))
            self._failures.setdefault(row, failure)
        if not removed or self._restarts > MOST_RESTARTS:
            if self._leave_out(culprit, error) or (not of_node and self._guard(culprit, error, told)):
                return True
        if not removed:
            raise CycleFailed(f"{culprit.where} failed: {error_text(error)}") from error
        error.__traceback__ = None  # it holds the session and all its arrays
        if isinstance(error, CycleTimeout):
            self.gave_up = TOO_LONG
        elif self._restarts > MOST_RESTARTS:
            self.gave_up = TOO_MANY
        return not self.gave_up

    def _leave_out(self, culprit: Culprit, error: BaseException) -> bool:
        """Go on without the orders and scores of the plugin, if it was one of them that failed."""
        plugin = culprit.preference_of
        if not plugin or plugin in self.without_preferences or isinstance(error, CycleTimeout):
            return False
        text = f"{culprit.where} failed: {error_text(error)}; the orders and scores of plugin {plugin} are left out of this cycle"
        self.without_preferences[plugin] = text
        return True

    def _guard(self, culprit: Culprit, error: BaseException, told: str) -> bool:
        """Go on with a plugin that refuses where it fails."""
        if not culprit.plugin or culprit.plugin in self.guarded or isinstance(error, CycleTimeout):
            return False
        self.guarded[culprit.plugin] = None
        self._plugin_failures.append(PluginFailure(culprit.plugin, culprit.where, error_text(error), told))
        return True

    def _leave_out_node(self, culprit: Culprit, error: BaseException, told: str) -> bool:
        seen_before = bool(culprit.rows) and culprit.rows in self._read_nodes
        if not culprit.node or culprit.node in self._nodes.names or seen_before:
            return False
        self._read_nodes.add(culprit.rows)
        self._nodes.add([culprit.node])
        self._node_failures.append(NodeFailure(culprit.node, culprit.where, error_text(error), told))
        return True

    def _rows(self, culprit: Culprit) -> list[int]:
        """The jobs to set aside for a failure: one at first."""
        if len(culprit.rows) != 1:
            return list(culprit.rows)
        (row,) = culprit.rows
        tasks, jobs = self.snapshot.tasks, self.snapshot.jobs
        namespace = jobs.keys[row].partition("/")[0]
        self._namespaces[namespace] += 1
        waiting = tasks.alive & (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0)
        if self._namespaces[namespace] > MOST_IN_NAMESPACE:
            owners = np.unique(tasks.job[waiting]).tolist()
            return sorted({row, *(other for other in owners if jobs.keys[other].startswith(f"{namespace}/"))})
        if culprit.shape >= 0:
            self._shapes[culprit.shape] += 1
            if self._shapes[culprit.shape] > 1:
                return sorted({row, *np.unique(tasks.job[waiting & (tasks.shape == culprit.shape)]).tolist()})
        return [row]

    def restore(self) -> None:
        self._nodes.restore()
        self._aside.restore()

    def report(self, record: CycleRecord) -> None:
        """Jobs that were set aside are in the record with the reason. To be called after `restore`."""
        record.warnings += self.without_preferences.values()
        record.plugin_failures = sorted(self._plugin_failures, key=lambda failure: failure.plugin)
        record.warnings += [f"{each.where} failed: {each.error}; {REFUSED}" for each in record.plugin_failures]
        record.node_failures = sorted(self._node_failures, key=lambda failure: failure.node)
        record.warnings += [f"node {each.node} is left out: {each.where} failed: {each.error}" for each in record.node_failures]
        if not self._failures:
            return
        record.failures = [failure for _, failure in sorted(self._failures.items(), key=lambda item: item[1].job)]
        decided = {row: self._decision(row, failure) for row, failure in self._failures.items()}
        names = {decision.job for decision in decided.values()}
        record.jobs = sorted(
            [*(job for job in record.jobs if job.job not in names), *decided.values()], key=lambda decision: decision.job
        )

    def _decision(self, row: int, failure: JobFailure) -> JobDecision:
        jobs, tasks = self.snapshot.jobs, self.snapshot.tasks
        spec = jobs.spec_of(row)
        assert spec is not None
        text = f"{failure.where} failed on this job, which is set aside for this cycle: {failure.error}"
        reason = Reason("InternalError", text, figures={"where": failure.where, "error": failure.error}, undone_by=_UNDONE_BY)
        waiting = [tasks.spec(task) for task in jobs.tasks[row] if tasks.status[task] == TaskStatus.PENDING and not tasks.gated[task]]
        said = pod_reason(reason.code)
        return JobDecision(
            job=spec.key,
            queue=spec.queue,
            phase=spec.phase or "Pending",
            min_member=spec.min_member,
            pods={STATUS_NAMES[i]: n for i, n in enumerate(jobs.counts[row].tolist()) if n},
            conditions=spec.conditions,
            reasons=(reason,),
            refusals=tuple(TaskRefusal(task.key, task.uid, said, text) for task in sorted(waiting, key=lambda task: task.name)),
            shadow=spec.shadow,
            dialect=spec.dialect,
            changed=False,
            last_started=spec.last_started,
            last_evicted=spec.last_evicted,
            stale_since=spec.stale_since,
        )
