"""kube-scheduler's preemption for single pods: finds the node and the victims.

On each node that an eviction could open, all less important pods are removed in a trial. If the pod fits then, they are added back
one by one as long as it still fits: first those whose eviction would break a disruption budget, and more important ones before
others. The node is chosen by the fewest broken budgets, the lowest highest priority among victims, the lowest sum of priorities,
the fewest victims, the latest start of the most important victims, and the order of nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from navarch.actions.kube_scheduler.nominations import Nominations
from navarch.actions.kube_scheduler.reprieve import OFFSET, Reprieve, VictimSearch
from navarch.actions.kube_scheduler.victim_units import VictimUnit, VictimUnits, split_by_budget
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.points.protocols import PreemptionReview
from navarch.engine.session import Session
from navarch.engine.victims.protected import ProtectedPods
from navarch.engine.victims.what_if import WhatIf
from navarch.model.resources import BoolArray
from navarch.model.spec import TaskSpec
from navarch.model.status import ON_NODE

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
UNDER_WAY = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class Candidate:
    """Victims in order of importance, and how many of them break a disruption budget."""

    node: int
    victims: tuple[int, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class NoCandidate:
    """Why preemption found no node. `eligible` False: the pod may not preempt now, and keeps a nomination that it has."""

    text: str
    eligible: bool = True


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """A node where evictions do not help, with its reasons. `error`: the search itself failed there."""

    texts: tuple[str, ...]
    error: bool = False


class PodPreemption:
    def __init__(
        self,
        session: Session,
        nominations: Nominations,
        percentage: int = 10,
        absolute: int = 100,
        units: VictimUnits | None = None,
    ) -> None:
        self.session = session
        self.units = VictimUnits(session, None) if units is None else units
        self.nominations = nominations
        self.percentage = percentage
        self.absolute = absolute
        self.reprieve = Reprieve(session)
        self._from = 0
        """Where the next search starts, if it does not try all nodes, so that searches do not always use the same ones."""

    # whether to try at all

    def not_eligible(self, row: int, *, nominated_unresolvable: bool = False) -> NoCandidate | None:
        """Why the pod may not preempt; None if it may."""
        session, spec = self.session, self.session.task(row)
        if spec.preemption_policy == "Never":
            return NoCandidate(NEVER, eligible=False)
        node = self.nominations.node_of(row)
        if node is None or nominated_unresolvable:
            return None
        for other in session.residents.on(node):
            found = session.task(other)
            if found.deleting and found.pod_priority < spec.pod_priority and found.disruption_target:
                return NoCandidate(UNDER_WAY, eligible=False)
        return None

    def find(self, row: int, potential: BoolArray) -> Candidate | NoCandidate:
        """The best candidate among the nodes that an eviction could open, or why there is none."""
        nodes = np.flatnonzero(potential).tolist()
        if not self.units.any_group and not self.reprieve.outranks_anyone(self.session.task(row).pod_priority):
            return self._no_candidate({NO_VICTIMS: len(nodes)}, len(nodes))
        wanted = min(len(nodes), max(self.absolute, len(nodes) * self.percentage // 100))
        if wanted < len(nodes):
            first = bisect_left(nodes, self._from)
            nodes = nodes[first:] + nodes[:first]
        if self.applies_at_once(row):
            return self._chosen(row, nodes, wanted)
        candidates: list[Candidate] = []
        refused: list[NodeRefusal] = []
        for node in nodes:
            answer = self.dry_run(row, node)
            if isinstance(answer, NodeRefusal):
                refused.append(answer)
                continue
            candidates.append(answer)
            self._from = node + 1
            if len(candidates) >= wanted and any(not each.violations for each in candidates):
                break
        reviewed = self._reviewed(row, candidates)
        if isinstance(reviewed, NoCandidate):
            return reviewed
        if reviewed:
            return min(reviewed, key=lambda each: (*self.cost(each), each.node))
        errors = [answer.texts[0] for answer in refused if answer.error]
        counts = Counter(text for answer in refused for text in answer.texts)
        return NoCandidate(errors[0]) if errors else self._no_candidate(counts, len(refused))

    def _reviewed(self, row: int, candidates: list[Candidate]) -> list[Candidate] | NoCandidate:
        """The candidates that plugins leave, with the victims that they name."""
        for plugin in self.session.implementing(PreemptionReview) if candidates else ():
            answer = plugin.review_preemption(row, {each.node: (each.victims, each.violations) for each in candidates})
            if isinstance(answer, str):
                return NoCandidate(answer)
            candidates = [Candidate(node, tuple(victims), violations) for node, (victims, violations) in sorted(answer.items())]
            if not candidates:
                return NoCandidate("no candidate node for preemption")
        return candidates

    def _no_candidate(self, counts: Mapping[str, int], tried: int) -> NoCandidate:
        size = len(self.session.nodes)
        told = {**counts, NOT_HELPFUL: size - tried}
        return NoCandidate(FitErrors(size, {t: n for t, n in told.items() if n}).available_text(size))

    # one node

    def lesser_on(self, row: int, node: int) -> list[int]:
        """All pods on the node with lower priority, the most important first."""
        session = self.session
        priority = session.task(row).pod_priority
        there = [t for t in session.residents.on(node) if ON_NODE[session.status[t]] and session.task(t).pod_priority < priority]
        protected = session.shared(ProtectedPods)
        if protected.rows is not None:
            there = [task for task in there if not protected.has(task)]
        return sorted(there, key=lambda task: importance(session.task(task), session.now))

    def dry_run(self, row: int, node: int) -> Candidate | NodeRefusal:
        if self.units.any_group:
            return self._dry_run_units(row, node)
        lesser = self.lesser_on(row, node)
        if not lesser:
            return NodeRefusal((NO_VICTIMS,))
        session, nominations = self.session, self.nominations
        view = session.view(session.class_of(row))
        with WhatIf(session) as trial:
            for task in lesser:
                trial.remove(task, node)
            if not nominations.admits(view, row, node):
                return NodeRefusal(tuple(nominations.refusal_at(view, row, node)[0]))
            violating, others = split_by_budget(session, lesser, lambda task: (task,))
            victims: set[int] = set()
            violations = 0
            for group in (violating, others):
                for task in group:
                    trial.add(task, node)
                    if nominations.admits(view, row, node):
                        continue
                    trial.remove(task, node)
                    victims.add(task)
                    violations += group is violating
        if not victims:
            return self._unneeded(node)
        return Candidate(node, tuple(task for task in lesser if task in victims), violations)

    def _dry_run_units(self, row: int, node: int) -> Candidate | NodeRefusal:
        """As `dry_run` where groups may go together: a group with a pod on this node goes or stays with all its pods elsewhere."""
        session, nominations = self.session, self.nominations
        lesser = self._lesser_units(row, node)
        if not lesser:
            return NodeRefusal((NO_VICTIMS,))
        view = session.view(session.class_of(row))
        with WhatIf(session) as trial:
            for unit in lesser:
                for task in unit.rows:
                    trial.remove(task, int(session.node[task]))
            if not nominations.admits(view, row, node):
                return NodeRefusal(tuple(nominations.refusal_at(view, row, node)[0]))
            violating, others = split_by_budget(session, lesser, lambda unit: unit.rows)
            victims: list[VictimUnit] = []
            violations = 0
            for units in (violating, others):
                for unit in units:
                    for task in unit.rows:
                        trial.add(task, int(session.node[task]))
                    if nominations.admits(view, row, node):
                        continue
                    for task in unit.rows:
                        trial.remove(task, int(session.node[task]))
                    victims.append(unit)
                    violations += units is violating
        if not victims:
            return self._unneeded(node)
        victims.sort(key=lambda unit: unit.importance)
        return Candidate(node, tuple(task for unit in victims for task in unit.rows), violations)

    def _lesser_units(self, row: int, node: int) -> list[VictimUnit]:
        session, own = self.session, self.session.task(row).pod_priority
        there = [task for task in session.residents.on(node) if ON_NODE[session.status[task]]]
        found = dict.fromkeys(self.units.of(task) for task in there)
        protected = session.shared(ProtectedPods)
        free = (unit for unit in found if protected.rows is None or not any(protected.has(task) for task in unit.rows))
        return sorted((unit for unit in free if unit.priority < own), key=lambda unit: unit.importance)

    def cost(self, candidate: Candidate) -> tuple[float, ...]:
        session = self.session
        specs = [session.task(task) for task in candidate.victims]
        highest = specs[0].pod_priority
        started = min(_started(spec, session.now) for spec in specs if spec.pod_priority == highest)
        return (candidate.violations, highest, sum(s.pod_priority + OFFSET for s in specs), len(specs), -started)

    # all nodes

    def applies_at_once(self, row: int) -> bool:
        """Whether only resources decide, so that the search can run over all nodes together."""
        if self.session.snapshot.budgets or self.units.any_group or self.session.implementing(PreemptionReview):
            return False
        return self.reprieve.applies(self.session.class_of(row))

    def all_at_once(self, row: int, nodes: Sequence[int]) -> VictimSearch:
        return self.reprieve.run(row, nodes, self.nominations.promised_to_others(row))

    def _chosen(self, row: int, nodes: list[int], wanted: int) -> Candidate | NoCandidate:
        """The best candidate by a search over nodes together. Enough candidates end the search, so the first part of the nodes is
        tried first."""
        part = nodes[: 2 * wanted]
        search = self.all_at_once(row, part)
        if len(part) < len(nodes) and len(search.candidates()) < wanted:
            part, search = nodes, self.all_at_once(row, nodes)
        candidates = search.candidates()
        if len(candidates):
            self._from = part[-1] + 1
            best = search.best(candidates)
            return Candidate(int(search.nodes[best]), search.victims_on(best))
        for node in search.unneeded():
            return NoCandidate(self._unneeded(node).texts[0])
        counts = {text: int(refused.sum()) for text, refused in search.texts}
        return self._no_candidate({**counts, NO_VICTIMS: len(search.empty)}, len(nodes))

    def _unneeded(self, node: int) -> NodeRefusal:
        return NodeRefusal((f'expected at least one victim pod on node "{self.session.nodes.names[node]}"',), error=True)


def _started(spec: TaskSpec, now: float) -> float:
    return now if spec.started is None else spec.started


def importance(spec: TaskSpec, now: float) -> tuple[int, float, str]:
    """Smaller is more important; a pod that has not started is the youngest."""
    return -spec.pod_priority, _started(spec, now), spec.key
