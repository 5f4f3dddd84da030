"""What preemption takes as one: a pod, or all pods of a group that may only be disrupted together.

Kubernetes' groups say it by `disruptionMode`. The highest group above a pod with the mode `all` is the unit. The priority of a pod
in such an API is that of its root group, where that has one. Other pods are units of their own, with their own priority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from navarch.actions.kube_scheduler.group_tree import GANG_API, GroupNode, GroupTrees, on_nodes
from navarch.engine.session import Session
from navarch.model.selectors import selector_matches

U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class VictimUnit:
    """Pods that go together, with the priority that they are judged by."""

    rows: tuple[int, ...]
    priority: int
    rank: int
    """3: a group of groups, 2: a group, or a pod of one, 1: a pod."""
    started: float
    name: str

    @property
    def importance(self) -> tuple[int, int, int, float, str]:
        """Smaller is more important."""
        return -self.priority, -self.rank, -len(self.rows), self.started, self.name


class VictimUnits:
    """`trees` None: the profile knows no groups."""

    def __init__(self, session: Session, trees: GroupTrees | None) -> None:
        self.session = session
        self._trees = trees
        self._by_group: dict[int, VictimUnit] = {}

    @property
    def any_group(self) -> bool:
        """Whether a group could change how a pod is judged."""
        return self._trees is not None and self._trees.any_group

    def of(self, row: int) -> VictimUnit:
        session, node = self.session, self._node(row)
        if node is None:
            spec = session.task(row)
            return VictimUnit((row,), spec.pod_priority, 1, self._started(row), spec.key)
        together = _highest_together(node)
        priority = node.root.priority
        if together is None:
            spec = session.task(row)
            return VictimUnit((row,), spec.pod_priority if priority is None else priority, 2, self._started(row), spec.key)
        found = self._by_group.get(id(together))
        if found is None:
            rows = tuple(sorted(on_nodes(session, together)))
            own = max(session.task(each).pod_priority for each in rows) if priority is None else priority
            started, name = min(self._started(each) for each in rows), session.task(row).key
            found = self._by_group[id(together)] = VictimUnit(rows, own, 3 if together.job is None else 2, started, name)
        return found

    def _node(self, row: int) -> GroupNode | None:
        job = self.session.job_of(row) if self._trees is not None else None
        return self._trees.leaf(job) if self._trees is not None and job is not None and job.spec.dialect == GANG_API else None

    def _started(self, row: int) -> float:
        started = self.session.task(row).started
        return self.session.now if started is None else started


def _highest_together(node: GroupNode) -> GroupNode | None:
    found: GroupNode | None = None
    above: GroupNode | None = node
    while above is not None:
        if above.disrupted_together:
            found = above
        above = above.parent
    return found


def split_by_budget(session: Session, units: Sequence[U], rows_of: Callable[[U], Iterable[int]]) -> tuple[list[U], list[U]]:
    """(units whose eviction breaks a disruption budget, the others), each in the order given. `rows_of`: the pods of a unit."""
    budgets = session.snapshot.budgets
    if not budgets:
        return [], list(units)
    allowed = {key: budget.allowed for key, budget in budgets.items()}
    violating: list[U] = []
    others: list[U] = []
    for unit in units:
        broken = False
        for spec in map(session.task, rows_of(unit)):
            for key, budget in budgets.items() if spec.labels else ():
                if key[0] != spec.namespace or budget.selector is None or not budget.selector.requirements:
                    continue
                if spec.name not in budget.disrupted_pods and selector_matches(budget.selector, spec.labels):
                    allowed[key] -= 1
                    broken |= allowed[key] < 0
        (violating if broken else others).append(unit)
    return violating, others
