"""Groups without pods: which scheduler admits them.

Volcano's controller creates the pods of a Job after its group is admitted. A group without pods names no scheduler, so the scheduler
names come from its Job. Without that rule a scheduler that runs beside Volcano's would admit the other one's whole backlog. A group
whose Job is not known is left to others until it has pods. A group that no Job made is admitted by every scheduler that sees it.
"""

from __future__ import annotations

from navarch.apis.operators.workload import PodMaker
from navarch.model.spec import JobSpec


class EmptyGroups:
    """`served`: the scheduler names that we decide for; None: all."""

    def __init__(self, served: frozenset[str] | None) -> None:
        self._served = served
        self._makers: dict[tuple[str, str], PodMaker] = {}
        self._made: dict[tuple[str, str], set[str]] = {}
        """Namespace and name of a Job -> keys of its groups."""
        self._unattended: dict[tuple[str, str], PodMaker] = {}
        """Our Jobs that no controller has taken up."""

    def put(self, maker: PodMaker) -> list[str]:
        """Learn of a Job, new or changed; returns the groups to check again."""
        before = self._makers.get((maker.namespace, maker.name))
        self._makers[maker.namespace, maker.name] = maker
        if maker.taken_up or (self._served is not None and not maker.schedulers & self._served):
            self._unattended.pop((maker.namespace, maker.name), None)
        else:
            self._unattended[maker.namespace, maker.name] = maker
        return [] if before == maker else self._groups_of(maker)

    def remove(self, maker: PodMaker) -> list[str]:
        """Forget a Job; returns the groups to check again."""
        self._makers.pop((maker.namespace, maker.name), None)
        self._unattended.pop((maker.namespace, maker.name), None)
        return self._groups_of(maker)

    def unattended(self, before: float) -> list[PodMaker]:
        """Our Jobs from before that moment that no controller has taken up, so they have no pods."""
        return [maker for _, maker in sorted(self._unattended.items()) if maker.created < before]

    def is_for_others(self, group: JobSpec) -> bool:
        """Whether another scheduler admits this group, which has no pods."""
        job = _job_of(group)
        if job is None or self._served is None:
            return False
        self._made.setdefault(job, set()).add(group.key)
        maker = self._makers.get(job)
        return maker is None or not maker.schedulers & self._served

    def forget(self, group: JobSpec) -> None:
        """The group is gone."""
        job = _job_of(group)
        if job is not None and job in self._made:
            self._made[job].discard(group.key)
            if not self._made[job]:
                del self._made[job]

    def _groups_of(self, maker: PodMaker) -> list[str]:
        return sorted(self._made.get((maker.namespace, maker.name), ()))


def _job_of(group: JobSpec) -> tuple[str, str] | None:
    if group.dialect != "volcano" or group.owner is None or group.owner[0] != "Job":
        return None
    return group.namespace, group.owner[1]
