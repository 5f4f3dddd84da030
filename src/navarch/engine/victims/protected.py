"""Pods that the Eviction API would refuse to evict: no action may choose them where the policy says `evictions: api`.

A disruption budget protects a pod while it allows no disruption and the API server has not counted the pod's own disruption yet. A
pod whose eviction was refused a moment ago (`REFUSED_EVICTIONS`) is protected as well, so the next cycle chooses another victim. Where
victims are deleted nothing is protected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
        if session.policy.evictions == "api":
            closed = [b for _, b in sorted(session.snapshot.budgets.items()) if b.allowed <= 0 and _means_pods(b)]
            refused = session.snapshot.objects.get(REFUSED_EVICTIONS, {})
            if closed or refused:
                self.rows = self._covered(closed)
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
            for budget in budgets:
                if labels and budget.selector is not None and selector_matches(budget.selector, labels):
                    for row in alike.tolist():
                        spec = self.session.task(row)
                        rows[row] |= spec.namespace == budget.namespace and spec.name not in budget.disrupted_pods
        return rows


def _means_pods(budget: DisruptionBudgetSpec) -> bool:
    return budget.selector is not None and bool(budget.selector.requirements)
