"""Pods that the API server would refuse to evict: no action may choose them.

Where the policy says `evictions: api`, a disruption budget protects a pod while it allows no disruption and the API server has not
counted the pod's own disruption yet. The Eviction API always refuses a pod with several budgets, and an empty selector means all pods
of the namespace there. Where victims are deleted, budgets protect nothing. A pod whose eviction was refused a moment ago
(`REFUSED_EVICTIONS`) is protected in both cases, so the next cycle chooses another victim. So are pods of a job that was evicted again
and again (`evicted_again`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.victims.evicted_again import EvictedAgain
from navarch.model.objects.refused_evictions import REFUSED_EVICTIONS
from navarch.model.resources import BoolArray
from navarch.model.selectors import selector_matches
from navarch.model.spec import DisruptionBudgetSpec

if TYPE_CHECKING:
    from navarch.engine.session import Session


class ProtectedPods:
    """Made with `Session.shared`. `rows` is a mask over task rows, None if nothing is protected."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rows: BoolArray | None = None
        budgets = _refusing(session.snapshot.budgets.values()) if session.policy.evictions == "api" else []
        refused = session.snapshot.objects.get(REFUSED_EVICTIONS, {})
        repeated = session.shared(EvictedAgain).until
        if budgets or refused or repeated:
            self.rows = self._covered(budgets)
            for row in repeated:
                self.rows[[*session.snapshot.jobs.tasks[row]]] = True
            specs = session.snapshot.tasks.specs
            for (_, uid), row in refused.items():
                spec = specs[row] if row < len(specs) else None
                if spec is not None and spec.uid == uid:
                    self.rows[row] = True

    def has(self, task: int) -> bool:
        return self.rows is not None and bool(self.rows[task])

    def _covered(self, budgets: list[DisruptionBudgetSpec]) -> BoolArray:
        """Selectors are asked once for each set of labels, not for each pod."""
        tasks = self.session.snapshot.tasks
        rows: BoolArray = np.zeros(len(tasks.alive), dtype=bool)
        alive = np.flatnonzero(tasks.alive & (self.session.node >= 0)) if budgets else np.zeros(0, dtype=np.intp)
        for identity in np.unique(tasks.labels[alive]).tolist():
            alike = alive[tasks.labels[alive] == identity]
            labels = self.session.task(int(alike[0])).labels
            meant = [budget for budget in budgets if selector_matches(budget.selector, labels)]
            for row in alike.tolist() if meant else ():
                spec = self.session.task(row)
                own = [budget for budget in meant if budget.namespace == spec.namespace]
                rows[row] = len(own) > 1 or any(each.allowed <= 0 and spec.name not in each.disrupted_pods for each in own)
        return rows


def _refusing(budgets: Iterable[DisruptionBudgetSpec]) -> list[DisruptionBudgetSpec]:
    """Budgets of the namespaces where some budget allows no disruption, or where there are several."""
    of: dict[str, list[DisruptionBudgetSpec]] = {}
    for budget in budgets:
        if budget.selector is not None:
            of.setdefault(budget.namespace, []).append(budget)
    return [budget for own in of.values() if len(own) > 1 or own[0].allowed <= 0 for budget in own]
