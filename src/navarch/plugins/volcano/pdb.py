"""PDB: offers no more pods as victims than their disruption budgets allow.

Budgets count over the whole cycle: an eviction for one job lowers what is allowed for the next. A pod without labels, which no
budget selects, may be evicted. Where whole gangs are evicted, what a gang cannot spare is offered together or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change, EachChange
from navarch.engine.victims.units import lost_together
from navarch.model.selectors import selector_matches
from navarch.model.spec import DisruptionBudgetSpec, TaskSpec
from navarch.model.status import TaskStatus


class Pdb(Plugin):
    """Keeps evictions within disruption budgets"""

    name = "pdb"

    def open(self) -> None:
        self.budgets: dict[str, list[tuple[int, DisruptionBudgetSpec]]] = {}
        """By namespace, numbered. A budget without requirements means no pod."""
        budgets = sorted(self.session.snapshot.budgets.items())
        self.left = [budget.allowed for _, budget in budgets]
        for number, ((namespace, _), budget) in enumerate(budgets):
            if budget.selector is not None and budget.selector.requirements:
                self.budgets.setdefault(namespace, []).append((number, budget))
        self._of_labels: dict[int, list[tuple[int, DisruptionBudgetSpec]]] = {}

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        return self._allowed(candidates)

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        return self._allowed(candidates)

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        left, allowed = list(self.left), set[int]()
        for unit in lost_together(self.session, candidates):
            spent = Counter(number for task in unit for number in self._budgets_of(task, self.session.task(task)))
            if all(left[number] >= count for number, count in spent.items()):
                allowed.update(unit)
                for number, count in spent.items():
                    left[number] -= count
        return [task for task in candidates if task in allowed]

    def on_allocate(self, change: Change) -> None:
        if change.undone and self.session.status[change.tasks[0]] != TaskStatus.PIPELINED:
            self._spend(change.tasks, -1)  # an eviction was taken back

    def on_deallocate(self, change: Change) -> None:
        if not change.undone and self.session.status[change.tasks[0]] == TaskStatus.RELEASING:
            self._spend(change.tasks, 1)

    def on_allocate_each(self, change: EachChange) -> None:
        """Pending pods that are placed spend no budget."""

    def _spend(self, tasks: Sequence[int], count: int) -> None:
        for task in tasks:
            for number in self._budgets_of(task, self.session.task(task)):
                self.left[number] -= count

    def _allowed(self, candidates: Sequence[int]) -> list[int]:
        left, out = list(self.left), []
        for task in candidates:
            numbers = self._budgets_of(task, self.session.task(task))
            if any(left[number] <= 0 for number in numbers):
                continue
            for number in numbers:
                left[number] -= 1
            if all(left[number] >= 0 for number in numbers):
                out.append(task)
        return out

    def _budgets_of(self, task: int, spec: TaskSpec) -> list[int]:
        """Numbers of the budgets that count this pod; one whose disruption the API server already knows is not counted."""
        identity = int(self.session.snapshot.tasks.labels[task])
        found = self._of_labels.get(identity)
        if found is None:
            found = self._of_labels[identity] = [
                (number, budget)
                for number, budget in self.budgets.get(spec.namespace, ())
                if budget.selector is not None and selector_matches(budget.selector, spec.labels)
            ]
        return [number for number, budget in found if spec.name not in budget.disrupted_pods]
