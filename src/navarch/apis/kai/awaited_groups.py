"""Pods that wait for KAI's pod grouper: it makes their PodGroup and names it on them, a moment after they come.

A pod that is bound before that is in no PodGroup when it starts: nothing records its start, so nothing protects it from being evicted
at once. So a pod of KAI's scheduler without a group waits, but never longer than `BOUND` from its creation; then it is grouped in
memory as the grouper would do it, as in a cluster without a grouper.

Whether a grouper is there follows from what the API server shows, without rights of its own: KAI's kind Config is served, or the
grouper made PodGroups. It is taken for absent while the newest pod that waited in vain is younger than the newest group it made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from navarch.apis.kai.sub_groups import SCHEDULER_NAME, is_left_alone
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.timestamps import rfc3339

BOUND: Final = 30.0
"""Seconds. The grouper needs less than one; this bridges a restart."""
_TOP_OWNER: Final = "kai.scheduler/top-owner-metadata"


def awaited_text(created: float) -> str:
    """
    >>> awaited_text(0.0)
    "it waits for the PodGroup that KAI's pod grouper makes, until 1970-01-01T00:00:30Z at most; then it is grouped without one"
    """
    until = rfc3339(created + BOUND)
    return f"it waits for the PodGroup that KAI's pod grouper makes, until {until} at most; then it is grouped without one"


class AwaitedGroups:
    """`clock`: seconds since the epoch. `is_installed()`: whether KAI's kind Config is served."""

    def __init__(self, clock: Callable[[], float], is_installed: Callable[[], bool] = lambda: False) -> None:
        self._clock = clock
        self._is_installed = is_installed
        self._newest_group = float("-inf")
        self._newest_in_vain = float("-inf")

    def group_seen(self, group: JobSpec) -> None:
        if group.dialect == "kai" and made_by_grouper(group):
            self._newest_group = max(self._newest_group, group.created)

    @property
    def installed(self) -> bool:
        """Whether there are signs of KAI's controllers, of which the grouper is one."""
        return self._newest_group > float("-inf") or self._is_installed()

    def awaits(self, pod: TaskSpec) -> bool:
        """Whether this pod, which has no group, is to wait for one."""
        if pod.scheduler_name != SCHEDULER_NAME or is_left_alone(pod.annotations) or not self.installed:
            return False
        if pod.created + BOUND <= self._clock():
            self._newest_in_vain = max(self._newest_in_vain, pod.created)
            return False
        return self._newest_group >= self._newest_in_vain


def made_by_grouper(group: JobSpec) -> bool:
    """It names its groups after the owner, and writes from which object it took their fields."""
    return _TOP_OWNER in group.annotations or (group.owner is not None and group.name == f"pg-{group.owner[1]}-{group.owner[2]}")
