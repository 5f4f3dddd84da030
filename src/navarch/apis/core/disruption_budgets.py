"""How many pods a PodDisruptionBudget still allows to be evicted, for budgets without a status.

The disruption controller writes this number into the status. A budget from a file that was never applied has no status, and zero
would forbid every eviction. So it is computed here as the controller does: running pods minus the pods that must stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec.structs import replace

from navarch.apis.core.objects import LabelSelectorPart, Part
from navarch.apis.errors import ObjectError
from navarch.model.label_syntax import parse_count
from navarch.model.selectors import selector_matches
from navarch.model.spec import DisruptionBudgetSpec, TaskSpec
from navarch.model.status import IS_TERMINAL, TaskStatus


class BudgetPart(Part, frozen=True):
    selector: LabelSelectorPart | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(Part, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str | None] | None = None


def measured(budget: DisruptionBudgetSpec, part: BudgetPart, tasks: Iterable[TaskSpec]) -> DisruptionBudgetSpec:
    """The budget with what it allows for these tasks."""
    covered = [
        task
        for task in tasks
        if task.namespace == budget.namespace and not IS_TERMINAL[task.status] and selector_matches(budget.selector, task.labels)
    ]
    healthy = sum(task.status == TaskStatus.RUNNING for task in covered)
    name = f"{budget.namespace}/{budget.name}"
    if part.max_unavailable is not None:
        wanted = len(covered) - _scaled(part.max_unavailable, len(covered), name, "spec.maxUnavailable")
    else:
        wanted = _scaled(part.min_available or 0, len(covered), name, "spec.minAvailable")
    return replace(budget, allowed=max(0, healthy - max(0, wanted)))


def _scaled(value: int | str, total: int, name: str, path: str) -> int:
    """A number of pods, or a percentage of them, rounded up."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    number = parse_count(text)
    if number is None:
        raise ObjectError("PodDisruptionBudget", name, path, repr(value), 'a whole number or a percentage such as "50%"')
    return number if text == value else math.ceil(total * number / 100)
