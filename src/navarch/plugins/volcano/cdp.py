"""CDP, cooldown protection: protects a pod from eviction for some time after it was scheduled.

The pod sets the time by the label or annotation `volcano.sh/cooldown-time` (a duration such as `10m`).
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.arguments import WrongKind, duration
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.model.spec import TaskSpec
from navarch.model.status import TaskStatus

COOLDOWN = "volcano.sh/cooldown-time"


class Cdp(Plugin):
    """Protects pods from eviction until they have cooled down"""

    name = "cdp"

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int] | None:
        return [task for task in candidates if not self._protected(task)]

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> list[int] | None:
        return [task for task in candidates if not self._protected(task)]

    def unified_evictable(self, job: Job, candidates: Sequence[int], *, reclaim: bool) -> list[int] | None:
        return [task for task in candidates if not self._protected(task)]

    def _protected(self, task: int) -> bool:
        spec = self.session.task(task)
        wait = cooldown(spec)
        if wait is None or self.session.status[task] != TaskStatus.RUNNING:
            return False
        since = scheduled_at(spec)
        return since is not None and self.session.now < since + wait


def cooldown(spec: TaskSpec) -> float | None:
    """Seconds; 0 if the text is no duration."""
    text = spec.labels.get(COOLDOWN, spec.annotations.get(COOLDOWN))
    if text is None:
        return None
    try:
        return duration(text)
    except WrongKind:
        return None


def scheduled_at(spec: TaskSpec) -> float | None:
    """When the pod was scheduled; if its condition does not tell, when it started."""
    when = [changed for type_, status, _, changed in spec.conditions if type_ == "PodScheduled" and status == "True"]
    return max(when) if when else spec.started
