"""schedule: tries each pending pod once, in the order of kube-scheduler's queue.

Pods are ordered by priority, age and name. Equal neighbours are placed in one step. A pod that finds no node may preempt before the
next pod is tried: its victims hold their resources until they are gone, and the pod is nominated for the node. Queues and shares have
no effect here. Where the profile has GangScheduling, the pods of a `scheduling.k8s.io` group are tried together and start only if its
minCount is reached, and the group may preempt as a whole (`gang_cycle`). Groups of other APIs are no gangs here; a warning of the
cycle says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np

from navarch.actions.kube_scheduler.gang_cycle import GangCycle
from navarch.actions.kube_scheduler.group_tree import GANG_API, GroupTrees
from navarch.actions.kube_scheduler.nominations import Nominations
from navarch.actions.kube_scheduler.preemption import Candidate, NoCandidate, PodPreemption
from navarch.actions.kube_scheduler.victim_units import VictimUnits
from navarch.engine.action import Action
from navarch.engine.arguments import Argument, Arguments
from navarch.engine.node_functions import NodeFilter, Rejection, TaskClass, first_rejection
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.fit_errors import ROOM, FitErrors
from navarch.engine.placement.shared_devices import UNSHARED, shares_devices
from navarch.engine.points.protocols import FeasibleNodes
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.resources import BoolArray
from navarch.model.status import TaskStatus

NO_NODES = "no nodes available to schedule pods"


def nodes_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes end the search; 0 per cent: fewer the larger the cluster.

    >>> nodes_to_find(5000, 0), nodes_to_find(5000, 100), nodes_to_find(80, 5)
    (500, 5000, 80)"""
    if nodes < 100:
        return nodes
    share = percentage or max(5, 50 - nodes // 125)
    return min(nodes, max(100, nodes * share // 100))


@dataclass(slots=True)
class Attempt:
    """The feasible nodes of a pod, or why there are none: `errors` by node, or a `rejection` of the pod itself."""

    feasible: BoolArray
    errors: FitErrors
    rejection: str = ""
    failed: bool = False
    """The attempt failed with an error."""
    node: int = -1
    """The only node to use; -1: choose among the feasible ones."""
    promised: frozenset[int] = frozenset()
    """Feasible nodes with other nominated pods: after one of them is used, filter again."""


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """How pods of one profile are scheduled."""

    limit: int
    """The search ends at this many feasible nodes."""
    preemption: PodPreemption | None
    rejecting: list[NodeFilter]
    naming: list[NodeFilter]
    post_filters: list[NodeFilter]
    """Filters that try to make room for a later attempt, where preemption finds no node."""


_NOWHERE: BoolArray = np.zeros(0, dtype=bool)


def _up_to_first(nodes: list[int], special: frozenset[int]) -> list[int]:
    """The beginning of the list up to and with the first node that is special."""
    for number, node in enumerate(nodes) if special else ():
        if node in special:
            return nodes[: number + 1]
    return nodes


def _queue_priority(session: Session, trees: GroupTrees, row: int) -> int:
    """The priority by which a pod stands in the queue and keeps a nomination: that of its root group, where the group has one."""
    job = session.job_of(row)
    if job is not None and job.spec.dialect == GANG_API and (job.spec.composite or not job.spec.priority_of_tasks):
        own = trees.leaf(job).root.priority
        if own is not None:
            return own
    return session.task(row).pod_priority


class Schedule(Action):
    """Places single pods by kube-scheduler's rules, and preempts for those that find no node"""

    name = "schedule"
    arguments = (
        Argument("percentageOfNodesToScore", "int", 100, "share of nodes to find before scoring; 0: by the cluster's size"),
        Argument("preemption", "bool", True, "whether a pod without a node may evict less important ones"),
        Argument("minCandidateNodesPercentage", "int", 10, "share of nodes to dry-run"),
        Argument("minCandidateNodesAbsolute", "int", 100, "dry-run at least so many nodes"),
        Argument("gangs", "bool", False, "whether scheduling.k8s.io groups start whole or not at all"),
    )

    def execute(self) -> None:
        session = self.session
        session.resources_by_filters = True
        self._settings: dict[str, ProfileSettings] = {}
        self._first = 0
        """Where the search for feasible nodes starts, when not all are looked for."""
        self.changes = 0
        """Placements and evictions that were kept in this cycle, so far."""
        self._failures: dict[tuple[int, int, str], FitErrors] = {}
        """What classes of pods failed with since the last placement or preemption."""
        trees = self._trees = GroupTrees(session)
        self.nominations = Nominations(session, partial(_queue_priority, session, trees))
        self.units = VictimUnits(session, trees if self._any_gangs() else None)
        gangs = GangCycle(self, trees, self.units)
        for rows in gangs.turns(self._waiting()):
            if gangs.is_gang(rows[0]):
                gangs.place(rows)
                continue
            for task, run in self._runs(rows):
                self._place(task, run)
        session.record.warnings += gangs.announced()
        trees.dissolve()

    def _any_gangs(self) -> bool:
        """Whether some profile has GangScheduling."""
        return self.given.flag("gangs") or any(self.given_for(profile).flag("gangs") for profile in self.session.policy.profiles)

    def _settings_of(self, task: TaskClass) -> ProfileSettings:
        found = self._settings.get(task.profile)
        if found is None:
            found = self._settings[task.profile] = self._read_settings(task.profile)
        return found

    def given_for(self, profile: str) -> Arguments:
        """The arguments of the action in this profile."""
        own = self.session.policy.profiles.get(profile)
        return self.given if own is None else Arguments(self.arguments, own.arguments)

    def _read_settings(self, profile: str) -> ProfileSettings:
        session = self.session
        given = self.given_for(profile)
        preemption = PodPreemption(
            session,
            self.nominations,
            given.integer("minCandidateNodesPercentage"),
            given.integer("minCandidateNodesAbsolute"),
            units=self.units,
        )
        filters, plain = session.functions[profile].filters, NodeFilter
        return ProfileSettings(
            limit=nodes_to_find(len(session.nodes), given.integer("percentageOfNodesToScore")),
            preemption=preemption if given.flag("preemption") else None,
            rejecting=[f for f in filters if type(f).reject is not plain.reject],
            naming=[f for f in filters if type(f).named_nodes is not plain.named_nodes],
            post_filters=[f for f in filters if type(f).post_filter is not plain.post_filter],
        )

    def _waiting(self) -> list[int]:
        """Pending pods in their order."""
        session, tasks = self.session, self.session.snapshot.tasks
        waiting = np.flatnonzero(tasks.alive & (session.status == TaskStatus.PENDING) & (tasks.job >= 0) & ~tasks.gated)
        jobs = session.snapshot.jobs
        waiting = waiting[(jobs.taking_part & jobs.marks.waiting)[tasks.job[waiting]]]
        pods = [(row, spec) for row in waiting.tolist() if not (spec := session.task(row)).deleting]
        pods.sort(key=lambda pod: (-_queue_priority(session, self._trees, pod[0]), pod[1].created, pod[1].namespace, pod[1].name))
        session.tried.update(dict.fromkeys(jobs.keys[number] for number in tasks.job[[row for row, _ in pods]].tolist()))
        return [row for row, _ in pods if session.job_of(row) is not None]

    def _runs(self, pods: list[int]) -> Iterator[tuple[TaskClass, list[int]]]:
        """Pods in their order, equal neighbours together."""
        session = self.session

        def kind(row: int) -> tuple[int, int, str, object]:
            spec = session.task(row)
            alone = row if spec.nominated_node else -1
            return session.class_of(row).number, spec.pod_priority, spec.preemption_policy, alone

        for _, run in groupby(pods, key=kind):
            rows = list(run)
            yield session.class_of(rows[0]), rows

    # placing

    def _place(self, task: TaskClass, rows: list[int]) -> None:
        session = self.session
        left = rows[::-1]
        while left:
            row = left[-1]
            known = self._failures.get(self._key(task, row))
            if known is not None and self.nominations.node_of(row) is None:
                self.refuse(left.pop(), known)
                continue
            session.start_turn(session.job_of(row))
            attempt, together = self.look(task, row)
            if attempt.node >= 0:
                self._allocate([left.pop()], [attempt.node], task)
                continue
            if not attempt.feasible.any():
                self._fail(task, left.pop(), attempt)
                continue
            nodes = session.view(task).choose_in(attempt.feasible, min(len(left), together))
            nodes = _up_to_first(nodes, attempt.promised)
            self._allocate([left.pop() for _ in nodes], nodes, task)

    def _allocate(self, rows: list[int], nodes: list[int], task: TaskClass) -> None:
        """One statement for neighbours of the same job."""
        session = self.session
        self.changed()
        self.changes += 1
        for job, pairs in groupby(zip(rows, nodes), key=lambda pair: session.job_of(pair[0])):
            assert job is not None
            members, places = zip(*pairs)
            for row in members:
                self.nominations.drop(row)
            statement = session.statement()
            statement.allocate(job, list(members), list(places), task)
            statement.commit()

    def changed(self) -> None:
        """What failed before may succeed now."""
        self._failures.clear()

    def look(self, task: TaskClass, row: int, within: BoolArray | None = None) -> tuple[Attempt, int]:
        """The feasible nodes of the pod now, and how many equal pods may be placed before filtering again. `within`: only these
        nodes exist for it."""
        attempt, together = self._look(task, row, within)
        for plugin in self.session.implementing(FeasibleNodes):
            if attempt.failed or not (attempt.node >= 0 or attempt.feasible.any()):
                break
            attempt, together = self._reviewed(plugin, task, attempt), 1
        return attempt, together

    def _reviewed(self, plugin: FeasibleNodes, task: TaskClass, attempt: Attempt) -> Attempt:
        """The attempt without the nodes that the plugin refuses."""
        size = len(self.session.nodes)
        feasible = attempt.feasible
        if attempt.node >= 0:
            feasible = np.zeros(size, dtype=bool)
            feasible[attempt.node] = True
        answer = plugin.filter_feasible(task, feasible)
        if answer.error:
            return Attempt(_NOWHERE, FitErrors(size, unresolvable=np.ones(size, dtype=bool)), answer.error, failed=True)
        if answer.feasible.any():
            return attempt if attempt.node >= 0 else replace(attempt, feasible=answer.feasible)
        rest = self.session.view(task).explain(resources=False, within=~feasible)
        counts = Counter(rest.nodes) + Counter(text for text, _ in answer.refusals.values() if text)
        final = rest.unresolvable.copy()
        final[[row for row, (_, hopeless) in answer.refusals.items() if hopeless]] = True
        return Attempt(_NOWHERE, FitErrors(size, dict(sorted(counts.items())), final))

    def _look(self, task: TaskClass, row: int, within: BoolArray | None) -> tuple[Attempt, int]:
        session = self.session
        size = len(session.nodes)
        if not size:
            return Attempt(_NOWHERE, FitErrors(0), NO_NODES), 1
        rejected = self._rejection(task)
        if rejected is not None:
            rejection, undone_by = rejected
            everywhere = np.full(size, rejection.unresolvable)
            errors = FitErrors(size, unresolvable=everywhere, codes=(rejection.code,))
            errors.undone_by = tuple(dict.fromkeys((*ROOM, *undone_by)))
            return Attempt(_NOWHERE, errors, rejection.message, failed=rejection.error), 1
        rows, which = self._named(task)
        if rows is not None and within is not None:
            rows = [each for each in rows if within[each]]
        if rows is not None and len(rows) == 1 and self.nominations.node_of(row) is None:
            if not self.nominations.expected(row, rows[0]) and self._takes(task, rows[0]):
                return Attempt(_NOWHERE, FitErrors(0), node=rows[0]), 1
        named: BoolArray | None = None
        if rows is not None:
            named = np.zeros(size, dtype=bool)
            named[rows] = True
        view = session.view(task)
        nominated = self.nominations.node_of(row)
        if nominated is not None and within is not None and not within[nominated]:
            nominated = None
        if nominated is not None and (named is None or named[nominated]) and self.nominations.admits(view, row, nominated):
            return Attempt(_NOWHERE, FitErrors(0), node=nominated), 1
        feasible = view.feasible() if named is None else view.feasible() & named
        if within is not None:
            feasible = feasible & within
        feasible, looked_at = self.nominations.respected(view, row, feasible)
        if not feasible.any():
            return Attempt(feasible, self._errors(view, row, named, which, within)), 1
        limit = self._settings_of(task).limit
        if limit < size:
            feasible = self._sample(feasible, limit)
        if int(feasible.sum()) > 1 and (problem := self._problem(task)):
            return Attempt(_NOWHERE, FitErrors(size, unresolvable=np.ones(size, dtype=bool)), problem, failed=True), 1
        promised = frozenset(node for node in looked_at if feasible[node])
        return Attempt(feasible, FitErrors(0), promised=promised), 1 if limit < size else size

    def _rejection(self, task: TaskClass) -> tuple[Rejection, tuple[Event, ...]] | None:
        """The rejection of the pod before any node is filtered, and the events that may undo it."""
        if task.shape.unsupported:
            return Rejection(
                f"the pod needs what Navarch does not support: {', '.join(task.shape.unsupported)}", reason="Unsupported"
            ), ()
        if shares_devices(task):
            return Rejection(UNSHARED, reason="Unsupported"), ()
        found = first_rejection(self._settings_of(task).rejecting, task)
        if found is None:
            return None
        rule, rejection = found
        if rejection.error:
            rejection = Rejection(f'running PreFilter plugin "{rule.name}": {rejection.message}', error=True)
        return rejection, rule.undone_by

    def _problem(self, task: TaskClass) -> str:
        for scorer in self.session.scorers_for(task):
            if problem := scorer.problem(task):
                return f'running PreScore plugin "{scorer.name}": {problem}'
        return ""

    def _named(self, task: TaskClass) -> tuple[list[int] | None, list[str]]:
        """Rows of the nodes that the pod itself names, and the filters that say so; None: it names no node."""
        chosen: frozenset[str] | None = None
        which = []
        for f in self._settings_of(task).naming:
            names = f.named_nodes(task) if f.applies(task) else None
            if names is not None:
                chosen = names if chosen is None else chosen & names
                which.append(f.name)
        if chosen is None:
            return None, which
        rows = (self.session.snapshot.nodes.row(name) for name in sorted(chosen))
        return [row for row in rows if row is not None], sorted(which)

    def _takes(self, task: TaskClass, node: int) -> bool:
        """Whether one node passes every filter, without a view of all nodes: for pods that name their node."""
        at = self.session.nodes.at(np.array([node]))
        return all(f.mask(task, at)[0] for f in self.session.filters_for(task))

    def _sample(self, feasible: BoolArray, limit: int) -> BoolArray:
        """The first feasible nodes from where the last search ended."""
        size = len(feasible)
        order = (np.arange(size) + self._first) % size
        found = np.flatnonzero(feasible[order])
        if len(found) > limit:
            looked_at = int(found[limit - 1]) + 1
            found = found[:limit]
        else:
            looked_at = size
        out = np.zeros(size, dtype=bool)
        out[order[found]] = True
        self._first = (self._first + looked_at) % size
        return out

    # failing

    def _errors(self, view: ClassView, row: int, named: BoolArray | None, which: list[str], within: BoolArray | None) -> FitErrors:
        """Why every node refuses: nodes that the pod does not name, nodes with nominated pods, and the rest."""
        size = len(self.session.nodes)
        among = np.ones(size, dtype=bool) if named is None else named
        if within is not None:
            among, size = among & within, int(within.sum())
        counts, promised, unresolvable = self.nominations.refusals(view, row, among)
        rest = view.explain(resources=False, within=among & ~promised)
        counts.update(rest.nodes)
        outside = size - int(among.sum())
        if outside:
            counts[f"node(s) didn't satisfy plugin(s) [{' '.join(which)}]"] = outside
        hopeless = unresolvable | rest.unresolvable | ~among
        return FitErrors(len(hopeless), dict(sorted(counts.items())), hopeless, undone_by=rest.undone_by)

    def _key(self, task: TaskClass, row: int) -> tuple[int, int, str]:
        spec = self.session.task(row)
        return task.number, spec.pod_priority, spec.preemption_policy

    def _fail(self, task: TaskClass, row: int, attempt: Attempt) -> None:
        errors, size, settings = attempt.errors, len(self.session.nodes), self._settings_of(task)
        found: Candidate | NoCandidate | None = None
        if attempt.failed or not size:
            errors.message = attempt.rejection
            errors.codes = ("SchedulerError",) if attempt.failed else ()
        else:
            found = self._preempt(row, errors, settings.preemption)
            texts = [] if isinstance(found, Candidate) else [each.post_filter(task) for each in settings.post_filters]
            texts += [f"preemption: {found.text}"] if isinstance(found, NoCandidate) else []
            errors.message = errors.available_text(size, attempt.rejection, ", ".join(texts))
            if isinstance(found, Candidate):
                self._evict(row, found)
            elif isinstance(found, NoCandidate) and found.eligible:
                self.nominations.drop(row)  # no eviction helps, so its nomination ends
        if not isinstance(found, Candidate):
            self.keep_nominations((row,))
        if self.nominations.node_of(row) is None:  # one that just preempted is promised a node
            self._failures[self._key(task, row)] = errors
        self.refuse(row, errors)

    def keep_nominations(self, rows: Sequence[int]) -> None:
        """Tell in the record which of these pods keep the node that an earlier cycle nominated."""
        statement = self.session.statement()
        for row in rows:
            node = self.nominations.node_of(row)
            if node is not None:
                statement.nominate(row, node, again=True)
        statement.commit()

    def refuse(self, row: int, errors: FitErrors) -> None:
        job = self.session.job_of(row)
        assert job is not None
        job.fit_errors[row] = errors

    def _preempt(self, row: int, errors: FitErrors, preemption: PodPreemption | None) -> Candidate | NoCandidate | None:
        """None: preemption is switched off."""
        if preemption is None:
            return None
        nominated = self.nominations.node_of(row)
        hopeless = errors.unresolvable if errors.unresolvable.size else np.zeros(len(self.session.nodes), dtype=bool)
        lost = nominated is not None and bool(hopeless[nominated])
        return preemption.not_eligible(row, nominated_unresolvable=lost) or preemption.find(row, ~hopeless)

    def _evict(self, row: int, candidate: Candidate) -> None:
        """Evict the victims and nominate the pod for their node. The victims hold their resources until they are gone."""
        session, spec = self.session, self.session.task(row)
        job, node = session.job_of(row), candidate.node
        message = f"Preempted by pod {spec.uid} on node {session.nodes.names[node]}"
        statement = session.statement()
        for victim in candidate.victims:
            if session.status[victim] != TaskStatus.RELEASING:
                statement.evict(victim, for_=job.key if job else "", reason="preempt", message=message, holds_node=True)
        statement.nominate(row, node)
        statement.commit()
        self.nominations.drop_lesser(node, spec.pod_priority)
        self.nominations.put(row, node)
        self.changes += 1
        self.changed()
