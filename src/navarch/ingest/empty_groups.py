"""Groups without pods: which scheduler admits them.

Volcano's controller and Kubeflow's operator create the pods of a workload after its group is admitted. A group without pods names no
scheduler, so the scheduler names come from the workload that owns it. Without that rule a scheduler that runs beside Volcano's would
admit the other one's whole backlog. Of Volcano's groups whose owner names no scheduler, the operator gives the pods Volcano's name.

A group that had pods of ours stays ours when they are gone. A group that no owner made belongs to nobody before its first pod.
"""

from __future__ import annotations

from navarch.apis.operators.readers import KINDS
from navarch.apis.operators.workload import PodMaker, WorkloadKey, WorkloadSpec
from navarch.model.spec import JobSpec

JOB = "Job"
VOLCANO = frozenset({"volcano"})
_READ = frozenset({JOB, *(kind.kind for kind in KINDS)})
"""Kinds of owners whose objects say the scheduler names."""


class EmptyGroups:
    """`served`: the scheduler names that we decide for; None: all."""

    def __init__(self, served: frozenset[str] | None) -> None:
        self._served = served
        self._names: dict[WorkloadKey, frozenset[str]] = {}
        """Owner -> the scheduler names of its pods."""
        self._made: dict[WorkloadKey, set[str]] = {}
        """Owner -> keys of its groups."""
        self._had_pods: set[str] = set()
        """Groups that had a pod of ours."""
        self._unattended: dict[tuple[str, str], PodMaker] = {}
        """Our Jobs that no controller has taken up."""

    def put(self, maker: PodMaker) -> list[str]:
        """Learn of a Job, new or changed; returns the groups to check again."""
        if maker.taken_up or (self._served is not None and not maker.schedulers & self._served):
            self._unattended.pop((maker.namespace, maker.name), None)
        else:
            self._unattended[maker.namespace, maker.name] = maker
        return self._learn((maker.namespace, JOB, maker.name), maker.schedulers)

    def put_workload(self, workload: WorkloadSpec) -> list[str]:
        """Learn of another owner, new or changed; returns the groups to check again."""
        return self._learn(workload.key, workload.schedulers or VOLCANO)

    def remove(self, maker: PodMaker) -> list[str]:
        """Forget a Job; returns the groups to check again."""
        self._unattended.pop((maker.namespace, maker.name), None)
        return self.remove_owner((maker.namespace, JOB, maker.name))

    def remove_owner(self, owner: WorkloadKey) -> list[str]:
        """Forget an owner; returns the groups to check again."""
        self._names.pop(owner, None)
        return self._groups_of(owner)

    def unattended(self, before: float) -> list[PodMaker]:
        """Our Jobs from before that moment that no controller has taken up, so they have no pods."""
        return [maker for _, maker in sorted(self._unattended.items()) if maker.created < before]

    def has_pods(self, group: JobSpec) -> None:
        """The group has a pod of ours."""
        self._had_pods.add(group.key)

    def is_for_others(self, group: JobSpec) -> bool:
        """Whether the group, which has no pods, is not ours to admit."""
        owner = _owner_of(group)
        if owner is not None:
            self._made.setdefault(owner, set()).add(group.key)
        if self._served is None:
            return False
        names = self._names.get(owner) if owner is not None else None
        if names is not None:
            return not names & self._served
        if group.key in self._had_pods:
            return False
        return owner is None or owner[1] in _READ or not VOLCANO & self._served

    def forget(self, group: JobSpec) -> None:
        """The group is gone."""
        self._had_pods.discard(group.key)
        owner = _owner_of(group)
        if owner is not None and owner in self._made:
            self._made[owner].discard(group.key)
            if not self._made[owner]:
                del self._made[owner]

    def _learn(self, owner: WorkloadKey, names: frozenset[str]) -> list[str]:
        before, self._names[owner] = self._names.get(owner), names
        return [] if before == names else self._groups_of(owner)

    def _groups_of(self, owner: WorkloadKey) -> list[str]:
        return sorted(self._made.get(owner, ()))


def _owner_of(group: JobSpec) -> WorkloadKey | None:
    """The owner that makes its pods after it is admitted: only Volcano's API knows admission."""
    return (group.namespace, *group.owner[:2]) if group.dialect == "volcano" and group.owner is not None else None
