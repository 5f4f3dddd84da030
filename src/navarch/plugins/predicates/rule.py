"""What kube-scheduler's filters have beyond a mask: a word on the pod before any node is looked at.

Such a word is a Rejection, which holds on every node, or a set of nodes that the pod names itself, outside of which nothing
is looked at. `applies` says whether the rule has anything to say on a class of tasks at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.reasons import Event, Reason


@dataclass(frozen=True, slots=True)
class Rejection:
    """A pod that no node may take, whatever stands on it. `error`: the attempt failed rather than the pod did not fit."""

    message: str
    unresolvable: bool = True
    error: bool = False

    def as_reason(self, undone_by: tuple[Event, ...]) -> Reason:
        return Reason("SchedulerError" if self.error else "Unschedulable", self.message, undone_by=undone_by)


class Rule(NodeFilter):
    undone_by: tuple[Event, ...] = (Event.NODE_ADDED, Event.NODE_CHANGED)
    """What can turn this filter's refusal into a pass."""

    def reject(self, task: TaskClass) -> Rejection | None:
        """Asked once for each attempt at a pod, before the filter looks at nodes, and only if the rule applies."""
        return None

    def named_nodes(self, task: TaskClass) -> frozenset[str] | None:
        """The nodes that the pod itself names; None: it names none."""
        return None


class Wish(NodeScorer):
    """A score that may find the pod's own wishes unreadable."""

    def problem(self, task: TaskClass) -> str:
        """What is wrong, empty if nothing: then the attempt at the pod fails."""
        return ""


def first_rejection(rules: Iterable[NodeFilter], task: TaskClass) -> tuple[Rule, Rejection] | None:
    """The last plain rejection, or the first that nothing could resolve: it ends the asking."""
    found: tuple[Rule, Rejection] | None = None
    for rule in rules:
        if isinstance(rule, Rule) and rule.applies(task):
            rejection = rule.reject(task)
            if rejection is not None:
                found = rule, rejection
                if rejection.unresolvable or rejection.error:
                    break
    return found
